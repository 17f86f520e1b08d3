"""A setting in a template that contains the time of the run: dbt has read it already, and another run has another."""

from collections.abc import Iterator, Mapping
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError
from mergeplan.planner.python.dbt_code.moments import MARKED

SAID = ("meta", "tags", "docs", "labels", "group", "access", "persist_docs", "databricks_tags", "query_tag", "grants",
        "pre_hook", "post_hook", "pre-hook", "post-hook", "description")  # fmt: skip


def refuse_timed_settings(compiler: Any) -> None:
    """Let the `config` of templates, which dbt ignores while it compiles, refuse a time."""
    create = compiler._create_node_context

    def create_context(*args: Any) -> dict[str, Any]:
        context: dict[str, Any] = create(*args)
        if "config" in context:
            context["config"] = _Config(context["config"])  # in place: macros have this very dictionary
        return context

    compiler._create_node_context = create_context


class _Config:
    def __init__(self, config: Any) -> None:
        self._config = config

    def __call__(self, *args: Any, **settings: Any) -> Any:
        named = [*settings.items(), *(item for arg in args if isinstance(arg, Mapping) for item in arg.items())]
        for name, value in named:
            if name not in SAID and any(map(MARKED.search, _list_texts(value))):
                message = f"It sets `{name}` by the time of the run, which another run has not"
                raise CompileError(f"{message}. Let SQL ask for the time, or give it as a variable")
        return self._config(*args, **settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = [*value.values()]
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _list_texts(part)
    elif isinstance(value, str):
        yield value
