"""What the verbs work with: the project of a folder, its Spark and its state, each opened when first needed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

import click

from planner.apply.events import Emit, PromotionRecovered
from planner.apply.janitor import RETENTION
from planner.cli.unfinished import finish, on_stderr, tell
from planner.engine.gateways import routed
from planner.engine.protocol import Connection, Engine
from planner.engine.spark.engine import open_engine
from planner.errors import QueryError, RequestError
from planner.model.graph import graph_of
from planner.model.model import Column, Kind, Model
from planner.parsing.files.environments import environment_ttl, ttl
from planner.parsing.files.gateway_settings import conf_of
from planner.parsing.files.gateways import gateways_apart
from planner.parsing.files.schema import StateConfig
from planner.parsing.sql.dates import end_instant, instant
from planner.plan.schedule import Loaded
from planner.project.loader import Project, load_project
from planner.python.host import hide_ourselves
from planner.python.isolation import isolation_of
from planner.snapshot.environment import Environment
from planner.state.leases import Lease
from planner.state.store import StateStore

P = ParamSpec("P")
R = TypeVar("R")
STATE_URL = "MERGEPLAN_STATE_URL"
OPENLINEAGE_KEY = "MERGEPLAN_OPENLINEAGE_API_KEY"
GATEWAYS_FROM = "MERGEPLAN_GATEWAYS_FROM"  # the bot's: the base branch's config.yaml rules over the pull request's
OpenEngine = Callable[[Connection, Path, str], Engine]


@dataclass
class Workspace:
    """One folder at one moment; use it as a context manager, so that Spark and the database are let go of."""

    root: Path
    gateway: str | None
    profile: str
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    open_engine: OpenEngine = open_engine
    hear: Emit = on_stderr
    only_looks: bool = False  # it tells of what a crash left half promoted, and leaves it so
    about: frozenset[str] = frozenset()  # the environments on which what is done rests
    recovered: tuple[PromotionRecovered, ...] = ()  # what a crash had left half promoted, and this verb took up

    def __post_init__(self) -> None:
        if os.environ.get(STATE_URL) or os.environ.get(OPENLINEAGE_KEY):
            hide_ourselves()  # project code of another run may be under way as the same user
        # The address may hold a password: the environment, which others may read, can leave it to standard input.
        given = os.environ.pop(STATE_URL, "")
        self._state_url = sys.stdin.readline().strip() if given == "-" else given
        key = os.environ.pop(OPENLINEAGE_KEY, "")
        self.openlineage_key = sys.stdin.readline().strip() if key == "-" else key
        self._engine: Engine | None = None
        self._store: StateStore | None = None
        self._handlers: dict[int, Any] = {}
        self._opened_at = datetime.now(UTC)

    def __enter__(self) -> Workspace:
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._engine is not None:
            self._engine.close()
        if self._store is not None:
            self._store.close()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def turn_to(self, now: datetime) -> None:
        """Let it be another moment."""
        self.now = now
        self.__dict__.pop("project", None)
        self.__dict__.pop("models", None)

    @cached_property
    def project(self) -> Project:
        """The project in the folder."""
        ruling = os.environ.get(GATEWAYS_FROM)
        isolation = isolation_of(os.environ).hiding(self.home)
        return load_project(self.root, self.now, self.gateway, Path(ruling) if ruling else None, isolation)

    @property
    def default_target(self) -> str:
        """The environment that a plan is for when nobody names one."""
        return self.project.config.default_target_environment

    @property
    def home(self) -> Path:
        """Where the embedded Spark and state live: MERGEPLAN_HOME, or `.mergeplan` in the project's folder."""
        return Path(os.environ.get("MERGEPLAN_HOME") or self.root / ".mergeplan")

    @property
    def store(self) -> StateStore:
        """The state database, brought up to date; with its first use whatever a crash left half promoted is finished,
        or told where the verb only looks. Refused when that is impossible, LeaseHeld while somebody else is at it.
        """
        if self._store is None:
            store = StateStore(self._url(), os.environ.get("MERGEPLAN_PROJECT") or self.project.config.project)
            try:
                self._settle(store)
            except BaseException:
                store.close()
                raise
            self._store = store
        return self._store

    def settle(self, lease: Lease) -> None:
        """Finish once more what is half promoted, now that the lease is ours: whoever held it may have died."""
        self.recovered += finish(self.store, lambda: self.engine, self.hear, self.about | {lease.name}, lease)

    def look(self) -> None:
        """Tell of half promoted environments; for verbs that read views, and need nothing else of the state."""
        file = self._url().partition("?")[0].removeprefix("sqlite:///")
        if file.startswith("postgres") or Path(file).exists():
            try:
                _ = self.store
            except RequestError as error:
                click.echo(f"Warning: whether a promotion is unfinished is not known: {error}", err=True)

    @property
    def engine(self) -> Engine:
        """The Spark of the gateway."""
        if self._engine is None:
            self._engine = self._opened()
        return self._engine

    @property
    def has_engine(self) -> bool:
        """True when Spark has been needed already."""
        return self._engine is not None

    @property
    def connection(self) -> Connection:
        """The gateway's connection as the engine takes it."""
        return self._connection(self.project.gateway)

    @property
    def strangers(self) -> frozenset[str]:
        """The tables that the models read and nobody defines; ProjectError when models read each other in a circle."""
        models = graph_of(self.project.models).models
        return frozenset(name for model in models.values() for name in model.depends_on if name not in models)

    @cached_property
    def models(self) -> Mapping[str, Model]:
        """The project's models, and the tables they read that nobody defines, as Spark's catalog knows them."""
        models = dict(self.project.models)
        for name in sorted(self.strangers):
            columns = self._columns_of(name)
            if columns:
                models[name] = Model(name, Kind.EXTERNAL, "external_models.yaml", 0, "", columns=columns)
        return models

    def loaded(self) -> tuple[Loaded, dict[str, str]]:
        """What every table holds, and for each table an environment that shows it (prod before others)."""
        owners: dict[str, str] = {}
        for environment in sorted(self.store.environments.all(), key=lambda each: (each.name != "prod", each.name)):
            for snapshot in environment.snapshots.values():
                owners.setdefault(snapshot.table, environment.name)
        tables = self.store.tables.all().keys() | owners.keys()
        return Loaded(
            self.store.intervals.loaded(tables), frozenset(owners), self.store.snapshots.drifted_tables()
        ), owners

    @property
    def retention(self) -> timedelta:
        """How long the tables that nothing shows any more are kept."""
        given = self.project.config.snapshot_ttl
        return ttl(given) if given else RETENTION

    def expiry(self, environment: str) -> datetime | None:
        """When an environment expires to which a plan is applied now, by the clock on the wall; None: never."""
        length = environment_ttl(self.project.config, environment)
        return None if length is None else self._opened_at + length

    def environment(self, name: str) -> Environment:
        """An environment that exists; RequestError when there is none of that name."""
        found = self.store.environments.get(name)
        if not found.exists:
            raise RequestError(f"There is no environment `{name}`.", hint="`mergeplan environments` lists them.")
        return found

    def _settle(self, store: StateStore) -> None:
        if self.only_looks:
            tell(store, self.hear)
        else:
            self.recovered += finish(store, lambda: self.engine, self.hear, self.about)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        """SIGINT and SIGTERM end what Spark is doing, and with it the verb."""
        if self._engine is not None:
            self._engine.cancel()
        raise KeyboardInterrupt

    def _connection(self, gateway: str) -> Connection:
        given = self.project.config.gateways[gateway].connection
        return Connection(
            conf=tuple(conf_of(given).items()),
            master=given.master,
            remote=given.remote,
            catalog=given.catalog,
            config_dir=given.config_dir,
            comments=given.register_comments,
            serves=any(model.python or model.signals for model in self.project.models.values()),
        )

    def _opened(self) -> Engine:
        engine = self.open_engine(self.connection, self.home, self.profile)
        gateways = self.project.config.gateways
        if len(gateways) == 1:
            return engine
        mine = gateways[self.project.gateway].connection
        return routed(engine, {name for name, each in gateways.items() if each.connection == mine}, self._other)

    def _other(self, gateway: str) -> Engine:
        """The Spark of a gateway that a model names; RequestError when it went or cannot be used beside our own."""
        config = self.project.config
        why = "it is not in config.yaml" if gateway not in config.gateways else ""
        if why := why or gateways_apart(config, self.project.gateway).get(gateway, ""):
            raise RequestError(f"A model of an environment is computed on the gateway `{gateway}`: {why}.")
        return self.open_engine(self._connection(gateway), self.home, self.profile)

    def _columns_of(self, name: str) -> tuple[Column, ...]:
        try:
            return self.engine.schema(f"SELECT * FROM {name}")
        except QueryError:
            return ()  # not there yet: the query that reads it will say so when it is tried

    def _url(self) -> str:
        if self._state_url:
            return self._state_url
        state = self.project.config.gateways[self.project.gateway].state_connection
        return _state_url(state, self.root) if state else f"sqlite:///{self.home / 'state.db'}"


def workspace(command: Callable[P, R]) -> Callable[P, R]:
    """The options that say which project a verb is about."""
    folder = click.Path(path_type=Path)
    command = click.option("--gateway", help="The gateway to use instead of the project's default.")(command)
    where = click.option("-p", "--project", "root", type=folder, default=Path(), help="The project's folder.")
    return where(command)


def opened(
    root: Path,
    gateway: str | None,
    profile: str = "metadata",
    execution_time: str | None = None,
    *,
    hear: Emit = on_stderr,
    only_looks: bool = False,
    about: Collection[str] = (),
) -> Workspace:
    """The workspace of a folder, now or at another moment; RequestError when it is no folder.

    What a crash left half promoted is finished, and told to `hear`, when the state is first used; a verb that
    `only_looks` leaves it and tells of it. Where it is `about` some environments, it waits for whoever promotes them.
    How Spark is opened may be given to `planner.cli.main.run`.
    """
    if not root.is_dir():
        raise RequestError(f"There is no folder `{root}`.")
    given: OpenEngine | None = click.get_current_context().obj
    now = datetime.now(UTC)
    at = moment(execution_time, now) or now
    names = frozenset(about)
    return Workspace(root.resolve(), gateway, profile, at, given or open_engine, hear, only_looks, names)


def moment(text: str | None, now: datetime, *, end: bool = False) -> datetime | None:
    """A date on the command line as a moment in UTC; a bare day as an end includes that day."""
    if text is None:
        return None
    try:
        return (end_instant if end else instant)(text, now)
    except ValueError as error:
        raise RequestError(str(error)) from None


def _state_url(state: StateConfig, root: Path) -> str:
    if state.url:
        return state.url
    if state.type == "sqlite":
        return f"sqlite:///{root / (state.database or '.mergeplan/state.db')}"
    from urllib.parse import quote

    user = quote(state.user or "", safe="") + (f":{quote(state.password, safe='')}" if state.password else "")
    port = f":{state.port}" if state.port else ""
    query = f"?sslmode={state.sslmode}" if state.sslmode else ""
    return f"postgresql+psycopg://{user}@{state.host or 'localhost'}{port}/{state.database or 'postgres'}{query}"
