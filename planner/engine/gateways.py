"""Several gateways that see the same tables: each table is computed on the Spark that its model names.

Whatever concerns the catalog (schemas, views, drops) is done on the project's own gateway: all of them see it.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from mergeplan.planner.engine.analysis import Analysis, PairResult
from mergeplan.planner.engine.protocol import (
    Catalog,
    Engine,
    Expiry,
    Merge,
    MergeInto,
    Operation,
    Operations,
    ProjectConnection,
    Rows,
    TableStore,
    Written,
)
from mergeplan.planner.engine.table import Table
from mergeplan.planner.engine.table_files import TableFiles
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.model.model import Column
from mergeplan.planner.snapshot.content_hash import ColumnSet, Found


@dataclass(frozen=True)
class _Guard:
    """A check before the steps of a thread, on each engine that it uses meanwhile: some are opened only then."""

    check: Callable[[], None]
    stack: ExitStack
    engines: list[Engine] = field(default_factory=list)

    def enter(self, engine: Engine) -> None:
        if engine not in self.engines:
            self.engines.append(engine)
            self.stack.enter_context(engine.guarding(self.check))


class Gateways:
    """The project's own engine, which the names `same` mean, and those of gateways that write their models' tables."""

    def __init__(self, own: Engine, same: Collection[str], open_other: Callable[[str], Engine]) -> None:
        self._own, self._same, self._open_other = own, {"", *same}, open_other
        self._others: dict[str, Engine] = {}
        self._lock, self._thread = threading.RLock(), threading.local()
        self._tables = RoutedTables(self)

    @property
    def tables(self) -> TableStore:
        return self._tables

    @property
    def catalog(self) -> Catalog:
        return self._own.catalog

    def engine_for(self, gateway: str) -> Engine:
        """Return the engine of a gateway, opened on first use; '' is the project's own."""
        if gateway in self._same:
            return self._own
        with self._lock:
            if gateway not in self._others:
                self._others[gateway] = self._open_other(gateway)
            engine = self._others[gateway]
        for guard in self._guards:
            guard.enter(engine)
        return engine

    def open_engines(self) -> list[Engine]:
        """Return the open engines, the project's own first."""
        return [self._own, *self._others.values()]

    def separate_session(self, before: Sequence[str], after: Sequence[str]) -> AbstractContextManager[None]:
        return self._own.separate_session(before, after)

    @property
    def outlasts(self) -> bool:
        """True if the project's own gateway continues a write when its planner has gone."""
        return self._own.outlasts

    @property
    def goes_on(self) -> bool:
        """True while any gateway runs a write that continues when this process ends."""
        return any(engine.goes_on for engine in self.open_engines())

    @property
    def is_lost(self) -> bool:
        """True when the Spark of any open gateway is lost."""
        return any(engine.is_lost for engine in self.open_engines())

    @contextmanager
    def guarding(self, check: Callable[[], None]) -> Iterator[None]:
        with ExitStack() as stack:
            outer, guard = self._guards, _Guard(check, stack)
            for engine in self.open_engines():
                guard.enter(engine)
            self._thread.guards = (*outer, guard)
            try:
                yield
            finally:
                self._thread.guards = outer

    @property
    def _guards(self) -> tuple[_Guard, ...]:
        guards: tuple[_Guard, ...] = getattr(self._thread, "guards", ())
        return guards

    def reattaching(self, operations: Operations) -> AbstractContextManager[None]:
        return self._own.reattaching(operations)

    def end_operation(self, operation: Operation) -> None:
        for engine in self.open_engines():
            engine.end_operation(operation)

    def schema(self, sql: str) -> tuple[Column, ...]:
        return self._own.schema(sql)

    def table_columns(self, name: str) -> tuple[Column, ...]:
        return self._own.table_columns(name)

    def reads(self, sql: str) -> frozenset[str] | None:
        return self._own.reads(sql)

    def dry_run(self, sql: str) -> tuple[tuple[Column, ...], frozenset[str]]:
        return self._own.dry_run(sql)

    def fetch(self, sql: str, limit: int | None = None) -> Rows:
        return self._own.fetch(sql, limit)

    def scan_bytes(self, sql: str) -> int | None:
        return self._own.scan_bytes(sql)

    def explain(self, sql: str) -> str:
        return self._own.explain(sql)

    def compare_queries(self, analysis: Analysis, *, may_start: bool = True) -> tuple[PairResult, ...] | None:
        return self._own.compare_queries(analysis, may_start=may_start)

    def connect_project(self, path: Path, *, python: bool) -> ProjectConnection:
        return self._own.connect_project(path, python=python)

    def jobs(self) -> int:
        return sum(engine.jobs() for engine in self.open_engines())

    def cancel(self) -> None:
        for engine in self.open_engines():
            engine.cancel()

    def close(self) -> None:
        for engine in reversed(self.open_engines()):
            engine.close()


class RoutedTables:
    """The tables of several gateways: each verb on a table goes to its gateway.

    One Spark may remember what another one has overwritten: every other open engine has to forget it.
    """

    def __init__(self, gateways: Gateways) -> None:
        self._gateways = gateways

    def create(self, table: Table) -> bool:
        """Create the table on its gateway; no other engine remembers it yet."""
        return self._store_of(table).create(table)

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        self._store_of(table).take_over(table, old, rows)
        self._refresh_others(table)

    def replace(self, table: Table, sql: str, *, is_fresh: bool = False) -> Written:
        return self._finish_write(table, self._store_of(table).replace(table, sql, is_fresh=is_fresh))

    def replace_interval(self, table: Table, sql: str, interval: Interval) -> Written:
        return self._finish_write(table, self._store_of(table).replace_interval(table, sql, interval))

    def replace_partitions(self, table: Table, sql: str, *, first: Sequence[str] = (), others: bool = False) -> Written:
        return self._finish_write(
            table, self._store_of(table).replace_partitions(table, sql, first=first, others=others)
        )

    def overwrite(self, table: Table, sql: str, batch_id: str) -> Written:
        return self._finish_write(table, self._store_of(table).overwrite(table, sql, batch_id))

    def merge(self, table: Table, merge: Merge, batch_id: str, merge_into: MergeInto | None = None) -> Written:
        return self._finish_write(table, self._store_of(table).merge(table, merge, batch_id, merge_into))

    def unmerge(self, table: Table, batch_id: str) -> str:
        last_id = self._store_of(table).unmerge(table, batch_id)
        self._refresh_others(table)
        return last_id

    def load(self, table: Table, rows: Sequence[Sequence[str | None]], *, is_fresh: bool = False) -> Written:
        return self._finish_write(table, self._store_of(table).load(table, rows, is_fresh=is_fresh))

    def contents(self, table: Table, column_sets: Sequence[ColumnSet], interval: Interval | None = None) -> Found:
        return self._store_of(table).contents(table, column_sets, interval)

    def files(self, name: str, where: str = "") -> TableFiles | None:
        return self._gateways.engine_for("").tables.files(name, where)

    def version(self, name: str) -> str:
        return self._gateways.engine_for("").tables.version(name)

    def last_write(self, name: str) -> datetime | None:
        return self._gateways.engine_for("").tables.last_write(name)

    def size(self, name: str) -> int | None:
        return self._gateways.engine_for("").tables.size(name)

    def refresh(self, name: str) -> None:
        self._gateways.engine_for("").tables.refresh(name)

    def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
        return self._gateways.engine_for("").tables.expire(name, keep, now)

    def drop(self, name: str) -> None:
        self._gateways.engine_for("").tables.drop(name)

    def _store_of(self, table: Table) -> TableStore:
        return self._gateways.engine_for(table.gateway).tables

    def _finish_write(self, table: Table, result: Written) -> Written:
        self._refresh_others(table)
        return result

    def _refresh_others(self, table: Table) -> None:
        writer = self._gateways.engine_for(table.gateway)
        for engine in self._gateways.open_engines():
            if engine is not writer:
                engine.tables.refresh(table.name)
