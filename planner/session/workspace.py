"""What the use cases work with: the project of a folder, its Spark and its state, each opened when first needed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mergeplan.planner.apply.events import Emit, ignore_event
from mergeplan.planner.cache.store import Cache, Lookups
from mergeplan.planner.cache.version import reader_version
from mergeplan.planner.engine.gateways import Gateways
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.catalog import is_embedded, is_running
from mergeplan.planner.errors import LeaseHeld, QueryError, RequestError
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.table_format import TABLE_FORMATS
from mergeplan.planner.parsing.files.gateway_settings import conf_of
from mergeplan.planner.parsing.files.gateways import gateways_apart
from mergeplan.planner.parsing.files.schema import Config, ConnectionConfig
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from mergeplan.planner.semantics.shape_memory import ShapeMemory
from mergeplan.planner.session.events import SparkStarted, SparkStarting, StateUnknown
from mergeplan.planner.session.settings import LEASE_WAIT, SessionSettings, state_url_of
from mergeplan.planner.session.use_cases.cancelling import Cancellation
from mergeplan.planner.snapshot.environment import PROD, Environment

if TYPE_CHECKING:  # what speaks to the database is imported where a verb asks for the state
    from mergeplan.planner.apply.events import PromotionRecovered
    from mergeplan.planner.plan.schedule import Loaded
    from mergeplan.planner.state.leases import Lease
    from mergeplan.planner.state.store import StateStore


@dataclass
class Workspace:
    """One folder at one moment; Spark and the database stay open until `close`."""

    settings: SessionSettings
    profile: str = "metadata"  # what Spark is started for, see mergeplan.planner.engine.spark.engine
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    on_event: Emit = ignore_event
    only_looks: bool = False  # it reports what a crash left half promoted, and leaves it so
    migrates: bool = False  # a shared state of an earlier version
    about: frozenset[str] = frozenset()  # the environments on which what is done rests
    recovered: tuple[PromotionRecovered, ...] = ()  # what a crash had left half promoted, and is finished now
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))  # by the clock on the wall
    cancellation: Cancellation = field(default_factory=Cancellation)
    proposed: Mapping[str, str] = field(default_factory=dict)  # texts in place of the project's files, by path
    on_read: Callable[[int, int], None] = lambda done, total: None  # how many files of how many
    _engine: Engine | None = None
    _early: Connection | None = None  # of an engine that was opened while the project was read
    _store: StateStore | None = None
    _settled: bool = False

    def close(self) -> None:
        with ExitStack() as opened:  # the last first, and all of them even where one cannot be closed
            for part in (self._store, self._engine, self.__dict__.get("lookups")):
                if part is not None:
                    opened.callback(part.close)

    def cancel(self) -> None:
        """End what is under way; from any thread, or from a signal's handler."""
        self.cancellation.ask()
        if self._engine is not None:
            self._engine.cancel()

    def leave(self) -> None:
        """End this process at once if Spark computes on without it; otherwise `cancel`.

        A cancelled promotion is not left half done. The next run waits for what Spark computes. Called from a signal's
        handler.
        """
        if self._engine is not None and self._engine.goes_on:
            os._exit(128 + signal.SIGUSR1)
        self.cancel()

    def begin(self, now: datetime, on_event: Emit, *, only_looks: bool = False) -> None:
        """Begin another use case: read files again, and search again for what a crash left half promoted."""
        if self._engine is not None and self._engine.is_lost:
            engine, self._engine = self._engine, None
            engine.close()
        self.turn_to(now)
        self.on_event, self.only_looks, self.about = on_event, only_looks, frozenset()
        self.recovered, self._settled, self.began_at = (), False, datetime.now(UTC)
        self.cancellation.forget()

    def turn_to(self, now: datetime) -> None:
        self.now = now
        self.__dict__.pop("project", None)
        for fact in ("models", "external_tables", "undescribed_tables", "incomplete_tables"):
            self.__dict__.pop(fact, None)

    def reuse(self, project: Project) -> None:
        self.project = project

    @cached_property
    def project(self) -> Project:
        settings = self.settings
        isolation = settings.isolation.hiding(self.settings.folder)
        cache = Cache(settings.cache)
        options = LoadOptions(
            settings.gateways_from,
            isolation,
            cache,
            strict=False,
            proposed=self.proposed,
            open_engine=self._open_early,
            load_deployed=self._load_deployed,
            runs_code=settings.runs_code,
            gives_rows=settings.gives_rows,
            on_read=self.on_read,
        )
        project = self.__dict__["project"] = load_project(settings.root, self.now, settings.gateway, options)
        self._let_go_of_early_spark()
        return project

    @cached_property
    def lookups(self) -> Lookups:
        """What earlier plans worked out on this machine."""
        return Lookups(Cache(self.settings.cache))

    @property
    def shapes(self) -> ShapeMemory:
        """Queries that were analysed on this machine; what is new is kept by `lookups.keep`."""
        return ShapeMemory(self.lookups, reader_version())

    @property
    def store(self) -> StateStore:
        """The state database, upgraded to the present schema.

        Its first use finishes whatever a crash left half promoted, or reports it in a read-only workspace. Raise
        Refused if that is impossible and LeaseHeld while another process does it.
        """
        if self._store is None:
            from mergeplan.planner.state.store import StateStore

            name = self.settings.state_project or self.project.config.project
            self._store = StateStore(self._state_url(), name, Cache(self.settings.cache), migrates=self.migrates)
        if not self._settled:
            self._settled = True  # whoever finishes a promotion asks for the store, too
            try:
                from mergeplan.planner.session.unfinished import finish_promotions, report_unfinished

                if self.only_looks:
                    report_unfinished(self._store, self.on_event)
                else:
                    self.recovered += finish_promotions(self._store, lambda: self.engine, self.on_event, self.about)
            except BaseException:
                self._settled = False
                raise
        return self._store

    def release_store(self) -> StateStore:
        """Return the state database and leave it open when the workspace is closed; the caller closes it."""
        store, self._store = self.store, None
        return store

    def settle(self, lease: Lease) -> None:
        """Finish again what is half promoted now that the lease is held, because its previous holder may have died."""
        from mergeplan.planner.session.unfinished import finish_promotions

        self.recovered += finish_promotions(
            self.store, lambda: self.engine, self.on_event, self.about | {lease.name}, lease
        )

    def look(self) -> None:
        """Report half promoted environments; for who reads views, and needs nothing else of the state."""
        file = self._state_url().partition("?")[0].removeprefix("sqlite:///")
        if file.startswith("postgres") or Path(file).exists():
            try:
                _ = self.store
            except RequestError as error:
                self.on_event(StateUnknown(str(error)))

    @contextmanager
    def lease(self, name: str, holder: str, wait: float = LEASE_WAIT) -> Iterator[Lease]:
        """Wait for the right to change an environment; raise LeaseHeld, or Cancelled while it waits."""
        until = time.monotonic() + wait
        with ExitStack() as lease_stack:
            while True:
                remaining_seconds = until - time.monotonic()
                try:
                    lease = lease_stack.enter_context(
                        self.store.leases.hold(name, holder, wait=max(0.0, min(remaining_seconds, 1.0)))
                    )
                    break
                except LeaseHeld:
                    if remaining_seconds <= 1.0:
                        raise
                self.cancellation.check()
            yield lease

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            self._engine = self._open_gateways()
        return self._engine

    @property
    def has_engine(self) -> bool:
        """True when Spark has been needed already."""
        return self._engine is not None

    @property
    def is_warm(self) -> bool:
        """True when a Spark runs already that only has to be connected to."""
        if self.settings.open_engine is not None:
            return False
        config = self.project.config.gateways[self.project.gateway].connection
        return is_running(create_connection(config), self.settings.folder)

    @property
    def connection(self) -> Connection:
        return self._gateway_connection(self.project.gateway)

    @cached_property
    def external_tables(self) -> frozenset[str]:
        """The tables that models read and no file defines; raise ProjectError if models read each other in a cycle."""
        models = graph_of(self.project.models).models
        return frozenset(name for model in models.values() for name in model.depends_on if name not in models)

    @cached_property
    def undescribed_tables(self) -> frozenset[str]:
        """The tables that are declared for their freshness alone: their columns are those of the catalog."""
        declared = (model for model in self.project.models.values() if model.kind.is_external and not model.columns)
        return frozenset(model.name for model in declared if model.metadata.freshness)

    @cached_property
    def incomplete_tables(self) -> frozenset[str]:
        """Return the tables that are declared in part, and of which a query reads what is not declared."""
        models = self.project.models
        opened = {name for name, model in models.items() if model.open_columns}
        if not opened:
            return frozenset()
        from mergeplan.planner.project.lineage import FollowedModels

        followed = FollowedModels(graph_of(models), self.shapes)
        readers = (model for model in models.values() if opened & {*model.depends_on})
        unknown = [model for model in readers if followed[model.name].columns is None or followed[model.name].why_not]
        self.lookups.keep()  # a plan without changes analyses nothing else
        return frozenset(name for model in unknown for name in model.depends_on if name in opened)

    @cached_property
    def models(self) -> Mapping[str, Model]:
        """The project's models, and undefined tables that they read, as Spark's catalog describes them.

        A partly declared table is completed if a query reads more of it.
        """
        models = dict(self.project.models)
        for name in sorted(self.incomplete_tables):
            if columns := self.find_columns(name):
                declared = {column.name: column for column in models[name].columns}
                columns = tuple(declared.get(column.name, column) for column in columns)
                models[name] = replace(models[name], columns=columns, open_columns=False)
        for name in sorted(self.external_tables | self.undescribed_tables):
            columns = self.find_columns(name)
            if columns:
                model = models.get(name) or Model(name, Kind.EXTERNAL, "external_models.yaml", 0, "")
                models[name] = replace(model, columns=columns)
        return models

    def environment(self, name: str) -> Environment:
        """Return an environment; raise RequestError if it does not exist."""
        environment = self.store.environments.get(name)
        if not environment.exists:
            hint = f"`mergeplan plan {name}` makes it; `mergeplan environments` lists those that there are."
            raise RequestError(f"There is no environment `{name}`.", hint=hint)
        return environment

    def _gateway_connection(self, gateway: str) -> Connection:
        config = self.project.config.gateways[gateway].connection
        connection = create_connection(
            config,
            # Databricks brings Delta with it, and does not say so in its settings.
            formats=self._list_formats(self.project.models.values()) if config.type == "spark" else (),
            apart=self._formats_apart(),
            serves=any(model.python or model.schedule.signals for model in self.project.models.values()),
        )
        if is_embedded(connection) or config.type != "spark":
            return connection  # which remembers the formats of its tables itself
        # A table that is shown now may have a format that no file names any more, and Spark would misread it.
        shown = (snapshot.model for one in self.store.environments.all() for snapshot in one.snapshots.values())
        return replace(connection, formats=self._list_formats((*self.project.models.values(), *shown)))

    def _list_formats(self, models: Iterable[Model]) -> tuple[str, ...]:
        inside = self.project.catalogs.is_session
        stored = (model for model in models if model.kind.is_stored and inside(model.name))
        named: set[str | None] = {model.storage.table_format for model in stored}
        gateways = self.project.config.gateways.values()
        named |= {gateway.connection.table_format for gateway in gateways if gateway.connection.catalog is None}
        return tuple(table_format for table_format in TABLE_FORMATS if table_format in named)

    def _formats_apart(self) -> tuple[str, ...]:
        catalogs, models = self.project.catalogs, self.project.models.values()
        stored = (model for model in models if model.kind.is_stored and not catalogs.is_session(model.name))
        named = {model.storage.table_format for model in stored}
        read = (catalogs.catalog_of(name) for model in models for name in model.depends_on)
        named |= {catalog.table_format for catalog in read if catalog is not None}
        return tuple(table_format for table_format in TABLE_FORMATS if table_format in named)

    def _open_gateways(self) -> Engine:
        engine = self._start_engine(self.connection)
        gateways = self.project.config.gateways
        if len(gateways) == 1:
            return engine
        project_connection = gateways[self.project.gateway].connection
        return Gateways(
            engine,
            {name for name, gateway in gateways.items() if gateway.connection == project_connection},
            self._open_other_gateway,
        )

    def _open_early(self, config: Config, gateway: str, formats: frozenset[str]) -> Engine:
        if self._engine is None:
            connection = config.gateways[gateway].connection
            used_formats = [name for name in TABLE_FORMATS if name in formats] if connection.type == "spark" else []
            self._early = create_connection(connection, formats=tuple(used_formats))
            self._engine = self._start_engine(self._early)
        return self._engine

    def _load_deployed(self, config: Config, gateway: str) -> Mapping[str, Model]:
        """Return the models of prod while the project is still being read; none without a state."""
        url = self.settings.state_url or state_url_of(self.settings, config, gateway)
        file = url.partition("?")[0].removeprefix("sqlite:///")
        if not (file.startswith("postgres") or Path(file).exists()):
            return {}
        from mergeplan.planner.state.store import StateStore

        name = self.settings.state_project or config.project
        store = self._store or StateStore(url, name, migrates=self.migrates)
        try:
            return {name: snapshot.model for name, snapshot in store.environments.get(PROD).snapshots.items()}
        finally:
            if store is not self._store:
                store.close()

    def _let_go_of_early_spark(self) -> None:
        early, self._early = self._early, None
        if early is not None and (len(self.project.config.gateways) > 1 or self.connection != early):
            engine, self._engine = self._engine, None
            if engine is not None:
                engine.close()

    def _open_other_gateway(self, gateway: str) -> Engine:
        """Return the Spark of a model's gateway; raise RequestError if it is gone or cannot be used beside this one."""
        config = self.project.config
        problem = "it is not in config.yaml" if gateway not in config.gateways else ""
        if problem := problem or gateways_apart(config, self.project.gateway).get(gateway, ""):
            raise RequestError(f"A model of an environment is computed on the gateway `{gateway}`: {problem}.")
        return self._start_engine(self._gateway_connection(gateway))

    def _start_engine(self, connection: Connection) -> Engine:
        """Open a Spark; report one that takes seconds to start, unless the settings supply the engine."""
        settings = self.settings
        if settings.open_engine is not None:
            return settings.open_engine(connection, settings.folder, self.profile)
        from mergeplan.planner.engine.spark.engine import open_engine  # what drives Spark, only where Spark is needed
        from mergeplan.planner.engine.spark.open_session import starts_again

        is_restart = starts_again(connection, settings.folder)
        reported = is_restart or not is_running(connection, settings.folder)
        if reported:
            self.on_event(SparkStarting(is_restart))
        began = time.monotonic()
        engine = open_engine(connection, settings.folder, self.profile)
        if reported:
            self.on_event(SparkStarted(time.monotonic() - began))
        return engine

    def find_columns(self, name: str) -> tuple[Column, ...]:
        """Return the columns of a table as Spark's catalog knows them; none where there is no such table."""
        if self.project.catalogs.catalog_of(name) is None:
            return ()  # what applies the plan says which catalog is missing
        try:
            return self.engine.table_columns(name)
        except QueryError:
            return ()  # not there yet: the query that reads it will say so when it is tried

    def _state_url(self) -> str:
        if self.settings.state_url:
            return self.settings.state_url  # no file of the project is read for it
        return state_url_of(self.settings, self.project.config, self.project.gateway)


def create_connection(
    config: ConnectionConfig, *, formats: tuple[str, ...] = (), apart: tuple[str, ...] = (), serves: bool = False
) -> Connection:
    return Connection(
        conf=tuple(conf_of(config).items()),
        master=config.master,
        remote=config.remote,
        catalog=config.catalog,
        config_dir=config.config_dir,
        formats=formats,
        apart=apart,
        jars_dir=config.jars_dir,
        comments=config.register_comments,
        functions=tuple(sorted(config.extra_functions)),
        serves=serves,
    )


def load_state(work: Workspace) -> Loaded:
    """Return the time that every table holds, and an environment that shows it (prod before others)."""
    from mergeplan.planner.plan.schedule import Loaded
    from mergeplan.planner.state.intervals import LaterTimelines

    owners: dict[str, str] = {}
    for environment in sorted(work.store.environments.all(), key=lambda item: (item.name != "prod", item.name)):
        for snapshot in environment.snapshots.values():
            owners.setdefault(snapshot.table, environment.name)
    store, drifted = work.store, work.store.snapshots.tables_with_drift()
    timelines = LaterTimelines(lambda: store.intervals.load_timelines(store.tables.names() | owners.keys()))
    return Loaded(timelines, frozenset(owners), drifted, owners=owners)
