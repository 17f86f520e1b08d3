"""Reasons that forbid a plan: models that read what the change removes, and rows or history that it would lose."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.intervals import (
    UNITS,
    Timeline,
    build_timeline,
    intersect_intervals,
    merge_intervals,
    subtract_intervals,
)
from mergeplan.planner.model.graph import Graph
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.table_format import FORMATS
from mergeplan.planner.naming import field_names
from mergeplan.planner.parsing.named_columns import find_undeclared_column, find_unknown_column
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.plan.change import Blocker, Category, Change, ChangeKind, Columns
from mergeplan.planner.plan.schedule import Loaded, Window, contiguous_end, whole_start
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.wording import count_noun


def find_column_problem(
    graph: Graph, model: Model, shape: Shape | None, effects: Mapping[str, Columns], known_columns: Iterable[str] = ()
) -> Blocker | ProjectError | None:
    """Return an error for a column that no parent has, or a blocker for one that a parent loses in this change."""
    if shape is None or shape.unresolved is None:
        return None
    column = shape.unresolved
    place = model.locate(column)
    # two cases, because the second is fixed where the column was removed and not where it is read
    incomplete = next((p for p in graph.parents[model.name] if column in effects[p].removed), None)
    if incomplete:
        message = f"`{model.name}` reads `{column}`, which this change removes from `{incomplete}`."
        return Blocker(message, place)
    parents = ", ".join(f"`{p}`" for p in graph.parents[model.name]) or "any table it reads"
    hint = did_you_mean(column, known_columns, most=12) or "Name a column that is there."
    message = f"`{model.name}` reads the column `{column}`, which is not in {parents}."
    return ProjectError(message, place=place, hint=hint)


def find_emptied_project(graph: Graph, base: Mapping[str, Snapshot]) -> tuple[Blocker, ...]:
    """Return a blocker for another project than that of prod, or a checkout that lacks a folder."""
    shown = {name: snapshot.model for name, snapshot in base.items() if snapshot.kind.has_view}
    current = {name: model for name, model in graph.models.items() if model.kind.has_view}
    paths = ({model.path for model in models.values()} for models in (shown, current))
    if not shown or shown.keys() & current.keys() or set.intersection(*paths):
        return ()
    message = f"The project has none of the {count_noun(len(shown), 'model')} of `prod`: all would be removed."
    hint = "Check that `models` is there and that no other project has this state (`project` in config.yaml)"
    return (Blocker(f"{message} {hint}; to replace them on purpose, leave one model."),)


def readers_of_removed(graph: Graph, base: Mapping[str, Snapshot]) -> list[Blocker]:
    verbs = dict.fromkeys(base.keys() - graph.models.keys(), "removes")
    for name, old in base.items():  # its view goes, and no table can have that name yet
        current = graph.models.get(name)
        if current and current.kind.is_external and old.kind.has_view:
            # an undeclared one is our own view, found in the catalog
            verbs[name] = "turns from a model into an external table" if current.line else "removes"
    return [
        Blocker(
            f"`{name}` still reads `{gone}`, which this change {verbs[gone]}.",
            graph.models[name].locate(gone.rpartition(".")[2]),
        )
        for name in graph.order
        for gone in graph.models[name].depends_on
        if gone in verbs
    ]


def find_column_errors(changes: Iterable[Change]) -> list[ProjectError]:
    """Return an error for each new table or edited audit that names columns which its query is known to lack."""
    errors = []
    for change in changes:
        snapshot = change.new
        if snapshot is None or snapshot.columns is None or not snapshot.kind.is_stored:
            continue
        model, old = snapshot.model, change.old
        if old is None or old.table != snapshot.table or old.model.checks.audits != model.checks.audits:
            added_names = {column.name for column in model.history_columns}
            columns = [column for column in snapshot.columns if column not in added_names]
            if error := find_undeclared_column(model, columns) or find_unknown_column(model, columns):
                errors.append(error)
    return errors


def find_unwritable_names(changes: Iterable[Change]) -> list[Blocker]:
    blockers = []
    for change in changes:
        snapshot = change.new
        if snapshot is None or (change.old is not None and change.old.table == snapshot.table):
            continue
        model, form = snapshot.model, FORMATS.get(snapshot.model.storage.table_format)
        if form is None or not snapshot.kind.is_stored:
            continue
        names = [*(snapshot.columns or ()), *(column.name for column in (*model.columns, *model.history_columns))]
        names += [field for column in model.columns for field in field_names(column.type)]
        if name := next((name for name in names if not form.can_have(name, model.settings)), None):
            message = (
                f"A table of {form.title} has no column `{name}`: spaces and `,;{{}}()=` are not allowed in a name."
            )
            hint = f"Rename it, or set `{form.permitting}: name` in `config` of the gateway."
            blockers.append(Blocker(f"{message} {hint}", model.locate(name)))
    return blockers


def find_lost_hours(changes: Iterable[Change]) -> list[Blocker]:
    """Return a warning for each new table that is filled by the hour, and whose time column tells no hours.

    The rows of a day are at its first moment, so only the batch of the first hour writes them.
    """
    warnings = []
    for change in changes:
        snapshot = change.new
        if snapshot is None or not snapshot.kind.is_by_time or (change.old and change.old.table == snapshot.table):
            continue
        model, by_time = snapshot.model, snapshot.model.by_time
        type_ = dict(snapshot.meaning.types).get(by_time.time_column) if snapshot.meaning else None
        is_text = type_ == "string" or bool(by_time.time_format)
        has_hours = any(letter in by_time.time_format for letter in "Hhk")
        if UNITS[model.cron.unit] < UNITS["day"] and (type_ == "date" or (is_text and not has_hours)):
            message = f"`{model.name}` is filled by the {model.cron.unit}, and `{by_time.time_column}` has only days: "
            message += "rows of a day that come after its first batch are left out."
            hint = "Take a TIMESTAMP as `time_column`, or set `interval_unit 'day'`."
            warnings.append(Blocker(f"{message} {hint}", model.locate("time_column", in_block=True)))
    return warnings


def find_missed_lookback(graph: Graph, changes: Iterable[Change]) -> list[Blocker]:
    """Return a warning for each model that looks back less than a table that it reads, where the plan edits either.

    Rows that come into that table late, by its lookback, never reach the model.
    """
    kinds = (ChangeKind.ADDED, ChangeKind.DIRECT, ChangeKind.METADATA)
    edited = {change.name for change in changes if change.new and change.change in kinds}
    warnings = []
    for name in sorted(edited.union(*(graph.children[name] for name in edited))):
        model, unit = graph.models[name], UNITS[graph.models[name].cron.unit]
        for parent in graph.parents[name] if model.kind.is_by_time and not model.reads_itself else ():
            above = graph.models[parent]
            needed = -(-above.batches.lookback * UNITS[above.cron.unit] // unit)
            if above.kind.is_by_time and needed > model.batches.lookback and not edited.isdisjoint((name, parent)):
                message = f"`{name}` looks back less than `{parent}`, which it reads: late rows do not reach it."
                hint = f"Set its `lookback` to {needed}."
                warnings.append(Blocker(f"{message} {hint}", model.locate("lookback", in_block=True)))
    return warnings


def history_lost(changes: Iterable[Change]) -> list[Blocker]:
    blockers = []
    for change in changes:
        anew = change.recomputed and change.category is not Category.FORWARD_ONLY and not change.copies
        empty = change.missing == change.needed  # also where neither has a day yet: its views would show no row
        if not (anew and empty and change.old and change.new and change.old.kind.keeps_history):
            continue
        if change.new.kind.keeps_history and change.new.model.policy.forward_only:
            message = f"`{change.name}` would lose its history: a new table begins with what its sources hold now."
            hint = "Write `forward_only false` in its kind to start a new history."
            blockers.append(Blocker(f"{message} {hint}", change.new.model.locate("kind", in_block=True)))
    return blockers


def find_shortened_tables(
    graph: Graph, snapshots: Mapping[str, Snapshot], changes: Iterable[Change], table_state: Loaded, window: Window
) -> list[Blocker]:
    """Return a blocker for each new table that would lack time of the old one because what it reads is not whole.

    No table is filled past what it reads holds, so that it would replace a whole table by a part, or by nothing.
    """
    blockers, changes = list[Blocker](), tuple(changes)
    built_names = {change.name for change in changes if change.shares is None}
    for change in changes:
        old, new = change.old, change.new
        if old is None or new is None or change.shares is not None or not (old.kind.is_stored and new.kind.is_stored):
            continue
        if not (lost := subtract_intervals(table_state.timeline_of(old), _time_after(change, table_state))):
            continue
        kept_names = sorted(graph.upstream([change.name]) - built_names)
        incomplete = next((n for n in kept_names if _lacks_time(graph, snapshots[n], table_state, window)), None)
        if incomplete:
            message = f"`{change.name}` would lack {lost[0]}, which prod shows now: `{incomplete}` is not whole."
            hint = "Compute that first (`mergeplan run`), or merge a change of it alone."
            blockers.append(Blocker(f"{message} {hint}", new.model.place))
    return blockers


def find_withheld_time(
    changes: Iterable[Change], table_state: Loaded, limit: datetime | None, *, skips_backfill: bool
) -> list[Blocker]:
    """Return a blocker for each new table that would lack time of the old one because a person withholds it.

    `limit` is the end or the execution time that was chosen. Without one the clock may lie behind prod, which a run
    has filled meanwhile: the next run fills the new table.
    """
    blockers = []
    ahead = build_timeline(limit, datetime.max.replace(tzinfo=UTC)) if limit else ()
    for change in changes:
        old, new = change.old, change.new
        if old is None or new is None or change.shares is not None or not (old.kind.is_stored and new.kind.is_stored):
            continue
        timeline = table_state.timeline_of(old)
        skipped = intersect_intervals(timeline, change.missing) if skips_backfill else ()
        lost = intersect_intervals(subtract_intervals(timeline, _time_after(change, table_state)), ahead)
        if withheld := skipped or lost:
            options = "`--skip-backfill`" if skipped else "`--end` and `--execution-time`"
            message = f"`{change.name}` would lack {withheld[0]}, which prod shows now. Leave out {options}."
            blockers.append(Blocker(message, new.model.place))
    return blockers


def _lacks_time(graph: Graph, snapshot: Snapshot, table_state: Loaded, window: Window) -> bool:
    """Return True for a table with a hole, and for one that an interrupted restatement left without any time."""
    if not snapshot.kind.is_stored or snapshot.kind.is_seed:
        return False
    held_time = table_state.timeline_of(snapshot)
    return not held_time or contiguous_end(held_time, whole_start(graph, snapshot.model, window)) < held_time[-1].end


def _time_after(change: Change, table_state: Loaded) -> Timeline:
    assert change.new is not None
    if change.missing and not change.kind.is_incremental:
        return change.needed
    return merge_intervals((*table_state.timeline_of(change.new), *change.missing, *change.lost))
