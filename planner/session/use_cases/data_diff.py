"""data diff: what the changes of an environment do to the rows of its models, prod against it, over the same time."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from mergeplan.planner.apply.physical_tables import physical_table
from mergeplan.planner.checks.diff.data_diff import (
    Budget,
    ModelDiff,
    Question,
    Side,
    data_diff,
    join_notes,
    nullability,
)
from mergeplan.planner.checks.diff.table_diff import SchemaDiff, schema_diff
from mergeplan.planner.contract.base import Detail
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import RequestError
from mergeplan.planner.intervals import (
    UNITS,
    Interval,
    Timeline,
    intersect_intervals,
    merge_intervals,
    subtract_intervals,
)
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.selection import is_selected
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.session.options import DETAILS, DataDiffOptions
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.content_hash import WHOLE, Contents, equal_periods
from mergeplan.planner.snapshot.environment import PROD, parse_environment_name
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.physical_tables import PhysicalTable, are_ours

Pair = tuple[Snapshot, Snapshot]  # a model as it is in prod, and in the environment


def pairs_of_plan(plan: Plan) -> tuple[Pair, ...]:
    return _select_rebuilt_pairs((change.old, change.new) for change in plan.changes)


def pairs_of_environment(work: Workspace, name: str, against: str = PROD) -> tuple[Pair, ...]:
    """Return the models that show other tables in two environments; raise RequestError if either does not exist."""
    environment, base = (work.environment(parse_environment_name(shown)) for shown in (name, against))
    return _select_rebuilt_pairs(
        (base.snapshots.get(model), snapshot) for model, snapshot in environment.snapshots.items()
    )


def _select_rebuilt_pairs(pairs: Iterable[tuple[Snapshot | None, Snapshot | None]]) -> tuple[Pair, ...]:
    complete_pairs = ((old, new) for old, new in pairs if old is not None and new is not None)
    return tuple(
        (old, new)
        for old, new in complete_pairs
        if old.kind.is_stored and new.kind.is_stored and old.table != new.table
    )


def data_diffs(
    work: Workspace, pairs: Sequence[Pair], names: tuple[str, str], options: DataDiffOptions
) -> Iterator[ModelDiff]:
    """Yield the difference of each model; raise RequestError for one without two tables and for a wrong condition."""
    chosen = _select_pairs(pairs, options.models)
    contents = _load_contents(work, pairs)
    budget = Budget(work.engine, options.seconds, options.rows, work.cancellation.check)
    for pair in chosen:
        work.cancellation.check()
        tables, detail = contents.tables_of(pair), detail_of(pair, options.detail)
        if tables is None or detail == "off":
            yield _skip_comparison(pair, tables)
            continue
        question = Question(
            pair[1].model,
            (Side(tables[0]), Side(tables[1])),
            names,
            where=options.where,
            samples=options.samples if detail == "sample" else 0,
            shown=frozenset(name.lower() for name in options.unmasked),
            by_files=are_ours(contents.known, [snapshot.table for snapshot in pair]),
            note=f"its inputs hold fewer days here than in {names[0]}" if pair[1].name in contents.partial else "",
        )
        diff = data_diff(work.engine, _restrict_to_common_time(pair, question, contents), budget)
        yield replace(diff, nullability=nullability(*_pair_models(pair)))


def detail_of(pair: Pair, rules: Sequence[tuple[str, Detail]]) -> Detail:
    """Return the lesser detail of a model in prod and here: an edit of its tags here shows no more than before."""
    models = _pair_models(pair)
    fitting = ([rule[1] for rule in rules if is_selected(rule[0], m.name, m.metadata.tags)] for m in models)
    return min((details[-1] if details else DETAILS[0] for details in fitting), key=DETAILS.index)


def _pair_models(pair: Pair) -> tuple[Model, Model]:
    return pair[0].model, pair[1].model


def _select_pairs(pairs: Sequence[Pair], models: Collection[str]) -> Sequence[Pair]:
    pairs_by_name = {new.name: (old, new) for old, new in pairs}
    for name in models:
        if name.lower() not in pairs_by_name:
            hint = (
                did_you_mean(name, pairs_by_name, most=12)
                if pairs_by_name
                else "No model has another table than in prod."
            )
            raise RequestError(f"`{name}` has no table here that differs from prod's.", hint=hint)
    return [pairs_by_name[name.lower()] for name in models] if models else pairs


def _skip_comparison(pair: Pair, tables: tuple[Table, Table] | None) -> ModelDiff:
    name, changed = pair[1].name, nullability(*_pair_models(pair))
    if tables is None:
        return ModelDiff(name, SchemaDiff(), changed, note="not compared: its table is not built")
    schema = schema_diff(tables[0].columns, tables[1].columns)
    return ModelDiff(name, schema, changed, note="not compared: `data_diff` is off for it", is_off=True)


@dataclass(frozen=True)
class _Held:
    """The facts about the tables that need no Spark: their columns, their time, and hashes of their rows."""

    known: Mapping[str, PhysicalTable]
    loaded: Mapping[str, Timeline]
    contents: Mapping[str, Contents]
    partial: frozenset[str]  # models that read less time here than in prod

    def tables_of(self, pair: Pair) -> tuple[Table, Table] | None:
        tables = [self.known.get(snapshot.table) for snapshot in pair]
        if any(table is None or table.garbage or not self.loaded[table.name] for table in tables):
            return None
        first, second = (physical_table(s, table.columns) for s, table in zip(pair, tables, strict=True) if table)
        return first, second

    def equal_rows(self, question: Question, periods: Collection[str]) -> Mapping[str, int]:
        names = [{column.name for column in side.table.columns} for side in question.sides]
        if names[0] != names[1]:
            return {}
        columns = tuple(sorted(names[0]))
        first, second = (self.contents[side.table.name] for side in question.sides)
        contents_by_period = first.period_contents(columns)
        return {period: contents_by_period[period].rows for period in equal_periods(first, second, columns, periods)}


def _load_contents(work: Workspace, pairs: Sequence[Pair]) -> _Held:
    names = [snapshot.table for pair in pairs for snapshot in pair]
    loaded, store = work.store.intervals.load_timelines(names), work.store
    return _Held(store.tables.all(), loaded, store.contents.load(names), _reading_less(pairs, loaded))


def _reading_less(pairs: Sequence[Pair], timelines: Mapping[str, Timeline]) -> frozenset[str]:
    """Return the models whose rows come from fewer days here than in prod without being partitioned by them."""
    shorter = {
        n.name for o, n in pairs if n.kind.is_by_time and subtract_intervals(timelines[o.table], timelines[n.table])
    }
    models = {new.name: new.model for _, new in pairs}
    names = frozenset[str]()
    for name in graph_of(models).order:
        model = models[name]
        if names.intersection(model.depends_on) or (
            shorter.intersection(model.depends_on) and not model.kind.is_by_time
        ):
            names |= {name}
    return names


def _restrict_to_common_time(pair: Pair, question: Question, held_state: _Held) -> Question:
    first, second = (side.table for side in question.sides)
    timelines = held_state.loaded[first.name], held_state.loaded[second.name]
    by, unit = second.partitioning, first.partitioning and first.partitioning.unit_seconds
    if by is None or by.unit_seconds != unit:
        if pair[1].kind.is_incremental and timelines[0] != timelines[1]:
            question = replace(
                question, note=join_notes(question.note, "the tables hold different time, and all of it is compared")
            )
        rows = None if question.where else held_state.equal_rows(question, {WHOLE}).get(WHOLE)
        return question if rows is None else replace(question, equal_rows=rows, is_equal=True)
    days = intersect_intervals(*timelines)
    periods = {period for day in days for period in by.periods(day)}
    equal = {} if question.where else held_state.equal_rows(question, periods)
    step = timedelta(seconds=min(by.unit_seconds, UNITS["day"]))
    starts = (datetime.fromisoformat(period).replace(tzinfo=UTC) for period in equal)
    remaining_days = subtract_intervals(days, merge_intervals(Interval(start, start + step) for start in starts))
    sides = Side(first, remaining_days), Side(second, remaining_days)
    question = replace(question, sides=sides, days=days, left_out=subtract_intervals(timelines[0], days))
    return replace(question, equal_rows=sum(equal.values()), is_equal=bool(days and not remaining_days))
