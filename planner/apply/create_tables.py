"""Physical tables before their rows: which there must be, with which columns, and creating them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

from sqlglot import exp

from planner.apply.events import Emit, TableCreated
from planner.engine.gateways import engine_of
from planner.engine.protocol import Engine, Table, time_partitioning
from planner.errors import Place, PlanMoved, ProjectError, QueryError
from planner.intervals import UNITS, Interval, Timeline, batches, between, intersection, merge, subtract
from planner.model.model import Column, Kind, Model, SignalCall
from planner.parsing.macros.expand import dates, spark_tree
from planner.parsing.render import no_rows, render, stage_statements, written_at
from planner.parsing.sql.macro_scope import CREATING
from planner.plan.change import Change
from planner.plan.forward_only import blocker_of, is_wider, schema_findings, settled
from planner.plan.schedule import ONCE
from planner.snapshot.snapshot import Snapshot
from planner.state.store import StateStore
from planner.tables.batch_ids import as_recorded
from planner.tables.merge.merge import merged
from planner.tables.partitioning import BATCH, check_columns, parts_of
from planner.tables.self_reference import nothing, own_columns

THREADS = 4  # dry runs at once
LEASE = "table:"
TIME_HINT = "Return the `time_column` from its query."


class PythonRows(Protocol):
    """What computes the rows of Python models."""

    def rows(
        self, model: Model, interval: Interval, tables: Mapping[str, str], execution: datetime
    ) -> AbstractContextManager[str]:
        """A query that returns the model's rows for an interval, good while this lasts."""

    def ready(self, calls: Sequence[SignalCall], batch: Timeline, model: Model, tables: Mapping[str, str]) -> Timeline:
        """The part of these intervals that all of the signals say is ready."""

    def stop(self) -> None:
        """End what runs now; whoever waits for it hears Cancelled."""


@dataclass(frozen=True)
class Layout:
    """Which physical table each model of an environment reads and writes; `now` is what its queries take for now."""

    snapshots: Mapping[str, Snapshot]
    parents: Mapping[str, tuple[str, ...]]
    now: datetime
    python: PythonRows | None = None  # what computes the models that are code

    @cached_property
    def tables(self) -> Mapping[str, str]:
        """Model -> the table or physical view that its readers read."""
        return {name: each.table for name, each in self.snapshots.items() if each.kind is not Kind.EMBEDDED}

    @cached_property
    def embedded(self) -> Mapping[str, Model]:
        """The models whose query stands inside their readers'."""
        return {name: each.model for name, each in self.snapshots.items() if each.kind is Kind.EMBEDDED}

    def query(self, model: Model, interval: Interval | None, own: str = "") -> str:
        """The model's query over physical tables, for an interval; of code only its columns, without rows. `own` is
        what a query reads under its own name."""
        if model.python is not None:
            return no_rows(model.columns)
        tables = {**self.tables, model.name: own} if own else self.tables
        return render(model, tables, self.embedded, interval, self.now)

    def written_at(self, model: Model, error: QueryError) -> Place | None:
        """Where in the model's file stands what Spark refuses in its query; None when that is not known."""
        return written_at(model, self.tables, self.embedded, error.line, error.column)

    def beside(self, snapshot: Snapshot, stage: str, interval: Interval | None) -> tuple[Sequence[str], Sequence[str]]:
        """The statements that run before and after a model's query, at a stage."""
        model, values = snapshot.model, dates(interval, self.now)
        before, after = (
            stage_statements(listed, stage, snapshot.table, values, self.tables, self.embedded)
            for listed in (model.pre_statements, model.post_statements)
        )
        return before, after

    @contextmanager
    def rows(self, model: Model, interval: Interval) -> Iterator[str]:
        """A query that returns the model's rows for an interval, good while this lasts; code is run for it."""
        if model.python is None:
            yield self.query(model, interval)
            return
        assert self.python is not None
        with self.python.rows(model, interval, self.tables, self.now) as sql:
            yield sql

    def awaited(
        self, model: Model, cut: tuple[Interval, ...], copies: Timeline
    ) -> tuple[tuple[Interval, ...], Timeline]:
        """Of a model's batches those that its signals say are ready, and the time that is not; what is copied from
        another table of the model waits for nothing."""
        copied = tuple(each for each in cut if not subtract((each,), copies))
        asked = merge(each for each in cut if each not in copied)
        if not model.signals or not asked:
            return cut, ()
        assert self.python is not None
        late = subtract(asked, self.python.ready(model.signals, asked, model, self.tables))
        if not late:
            return cut, ()
        if not model.kind.is_incremental:
            return copied, asked
        if model.goes_in_order:  # what comes later builds on what is late
            late = subtract(asked, between(asked[0].start, late[0].start))
        return (*copied, *batches(model.cron, subtract(asked, late), model.batch_size)), late

    def reads(self, name: str) -> frozenset[str]:
        """The models whose tables a model's query reads, through embedded ones."""
        found: set[str] = set()
        for parent in self.parents.get(name, ()):
            found |= self.reads(parent) if parent in self.embedded else {parent}
        return frozenset(found)

    def sources(self, name: str) -> frozenset[str]:
        """The tables that hold the rows that a model's query reads, through views too."""
        found: set[str] = set()
        for parent in self.reads(name):
            if parent in self.snapshots and self.snapshots[parent].kind is Kind.VIEW:
                found |= self.sources(parent)
            elif parent in self.tables:
                found.add(self.tables[parent])
        return frozenset(found)


def table_lease(table: str) -> str:
    """The name of the lease under which a physical table is created, written and dropped."""
    return f"{LEASE}{table}"


def physical_table(snapshot: Snapshot, columns: tuple[Column, ...]) -> Table:
    """The table of a snapshot whose columns are known: cut by time when its kind is, and as `partitioned_by` says."""
    model = snapshot.model
    table = Table(
        snapshot.table,
        columns,
        comment=model.description,
        format=model.storage_format,
        options=model.physical_properties,
        parts=parts_of(model, columns),
        listed=model.kind in (Kind.INCREMENTAL_BY_PARTITION, Kind.INCREMENTAL_UNMANAGED),
        sorted_by=model.clustered_by,
        gateway=model.gateway,
    )
    if model.kind is Kind.INCREMENTAL_UNMANAGED and not model.insert_overwrite:
        return replace(table, parts=(BATCH, *table.parts))
    if model.kind is not Kind.INCREMENTAL_BY_TIME_RANGE:
        return table
    seconds, hidden = UNITS[model.cron.unit], not model.partition_by_time_column
    cut = time_partitioning(columns, model.time_column, model.time_format, seconds, hidden=hidden)
    return replace(table, partitioning=cut)


def missing_tables(store: StateStore, engine: Engine, snapshots: Iterable[Snapshot]) -> tuple[Snapshot, ...]:
    """The snapshots, in their order, whose physical table must be created.

    PlanMoved when a table that should hold rows was taken away behind our back: it is forgotten, and a new plan
    builds it again.
    """
    wanted = [snapshot for snapshot in snapshots if snapshot.kind.has_view]
    known = {name: table for name, table in store.physical_tables().items() if not table.garbage and table.columns}
    there = {f"{schema}.{name}" for schema in _schemas(wanted) for name in engine.objects(schema)}
    lost = [s.table for s in wanted if s.table in known and s.table.lower() not in there]
    if any(store.loaded(lost).values()):
        store.forget_tables(lost)
        raise PlanMoved(
            f"The table `{lost[0]}` is no longer in the catalog.", hint="Plan again: it will be built again."
        )
    return tuple(s for s in wanted if s.table not in known or s.table in lost)


def create_tables(
    layout: Layout,
    store: StateStore,
    engine: Engine,
    snapshots: tuple[Snapshot, ...],
    holder: str,
    emit: Emit,
    changes: Mapping[str, Change] = MappingProxyType({}),
) -> None:
    """Create the tables of these snapshots in waves: all whose parents stand are dry-run before one of them is created.
    Those whose `changes` are forward-only take over the rows of the table that they replace.

    QueryError at the model's file when Spark refuses a query, ProjectError when declared columns are not the query's.
    """
    waiting = {snapshot.name: snapshot for snapshot in snapshots}
    while waiting:
        wave = [snapshot for name, snapshot in waiting.items() if not layout.reads(name) & waiting.keys()]
        with ThreadPoolExecutor(THREADS, thread_name_prefix="dry-run") as pool:
            columns = list(pool.map(lambda snapshot: _columns(layout, engine, snapshot), wave))
        columns = [_going_on(store, s, changes.get(s.name), found) for s, found in zip(wave, columns, strict=True)]
        for snapshot, found in zip(wave, columns, strict=True):
            change = changes.get(snapshot.name)
            if change and change.keeps_rows and change.new == snapshot:
                _take_over(layout, store, engine, change, found, holder)
            else:
                _create(layout, store, engine, snapshot, found, holder)
            emit(TableCreated(snapshot.name, snapshot.table))
            del waiting[snapshot.name]


def _create(
    layout: Layout, store: StateStore, engine: Engine, snapshot: Snapshot, columns: tuple[Column, ...], holder: str
) -> None:
    name = snapshot.table
    with store.lease(table_lease(name), holder, wait=60) as lease:
        known = store.physical_table(name)
        if known and known.garbage:
            engine.drop_table(name)  # what the janitor began, and did not live to finish
        own = engine_of(engine, snapshot.model.gateway)
        with at_model(snapshot.model), own.beside(*layout.beside(snapshot, CREATING, None)):
            if snapshot.kind is Kind.VIEW:
                engine.swap_view(name, layout.query(snapshot.model, None), snapshot.model.description, columns)
            else:
                engine.create_table(physical_table(snapshot, columns))
                _dry_run_merge(layout, own, snapshot, columns)
        reads = [layout.tables[parent] for parent in layout.reads(snapshot.name)] if snapshot.kind is Kind.VIEW else []
        store.register_table(name, columns, reads, lease=lease)


def _dry_run_merge(layout: Layout, engine: Engine, snapshot: Snapshot, columns: tuple[Column, ...]) -> None:
    """QueryError when Spark refuses the merge of a batch into the table."""
    model = snapshot.model
    if model.unique_key:
        query = layout.query(model, ONCE[0], nothing(columns) if model.reads_itself else "")
        engine.schema(merged(model, query, snapshot.table, columns, ONCE[0], layout.now))


def _going_on(
    store: StateStore, snapshot: Snapshot, change: Change | None, found: tuple[Column, ...]
) -> tuple[Column, ...]:
    """The columns of a table that goes on with another one's rows, or shows that it will; ProjectError at the model's
    file when a column goes, comes or changes its type in a way that the model does not allow."""
    forward = change.forward if change else None
    if change is None or change.old is None or forward is None or not forward.rows:
        return found
    old = store.physical_table(change.old.table)
    before, model = old.columns if old else (), snapshot.model
    columns = settled(before, found, forward.destructive, forward.additive)
    for finding in schema_findings(_names(before), _names(columns), forward.destructive, forward.additive):
        if finding.policy == "error":
            blocker = blocker_of(model, finding)
            raise ProjectError(blocker.message, place=blocker.place)
    for column in columns:
        for was in store.types_of(change.old.table, column.name):
            if not is_wider(was, column.type):
                raise _unreadable(model, column.name, was, column.type)
    return columns


def _unreadable(model: Model, column: str, was: str, now: str) -> ProjectError:
    return ProjectError(
        f"{model.name}: the rows that a forward-only change keeps hold `{column}` as {was}, and Spark cannot read that "
        f"as {now}.",
        place=model.place,
        hint="Give the column another name, or rebuild the table: categorize the change as breaking.",
    )


def _names(columns: tuple[Column, ...]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def _take_over(
    layout: Layout, store: StateStore, engine: Engine, change: Change, columns: tuple[Column, ...], holder: str
) -> None:
    """Create the table of a forward-only change over the files of the one it replaces, and record what it holds.

    Nobody writes the old one meanwhile. The old one stays for as long as the new one stands on its files.
    """
    new, old, forward = change.new, change.old, change.forward
    assert new and old and forward
    with (
        store.lease(table_lease(new.table), holder, wait=60) as lease,
        store.lease(table_lease(old.table), holder, wait=60),
        at_model(new.model),
    ):
        known = store.physical_table(old.table)
        table, before = physical_table(new, columns), physical_table(old, known.columns if known else ())
        if table.cut != before.cut:
            hint = "Rebuild the table: categorize the change as breaking."
            message = f"{new.name}: the type of a column changed by which its table is cut; its rows cannot stay so."
            raise ProjectError(message, place=new.model.place, hint=hint)
        engine.drop_table(new.table)  # what an earlier attempt left unfinished
        held = store.loaded([old.table])[old.table]
        rows = intersection(forward.rows, held)
        as_recorded(engine, before, old.model, held)
        engine.take_over(table, old.table, rows)
        own = engine_of(engine, new.model.gateway)
        with own.beside(*layout.beside(new, CREATING, None)):
            _dry_run_merge(layout, own, new, columns)
        store.register_table(new.table, columns, [old.table], lease=lease)
        for interval in rows:
            store.record_interval(new.table, interval, lease=lease)


def shaped(query: str, given: tuple[Column, ...], columns: tuple[Column, ...]) -> str:
    """The query with the columns of a table that goes on with those that were there: NULL in what it does not give."""
    if {c.name for c in given} == {c.name for c in columns}:
        return query
    names = {column.name for column in given}
    wanted = (f"`{c.name}`" if c.name in names else f"CAST(NULL AS {c.type}) AS `{c.name}`" for c in columns)
    return f"SELECT {', '.join(wanted)} FROM (\n{query.rstrip().rstrip(';')}\n)"


def _columns(layout: Layout, engine: Engine, snapshot: Snapshot) -> tuple[Column, ...]:
    """The columns as Spark says, with declared types and comments; for a seed those that were declared."""
    model = snapshot.model
    if model.kind is Kind.SEED:
        assert model.seed is not None
        found = model.columns or tuple(Column(name, "string") for name in model.seed.header)
    else:
        before, _ = layout.beside(snapshot, CREATING, ONCE[0])
        own = engine_of(engine, model.gateway)
        with at_model(model, layout), own.beside(before, ()):
            itself = nothing(_own_columns(layout, own, model)) if model.reads_itself else ""
            sql = layout.query(model, ONCE[0], itself)
            found = _declared(model, own.schema(sql))
            if model.sql:
                checked_reads(model, own, sql)
    if model.kind is Kind.INCREMENTAL_BY_TIME_RANGE and model.time_column not in (column.name for column in found):
        raise ProjectError(f"{model.name} has no column `{model.time_column}`.", place=model.place, hint=TIME_HINT)
    check_columns(model, found)
    comments = dict(model.column_descriptions)
    return tuple(Column(c.name, c.type, comments.get(c.name, "")) for c in (*found, *model.kept_columns))


def _own_columns(layout: Layout, engine: Engine, model: Model) -> tuple[Column, ...]:
    return own_columns(model, lambda own: engine.schema(layout.query(model, ONCE[0], own)))


def _declared(model: Model, found: tuple[Column, ...]) -> tuple[Column, ...]:
    if not model.columns or model.kind is Kind.VIEW:
        return found
    names, declared = [column.name for column in found], [column.name for column in model.columns]
    for ours, theirs, text in ((declared, names, "declares"), (names, declared, "does not declare")):
        if odd := sorted(set(ours) - set(theirs)):
            other = "its query does not return" if text == "declares" else "its query returns"
            hint = "Make `columns` and the query agree."
            raise ProjectError(
                f"{model.name} {text} the column `{odd[0]}`, which {other}.", place=model.place, hint=hint
            )
    return model.columns


@contextmanager
def at_model(model: Model, layout: Layout | None = None) -> Iterator[None]:
    """A QueryError from within is one at the model's file; with the layout, which knows the text that ran, at the line
    and the column of its query."""
    try:
        yield
    except QueryError as error:
        if error.place is None:
            error.place = (layout.written_at(model, error) if layout else None) or model.place
        raise


def checked_reads(model: Model, engine: Engine, sql: str) -> None:
    """ProjectError where Spark would read a table that the parser did not see: nobody would know that it is read."""
    told = engine.reads(sql)
    seen = {".".join(part.name for part in table.parts).lower() for table in spark_tree(sql).find_all(exp.Table)}
    if told is None or (unseen := sorted(told - seen)):
        what = f"`{unseen[0]}`" if told is not None else "more than it names"
        message = f"Spark reads {what} in the query of {model.name}, which mergeplan does not."
        raise ProjectError(message, place=model.place, hint="Write the query in another way, with each table in FROM.")


def _schemas(snapshots: Iterable[Snapshot]) -> list[str]:
    return sorted({snapshot.table.rpartition(".")[0] for snapshot in snapshots})
