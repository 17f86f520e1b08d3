"""What edits do to physical plans: the old and the new query of each model explained over the same tables.

Both read the environment's tables, those of prod only where the environment has none, and the same interval: what
differs is the edit. A view, and an embedded model, stands as its query in those that read it, each as it was on its
side. Nothing is computed, and nothing that goes wrong here ends a run.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, cached_property

from mergeplan.planner.apply.physical_tables import physical_table
from mergeplan.planner.checks.diff.data_diff import Budget
from mergeplan.planner.checks.explained import NotUnderstood
from mergeplan.planner.checks.physical_diff import PhysicalDiff, compare_plans
from mergeplan.planner.checks.physical_plan import Known, KnownTables, PhysicalPlan, read_plan
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import QueryError
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.macros.expand import dates
from mergeplan.planner.parsing.render import render_model, stage_statements
from mergeplan.planner.parsing.sql.macro_scope import EVALUATING
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import PROD, parse_environment_name
from mergeplan.planner.snapshot.snapshot import Snapshot

MOST = 30  # models, those of most rows
SECONDS = 30.0  # for all of them together
MOMENT = timedelta(microseconds=1)
Snapshots = Mapping[str, Snapshot]
# Statements before a query that make its plan another one, and compute nothing.
_PREPARES = re.compile(r"\s*(?:SET\s+(?:spark\.|TIME\s)|RESET\s|CREATE\s)", re.IGNORECASE)


def physical_diffs_of_plan(work: Workspace, plan: Plan) -> Iterator[PhysicalDiff]:
    old = {change.old.name: change.old for change in plan.changes if change.old}
    return physical_diffs(work, {**plan.new.snapshots, **old}, plan.new.snapshots)


def physical_diffs_of_environment(work: Workspace, name: str) -> Iterator[PhysicalDiff]:
    """Yield a diff for each model whose query differs from prod's; raise RequestError if either does not exist."""
    environment, prod = work.environment(parse_environment_name(name)), work.environment(PROD)
    return physical_diffs(work, prod.snapshots, environment.snapshots)


def physical_diffs(work: Workspace, old: Snapshots, new: Snapshots) -> Iterator[PhysicalDiff]:
    sides = _Sides(work, old, new)
    edits = sides.edits()
    rows = work.store.costs.load([new[edit.model].table for edit in edits])
    edits.sort(key=lambda edit: -rows[table].rows if (table := new[edit.model].table) in rows else 0)
    table_lookup = cache(sides.find_table)
    budget = Budget(work.engine, SECONDS, 0, work.cancellation.check) if edits else None
    for number, edit in enumerate(edits):
        assert budget is not None
        work.cancellation.check()
        if number >= MOST:
            yield PhysicalDiff(edit.model, note=f"not compared: only the {MOST} largest models are")
        else:
            yield _compare_plans(edit, work.engine.engine_for(edit.gateway), table_lookup, budget)


@dataclass(frozen=True)
class _Query:
    sql: str
    before: tuple[str, ...] = ()
    computes: bool = False  # a statement before it does more than that


@dataclass(frozen=True)
class _Edit:
    """A model whose query runs otherwise than before."""

    model: str
    gateway: str
    old: _Query
    new: _Query


@dataclass
class _Sides:
    """What each model reads before and after, over the same tables; only what edited queries reach is looked up."""

    work: Workspace
    old: Snapshots
    new: Snapshots

    def edits(self) -> list[_Edit]:
        edited = [(self.old[name], self.new[name]) for name in sorted(filter(self._is_edited, self.new))]
        loaded = self.work.store.intervals.load_timelines({snapshot.table for pair in edited for snapshot in pair})
        edits = []
        for old, new in edited:
            interval = _choose_interval(new, loaded[new.table] or loaded[old.table])
            old_query, new_query = (
                self._build_query(snapshot, side, interval) for side, snapshot in enumerate((old, new))
            )
            if old_query != new_query:
                edits.append(_Edit(new.name, new.model.gateway, old_query, new_query))
        return edits

    def find_table(self, table: str) -> Known | None:
        """Return the model of a table that a plan names, by its name in lower case; None if no model has it."""
        snapshot = self._snapshots_by_table.get(table)
        if snapshot is None:
            return None
        stored_table = self.work.store.tables.get(snapshot.table) if snapshot.kind.is_stored else None
        if stored_table is None:
            return Known(snapshot.name)
        parts = physical_table(snapshot, stored_table.columns).parts
        cut = {part.column for part in parts if not part.hidden} | {snapshot.model.by_time.time_column}
        return Known(snapshot.name, frozenset(cut - {""}))

    @cached_property
    def _snapshots_by_table(self) -> Snapshots:
        gone = [snapshot for name, snapshot in self.old.items() if snapshot is not self.new.get(name)]
        return {snapshot.table.lower(): snapshot for snapshot in (*gone, *self.new.values())}

    def _is_edited(self, name: str) -> bool:
        """Return True for a model with a query on both sides if its text, or that of an inlined model, differs."""
        old, new = self.old.get(name), self.new[name]
        if old is None or (_is_same(old, new) and self._inline_model_edits.isdisjoint(new.model.depends_on)):
            return False
        return all(snapshot.model.sql and not snapshot.kind.is_embedded for snapshot in (old, new))

    @cached_property
    def _inline_model_edits(self) -> frozenset[str]:
        """The models that stand inside others and run otherwise than before, by their own words or what they read."""
        names = (name for name in self.old.keys() | self.new.keys() if self.old.get(name) is not self.new.get(name))
        edited_names = {
            name for name in names if not _is_same(*(_select_inlined(side.get(name)) for side in (self.old, self.new)))
        }
        inline_snapshots = [snapshot for snapshot in self.new.values() if _is_inlined(snapshot)] if edited_names else []
        while new_names := {
            e.name
            for e in inline_snapshots
            if e.name not in edited_names and edited_names.intersection(e.model.depends_on)
        }:
            edited_names |= new_names
        return frozenset(edited_names)

    def _build_query(self, snapshot: Snapshot, side: int, interval: Interval | None) -> _Query:
        model, (tables, inside) = snapshot.model, self._tables_read(snapshot.model, side)
        sql = render_model(model, tables, inside, interval, self.work.now)
        statements = [statement for statement in model.statements.pre_statements if EVALUATING in statement.stages]
        prepares = [statement for statement in statements if _PREPARES.match(statement.head)]
        if not statements:
            return _Query(sql)
        values = dates(interval, self.work.now)
        run = stage_statements(prepares, EVALUATING, self.new[model.name].table, values, tables, inside)
        return _Query(
            sql, run, computes=any(not statement.harmless and statement not in prepares for statement in statements)
        )

    def _tables_read(self, model: Model, side: int) -> tuple[Mapping[str, str], Mapping[str, Model]]:
        tables: dict[str, str] = {}
        inside: dict[str, Model] = {}
        names = [model.name, *model.depends_on]
        while names:
            name = names.pop()
            # A table is that of the new side for both; an inlined model is that of its side.
            new = self.new.get(name)
            snapshot = new if side or (new and not _is_inlined(new)) else self.old.get(name)
            if snapshot is None or name in tables or name in inside:
                continue
            if _is_inlined(snapshot):
                inside[name] = snapshot.model
                names += snapshot.model.depends_on
            else:
                tables[name] = snapshot.table
        return tables, inside


def _choose_interval(new: Snapshot, held_time: Timeline) -> Interval | None:
    """Return the interval to explain both for: the last unit that the table holds; all time of a whole one."""
    if not held_time:
        return None
    whole = Interval(held_time[0].start, held_time[-1].end)
    if not new.kind.is_incremental:
        return whole
    start = new.model.cron.cut(held_time[-1].end - MOMENT)
    return Interval(max(start, held_time[-1].start), held_time[-1].end)


def _is_inlined(snapshot: Snapshot) -> bool:
    return not snapshot.kind.is_stored and not snapshot.kind.is_external and bool(snapshot.model.sql)


def _select_inlined(snapshot: Snapshot | None) -> Snapshot | None:
    return snapshot if snapshot and _is_inlined(snapshot) else None


def _is_same(old: Snapshot | None, new: Snapshot | None) -> bool:
    return old is new or _query_texts(old) == _query_texts(new)


def _query_texts(snapshot: Snapshot | None) -> tuple[object, ...]:
    model = snapshot.model if snapshot else None
    return (model.sql, model.written.text, model.statements.pre_statements) if model else ()


def _compare_plans(question: _Edit, engine: Engine, known_tables: KnownTables, budget: Budget) -> PhysicalDiff:
    if question.old.computes or question.new.computes:
        return PhysicalDiff(question.model, note="not compared: a statement before its query computes something")
    plans: list[PhysicalPlan] = []
    for side_name, query in (("old", question.old), ("new", question.new)):
        physical_plan = _explain_query(query, side_name, engine, known_tables, budget)
        if isinstance(physical_plan, str):
            return PhysicalDiff(question.model, note=f"not compared: {physical_plan}")
        plans.append(physical_plan)
    return PhysicalDiff(question.model, compare_plans(plans[0], plans[1]))


def _explain_query(
    query: _Query, which: str, engine: Engine, known_tables: KnownTables, budget: Budget
) -> PhysicalPlan | str:
    """Read the plan of the old or new query, or return why it is not compared; raise Cancelled if the run is ended."""
    late = f"the {SECONDS:g} seconds for it were over"
    if budget.is_spent:
        return late
    try:
        with budget.enforce(), engine.separate_session(query.before, ()):
            return read_plan(engine.explain(query.sql), known_tables)
    except TimeoutError:
        return late
    except QueryError:
        return f"Spark does not explain its {which} query here"
    except NotUnderstood as error:
        return f"the plan of its {which} query is not understood ({error})"
