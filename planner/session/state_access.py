"""The state of a project without its files, but for a config.yaml that says where the state is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mergeplan.planner.errors import RequestError
from mergeplan.planner.project.loader import LoadOptions, load_config
from mergeplan.planner.session.settings import SessionSettings, state_url_of
from mergeplan.planner.state.store import StateStore


@contextmanager
def open_state(settings: SessionSettings, project: str | None = None) -> Iterator[StateStore]:
    """Open a project's state; raise RequestError if there is none. With `state_url` and its name no file is read."""
    url, name = settings.state_url, project if project is not None else settings.state_project or None
    if not url or name is None:
        options = LoadOptions(settings.gateways_from, settings.isolation.hiding(settings.folder))
        config, gateway = load_config(settings.root, settings.gateway, options)
        url = state_url_of(settings, config, gateway)
        name = config.project if name is None else name
    # A reader creates no database.
    scheme, _, file = url.partition("?")[0].partition(":///")
    if scheme.startswith("sqlite") and not Path(file).expanduser().exists():
        hint = "`mergeplan plan prod --auto-apply` in the project's folder creates it."
        raise RequestError(f"There is no state database at {file}.", hint=hint)
    store = StateStore(url, name)
    try:
        yield store
    finally:
        store.close()
