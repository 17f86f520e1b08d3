"""Creation of physical tables: empty ones, or over the files of those that a forward-only change replaces."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

from mergeplan.planner.apply.backfill.layout import Layout, locate_query_errors
from mergeplan.planner.apply.backfill.table_columns import columns_that_go_on, fit_query, table_columns
from mergeplan.planner.apply.context import ApplyContext
from mergeplan.planner.apply.events import Emit, Stage, StageSkipped, StageStarted, TableCreated
from mergeplan.planner.apply.physical_tables import hold_table, missing_tables, physical_table
from mergeplan.planner.apply.table_owner import check_owner
from mergeplan.planner.engine.formats.conditions import interval_condition
from mergeplan.planner.engine.protocol import Engine, ViewText
from mergeplan.planner.engine.table import OWNER, Table
from mergeplan.planner.errors import ProjectError, Refused
from mergeplan.planner.intervals import Timeline, intersect_intervals
from mergeplan.planner.model.model import Column
from mergeplan.planner.parsing.sql.macro_scope import CREATING
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Adoption, Change
from mergeplan.planner.plan.schedule import ONCE
from mergeplan.planner.plan.stages import CreateStage
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.store import StateStore
from mergeplan.planner.tables.batch_ids import as_recorded
from mergeplan.planner.tables.merge.merge import merge_query
from mergeplan.planner.tables.self_reference import empty_relation

HINT = "Allow its rows to be copied: `copy: true` in the file of `--file`, or `--copy`."


def create_tables(stage: CreateStage, plan: Plan, context: ApplyContext) -> tuple[tuple[str, ...], dict[str, int]]:
    """Create the missing tables; return them, and the lease tokens under which new ones were created.

    Raise ProjectError if the query of a changed model that keeps its table breaks its contract.
    """
    layout, changes = context.layout(plan), {change.name: change for change in stage.changes}
    taking_over = {change.new.table: change.takes_over for change in stage.changes if change.new and change.keeps_rows}
    missing = missing_tables(context.store, context.engine, stage.snapshots, taking_over)
    creation = Creation(layout, context.store, context.engine, context.holder, context.emit, context.pool, changes)
    if missing:
        context.emit(StageStarted(Stage.CREATE, len(missing)))
        creation.run(missing)
    created = {snapshot.name for snapshot in missing}
    for name, change in changes.items():
        if change.new and change.new.model.checks.contract and name not in created:
            table_columns(layout, context.engine, change.new)
    if not missing:
        context.emit(StageSkipped(Stage.CREATE, "all tables exist"))
    return tuple(snapshot.table for snapshot in missing), creation.untouched


@dataclass(frozen=True)
class Creation:
    """The creation of a layout's tables; forward-only `changes` take over the rows of the table that they replace."""

    layout: Layout
    store: StateStore
    engine: Engine
    holder: str  # of the leases
    emit: Emit
    pool: ThreadPoolExecutor  # a few dry runs, and then creations, at once
    changes: Mapping[str, Change]
    untouched: dict[str, int] = field(default_factory=dict)  # table that was created -> the token of the lease for it

    @cached_property
    def owner(self) -> str:
        return self.store.tables.owner()

    def run(self, snapshots: tuple[Snapshot, ...]) -> None:
        """Create the tables of these snapshots in waves, several at once.

        A wave has all tables whose parents exist, and all of them are dry-run before one is created. Raise QueryError
        at the model's file if Spark refuses a query, and ProjectError if declared columns are not the query's.
        """
        waiting = {snapshot.name: snapshot for snapshot in snapshots}
        while waiting:
            wave = [snapshot for name, snapshot in waiting.items() if not self.layout.reads(name) & waiting.keys()]
            columns = self.pool.map(lambda snapshot: table_columns(self.layout, self.engine, snapshot), wave)
            self._create_all(wave, list(columns))
            for snapshot in wave:
                del waiting[snapshot.name]

    def _create_all(self, wave: Sequence[Snapshot], query_columns: Sequence[tuple[Column, ...]]) -> None:
        settled = [
            columns_that_go_on(self.store, snapshot, self.changes.get(snapshot.name), columns)
            for snapshot, columns in zip(wave, query_columns, strict=True)
        ]
        for snapshot, _ in zip(wave, self.pool.map(self._create_one, wave, settled), strict=True):
            self.emit(TableCreated(snapshot.name, snapshot.table))

    def _create_one(self, snapshot: Snapshot, columns: tuple[Column, ...]) -> None:
        change = self.changes.get(snapshot.name)
        if change and change.adopts and not change.adopts.copies:
            self._adopt_table(snapshot, change.adopts, columns)
        elif change and change.keeps_rows and change.new == snapshot:
            self._take_over(change, columns)
        else:
            self._create_table(snapshot, columns)

    def _create_table(self, snapshot: Snapshot, columns: tuple[Column, ...]) -> None:
        name, layout, model = snapshot.table, self.layout, snapshot.model
        with hold_table(self.store, self.engine, name, self.holder, wait=60) as lease:
            recorded_table = self.store.tables.get(name)
            if recorded_table and recorded_table.garbage:
                self.engine.tables.drop(name)  # what the janitor began but did not finish
            with (
                locate_query_errors(model),
                self.engine.engine_for(model.gateway).separate_session(
                    *layout.statements_around(snapshot, CREATING, None)
                ),
            ):
                if snapshot.kind.is_view:
                    owner = ((OWNER, self.owner),)
                    view = ViewText(name, layout.query(model, None), model.metadata.description, columns, owner)
                    self.engine.catalog.swap_view(view)
                else:
                    is_new = self.engine.tables.create(self._own_table(snapshot, columns))
                    if not is_new and recorded_table is None:
                        check_owner([name], self.store, self.engine)
                    if is_new and (recorded_table is None or recorded_table.garbage):  # no environment shows it
                        self.untouched[name] = lease.token
                    self._dry_run_merge(snapshot, columns)
            read = layout.reads(snapshot.name) if snapshot.kind.is_view else ()
            self.store.tables.register(name, columns, [layout.tables[parent] for parent in read], lease=lease)

    def _take_over(self, change: Change, columns: tuple[Column, ...]) -> None:
        """Create the table of a forward-only change over the files of the one it replaces, and record what it holds.

        No process writes the old table meanwhile. The old table stays as long as the new one uses its files.
        """
        new, old, forward, store = change.new, change.old, change.forward, self.store
        assert new and old and forward
        with (
            hold_table(store, self.engine, new.table, self.holder, wait=60) as lease,
            hold_table(store, self.engine, old.table, self.holder, wait=60),
            locate_query_errors(new.model),
        ):
            record = store.tables.get(old.table)
            table, old_table = self._own_table(new, columns), physical_table(old, record.columns if record else ())
            if table.partition_columns != old_table.partition_columns:
                hint = "Rebuild the table: categorize the change as breaking."
                message = f"{new.name}: the type of a partition column changed, so its rows cannot stay."
                raise ProjectError(message, place=new.model.place, hint=hint)
            for interval in store.intervals.load_timelines([new.table])[new.table]:
                store.intervals.forget(new.table, interval, lease=lease)
            self.engine.tables.drop(new.table)  # what an earlier attempt left unfinished, or before the old one went on
            old_timeline = store.intervals.load_timelines([old.table])[old.table]
            rows = intersect_intervals(forward.rows, old_timeline)
            as_recorded(self.engine, old_table, old.model, old_timeline, self.layout.now)
            self.engine.tables.take_over(table, old.table, rows)
            self._record_copy(new, columns, old.table, rows, lease)

    def _adopt_table(self, new: Snapshot, adoption: Adoption, columns: tuple[Column, ...]) -> None:
        """Create the first table of a model over the files of an adopted one, and record what it holds.

        The adopted table is never written. Raise an error for any rows of it that the new table does not find, such as
        a partition whose folder has another name.
        """
        with (
            hold_table(self.store, self.engine, new.table, self.holder, wait=60) as lease,
            locate_query_errors(new.model),
        ):
            table = self._own_table(new, columns)
            self.engine.tables.drop(new.table)  # what an earlier attempt left unfinished
            self.engine.tables.take_over(table, adoption.place, adoption.rows)
            check_same_rows(self.engine, table, adoption)
            self._record_copy(new, columns, adoption.place, adoption.rows, lease)

    def _own_table(self, snapshot: Snapshot, columns: tuple[Column, ...]) -> Table:
        return replace(physical_table(snapshot, columns), owner=self.owner)

    def _record_copy(
        self, new: Snapshot, columns: tuple[Column, ...], old_table: str, rows: Timeline, lease: Lease
    ) -> None:
        with self.engine.engine_for(new.model.gateway).separate_session(
            *self.layout.statements_around(new, CREATING, None)
        ):
            self._dry_run_merge(new, columns)
        self.store.tables.register(new.table, columns, [old_table], lease=lease)
        for interval in rows:
            self.store.intervals.record(new.table, interval, lease=lease)

    def _dry_run_merge(self, snapshot: Snapshot, columns: tuple[Column, ...]) -> None:
        """Raise QueryError if Spark refuses the merge of a batch into the table."""
        model = snapshot.model
        if model.by_key.unique_key:
            query = self.layout.query(model, ONCE[0], empty_relation(columns) if model.reads_itself else "")
            engine = self.engine.engine_for(model.gateway)
            rows = fit_query(model, query, columns, engine)
            engine.schema(merge_query(model, rows, snapshot.table, columns, ONCE[0], self.layout.now))


def check_same_rows(engine: Engine, table: Table, adoption: Adoption) -> None:
    """Raise Refused if the new table shows more or fewer rows of the adopted time than the adopted one."""
    where = interval_condition(table, adoption.rows)
    table_engine = engine.engine_for(table.gateway)
    count_query = f"SELECT (SELECT count(*) FROM {table.name}), (SELECT count(*) FROM {adoption.place} WHERE {where})"
    table_rows, adopted_rows = table_engine.fetch(count_query).rows[0]
    if table_rows != adopted_rows:
        raise Refused(
            f"Of {adopted_rows} rows of `{adoption.place}` a table over its files shows {table_rows}: they are not "
            "in folders that are named after its partitions.",
            hint=HINT,
        )
