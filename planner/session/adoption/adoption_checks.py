"""Whether a table that others made can be a model's first version: its columns, how it is laid out, and its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from mergeplan.planner.apply.backfill.layout import Layout
from mergeplan.planner.apply.backfill.table_columns import table_columns
from mergeplan.planner.apply.physical_tables import physical_table
from mergeplan.planner.checks.adopted_time import (
    HELD_BY_DECLARATION,
    Found,
    key_question,
    resolve_loaded_time,
    time_question,
)
from mergeplan.planner.engine.protocol import Engine, Standing
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import RequestError
from mergeplan.planner.intervals import Timeline
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.table_format import FORMATS
from mergeplan.planner.parsing.render import no_rows
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Adoption
from mergeplan.planner.plan.schedule import Window, whole_start
from mergeplan.planner.session.moments import parse_moment
from mergeplan.planner.snapshot.snapshot import Snapshot

ASIDE = "__adopted"  # what the name of a table ends with that made room for a view


@dataclass(frozen=True)
class Declared:
    """A table that is declared to hold the rows of a model; dates are texts."""

    model: str
    table: str
    start: str | None = None  # the first day that it holds whole
    end: str | None = None  # the last one
    copy: bool = False  # its rows may be copied


@dataclass(frozen=True)
class Checked:
    """A declared table as it was found, and why it cannot be taken over; '' and () is what was not looked at."""

    declared: Declared
    model: Model
    view: str  # of the model in prod
    plan: Plan
    copies: bool = False
    rows: int | None = None
    held: Timeline = ()
    follows: bool = False  # renamed, its files are moved
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def must_move(self) -> bool:
        """True when it stands where the view of its model will."""
        return self.declared.table == self.view

    def adoption(self, at: str) -> Adoption:
        """Return the adoption of a table without problems."""
        moved = f"{self.declared.table}{ASIDE}" if self.must_move else ""
        return Adoption(self.declared.table, self.held, self.copies, moved, at)

    def wrong(self, *problems: str) -> Checked:
        return replace(self, problems=(*self.problems, *problems))


def columns_over(
    plan: Plan, sources: Mapping[str, str], engine: Engine, snapshot: Snapshot, now: datetime
) -> tuple[Column, ...]:
    """Return the columns of a model's query over the declared tables; models without a table are inlined."""

    def standing_in(plan_snapshot: Snapshot) -> Snapshot:
        if plan_snapshot.name in sources:
            return replace(plan_snapshot, stored=sources[plan_snapshot.name])
        if (
            plan_snapshot.kind.is_external
            or plan_snapshot.name in plan.old.snapshots
            or plan_snapshot.name == snapshot.name
        ):
            return plan_snapshot
        model = plan_snapshot.model
        if not model.sql or model.reads_itself:  # a seed, code
            model = replace(model, sql=no_rows(model.columns), written=replace(model.written, text=""))
        return replace(plan_snapshot, model=replace(model, kind=Kind.EMBEDDED, python=None))

    snapshots = {name: standing_in(stored_snapshot) for name, stored_snapshot in plan.new.snapshots.items()}
    return table_columns(Layout(snapshots, plan.parents, now), engine, snapshot)


def check_table(
    engine: Engine,
    check: Checked,
    snapshot: Snapshot,
    query_columns: tuple[Column, ...],
    now: datetime,
    *,
    only_columns: bool = False,
) -> Checked:
    name = check.declared.table
    relation = engine.catalog.standing(name)
    if relation is None:
        return check.wrong(f"There is no table `{name}`.")
    result = replace(check, follows=relation.follows and not relation.is_view)
    if wrong := _wrong_columns(check.model, relation, query_columns):
        return result.wrong(*wrong)
    if relation.is_view and result.must_move:
        return result.wrong(f"`{name}` is a view: name the table behind it.")
    table = physical_table(snapshot, query_columns)
    if apart := _layout_apart(table, relation):
        if not check.declared.copy:
            return result.wrong(f"`{name}` cannot be adopted in place: {apart}. {_may_copy(check.model)}")
        result = replace(result, copies=True, notes=(f"Its rows are copied: {apart}.",))
    if result.must_move and engine.catalog.standing(f"{name}{ASIDE}"):
        return result.wrong(f"`{name}` must make room for a view, and `{name}{ASIDE}` is taken: rename that.")
    return result if only_columns else _rows_checked(engine, result, query_columns, now)


def _may_copy(model: Model) -> str:
    return f"Allow its rows to be copied: `--copy`, or `copy: true` in a file. That computes nothing of {model.name}."


def _wrong_columns(model: Model, there: Standing, query_columns: tuple[Column, ...]) -> tuple[str, ...]:
    table_types, model_types = {c.name: c.type for c in there.columns}, {c.name.lower(): c.type for c in query_columns}
    place, name = f"{model.path}:{model.line}", there.name
    missing_problems = [
        f"{place}: `{model.name}` returns `{column}` {kind}, which `{name}` lacks. Take it out of the model until that "
        "is adopted, and add it then."
        for column, kind in model_types.items()
        if column not in table_types
    ]
    extra_problems = [
        f"{place}: `{name}` has the column `{column}` {kind}, which `{model.name}` does not return: its readers would "
        "lose it. Return it from the model."
        for column, kind in table_types.items()
        if column not in model_types
    ]
    type_problems = [
        f"{place}: `{column}` is {table_types[column]} in `{name}` and {kind} in `{model.name}`. Cast it in the model."
        for column, kind in model_types.items()
        if column in table_types and table_types[column] != kind
    ]
    return (*missing_problems, *extra_problems, *type_problems)


def _layout_apart(table: Table, there: Standing) -> str:
    parts = tuple(column.column for column in table.partition_columns)
    cut = f"partitioned by {', '.join(there.partitioned_by)}" if there.partitioned_by else "not partitioned"
    if there.is_view:
        return "it is a view"
    if there.format != table.format:
        return f"its files are {there.format or 'unknown'}, the model's {table.format}"
    if there.format not in FORMATS or not FORMATS[there.format].shares_files:
        return f"{there.format} has no table over another one's files"
    if any(column.hidden for column in table.partition_columns):
        return f"it is {cut}, the model's table by a column of its own"
    if there.partitioned_by != parts:
        return f"it is {cut}, the model's table by {', '.join(parts) or 'nothing'}"
    return ""


def _rows_checked(engine: Engine, check: Checked, query_columns: tuple[Column, ...], now: datetime) -> Checked:
    model, name = check.model, check.declared.table
    rows = int(str(engine.fetch(f"SELECT count(*) FROM {name}").rows[0][0]))
    check = replace(check, rows=rows)
    if question := key_question(model, name):
        key, odd = ", ".join(model.by_key.unique_key), int(str(engine.fetch(question).rows[0][0]))
        if odd:
            return check.wrong(f"{odd} keys ({key}) of `{name}` are NULL or occur in several rows that are in force.")
    try:
        return _time_checked(engine, check, query_columns, now)
    except RequestError as error:
        return check.wrong(f"`{name}`: {error.message}")


def _time_checked(engine: Engine, check: Checked, query_columns: tuple[Column, ...], now: datetime) -> Checked:
    model, declared = check.model, check.declared
    snapshots = check.plan.new.snapshots
    graph = graph_of({name: snapshot_.model for name, snapshot_ in snapshots.items()})
    window = Window(now)
    start = parse_moment(declared.start, now) or whole_start(graph, model, window)
    end = parse_moment(declared.end, now, end=True)
    if end and end > now:
        raise RequestError(f"its last day, {declared.end}, is not over.")
    if model.kind.is_order_dependent and end is None:
        raise RequestError(HELD_BY_DECLARATION.format(kind=model.kind))
    units = Found()
    if model.kind.is_by_time:
        units = Found.parse(engine.fetch(time_question(model, query_columns, declared.table)).rows, model.cron)
    is_declared = bool(declared.start or declared.end)
    loaded_time, notes = resolve_loaded_time(
        model, units, start, min(end or window.due(model), window.due(model)), is_declared=is_declared
    )
    return replace(check, held=loaded_time, notes=(*check.notes, *notes))
