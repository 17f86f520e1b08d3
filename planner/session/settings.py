"""How a project is opened: its folder, its gateway, its state, and how Spark is reached."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from mergeplan.planner.cache.place import cache_of, home_of
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.errors import RequestError
from mergeplan.planner.parsing.files.schema import Config, StateConfig
from mergeplan.planner.python.isolation import NO_ISOLATION, Isolation, isolation_of

STATE_URL = "MERGEPLAN_STATE_URL"
OPENLINEAGE_KEY = "MERGEPLAN_OPENLINEAGE_API_KEY"
GATEWAYS_FROM = "MERGEPLAN_GATEWAYS_FROM"  # the bot's: the base branch's config.yaml rules over the pull request's
DBT_ROWS = "MERGEPLAN_DBT_ROWS"  # `off`: the bot's, for a fork, whose templates could show rows to anybody
LEASE_WAIT = 3600.0  # seconds to wait for an environment that somebody else is changing
OpenEngine = Callable[[Connection, Path, str], Engine]


@dataclass(frozen=True)
class SessionSettings:
    """Where a project is and with what it is opened; what may hold a password is never shown."""

    root: Path
    gateway: str | None = None  # None: the project's default
    home: Path | None = None  # of the embedded Spark and state; None: `.mergeplan` in the project's folder
    state_url: str = field(default="", repr=False)  # '': as config.yaml says
    state_project: str = ""  # under which name the state is kept; '': as config.yaml says
    openlineage_key: str = field(default="", repr=False)
    gateways_from: Path | None = None  # a config.yaml whose gateways hold in place of the project's
    isolation: Isolation = NO_ISOLATION
    cache: Path | None = None  # where what was worked out before is kept; None: nowhere
    open_engine: OpenEngine | None = field(default=None, repr=False)  # None: a Spark of our own, or the one there is
    runs_code: bool = True  # the folder's Python; without it, what needs it is refused
    gives_rows: bool = True  # to templates of dbt that ask for them

    @property
    def folder(self) -> Path:
        return self.home or self.root / ".mergeplan"


def settings_of(
    environ: Mapping[str, str], root: Path, gateway: str | None = None, state_url: str | None = None
) -> SessionSettings:
    """Read the settings for a project from environment variables; raise RequestError for an invalid value.

    A `state_url` goes before that of the environment.
    """
    ruling = environ.get(GATEWAYS_FROM)
    return SessionSettings(
        root.resolve(),
        gateway,
        home_of(environ),
        environ.get(STATE_URL, "") if state_url is None else state_url,
        environ.get("MERGEPLAN_PROJECT", ""),
        environ.get(OPENLINEAGE_KEY, ""),
        Path(ruling) if ruling else None,
        isolation_of(environ),
        cache_of(environ),
        gives_rows=environ.get(DBT_ROWS) != "off",
    )


def state_url_of(settings: SessionSettings, config: Config, gateway: str) -> str:
    """Return the address of the state database: the operator's, that of config.yaml, or a file of the project."""
    if settings.state_url:
        return settings.state_url
    state = config.gateways[gateway].state_connection
    return url_of(state, settings.root) if state else f"sqlite:///{settings.folder / 'state.db'}"


def url_of(state: StateConfig, root: Path) -> str:
    if state.url:
        return state.url
    if state.type == "sqlite":
        return f"sqlite:///{root / (state.database or '.mergeplan/state.db')}"
    user = quote(state.user or "", safe="") + (f":{quote(state.password, safe='')}" if state.password else "")
    port = f":{state.port}" if state.port else ""
    query = f"?sslmode={state.sslmode}" if state.sslmode else ""
    return f"postgresql+psycopg://{user}@{state.host or 'localhost'}{port}/{state.database or 'postgres'}{query}"


def refuse_spark(_: Connection, __: object, ___: str) -> Engine:
    """Raise RequestError in place of opening a Spark, which reading does not need."""
    raise RequestError("This question needs Spark, which is not started here.", hint="Use the command line for it.")
