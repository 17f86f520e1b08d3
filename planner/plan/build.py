"""Plans: what changed, who is affected, which days of which tables are computed, and what the views will show."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from mergeplan.planner.errors import ProjectError, RequestError
from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.intervals import (
    Timeline,
    build_timeline,
    intersect_intervals,
    merge_intervals,
    subtract_intervals,
)
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import DEFAULT, Naming
from mergeplan.planner.plan import schedule
from mergeplan.planner.plan.adoption import as_adopted
from mergeplan.planner.plan.backfill_scope import apply_empty_backfill, find_emptied, find_gaps, mark_lost_time, only
from mergeplan.planner.plan.blockers import (
    find_emptied_project,
    find_lost_hours,
    find_missed_lookback,
    find_shortened_tables,
    find_unwritable_names,
    find_withheld_time,
    history_lost,
)
from mergeplan.planner.plan.category.categorize import is_edited
from mergeplan.planner.plan.category.decide import as_removed, decide_all_models
from mergeplan.planner.plan.category.decision import Decisions, Inputs
from mergeplan.planner.plan.category.override import list_unrestated, overrides_for, restatements_for
from mergeplan.planner.plan.change import Adoption, Days, build_unedited_change
from mergeplan.planner.plan.change import Blocker as Blocker
from mergeplan.planner.plan.change import Category as Category
from mergeplan.planner.plan.change import Change as Change
from mergeplan.planner.plan.change import ChangeKind as ChangeKind
from mergeplan.planner.plan.change import Columns as Columns
from mergeplan.planner.plan.change import Override as Override
from mergeplan.planner.plan.diffs import query_diff
from mergeplan.planner.plan.early_cutoff import Comparison
from mergeplan.planner.plan.exposures import ExposureHit
from mergeplan.planner.plan.forward_only import NOT_ASKED, ForwardOnly, include_inherited_rows, resolve_selectors
from mergeplan.planner.plan.previews import PreviewStage, build_previews
from mergeplan.planner.plan.refused import ALL_OPENED, Unopened
from mergeplan.planner.plan.restatement import Restatement
from mergeplan.planner.plan.schedule import EPOCH, ONCE, Loaded, Readiness, Window
from mergeplan.planner.plan.witness.check import Check
from mergeplan.planner.semantics.shape_memory import NO_MEMORY, ShapeMemory
from mergeplan.planner.snapshot.environment import PROD, Environment, ViewChanges, view_changes
from mergeplan.planner.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class Plan:
    """A plan with all its decisions.

    `id` names it. `digest` is the same for two plans that replace the same tables by the same tables, in any
    environment, so that a merge can tell whether anything changed since.
    """

    id: str
    digest: str
    environment: str
    base: str
    old: Environment  # the environment as it is
    new: Environment  # the environment as it will be
    changes: tuple[Change, ...]  # in graph order
    views: ViewChanges
    blockers: tuple[Blocker, ...] = ()
    warnings: tuple[Blocker, ...] = ()
    overrides: tuple[Override, ...] = ()  # people's categories that are in force in place of a rule's
    unused_overrides: tuple[Override, ...] = ()  # chosen earlier, for a change that is no longer this one
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of each model of the new environment
    comparisons: tuple[Comparison, ...] = ()  # of tables, that might spare a model its recomputation
    spared: frozenset[str] = frozenset()  # models that would be recomputed, had their parents' rows not been compared
    restatement: Restatement | None = None  # of a plan that recomputes what did not change
    relies: Mapping[str, Timeline] = field(default_factory=dict)  # table -> time that must not go while it is applied
    late: Mapping[str, Timeline] = field(default_factory=dict)  # of a run: model -> time that its signals hold back
    unopened: Unopened = ALL_OPENED  # what of the project it leaves alone
    exposures: tuple[ExposureHit, ...] = ()  # uses outside of the project that it reaches
    not_selected: tuple[str, ...] = ()  # changed models that a plan of some models leaves alone
    # model that keeps rows -> what Spark says of that, which is no part of the decision
    checks: Mapping[str, Check] = field(default_factory=dict, compare=False)

    @property
    def backfills(self) -> tuple[Change, ...]:
        """The changes whose tables lack rows."""
        return tuple(change for change in self.changes if change.missing)

    @property
    def promotes(self) -> bool:
        """True if applying it changes the environment's map or views, and does not only fill tables."""
        old, new = self.old.snapshots, self.new.snapshots
        has_same_tables = old.keys() == new.keys() and all(
            (before := old[name]) is now or (before.fingerprint, before.version) == (now.fingerprint, now.version)
            for name, now in new.items()
        )
        return not (self.old.exists and has_same_tables and self.views == ViewChanges())

    @property
    def is_empty(self) -> bool:
        """True if the environment already is what the project says: nothing to compute, nothing new to show."""
        return self.is_virtual and not self.promotes

    @property
    def is_virtual(self) -> bool:
        """True if applying it computes nothing: only views are re-pointed."""
        return not self.backfills


@dataclass(frozen=True)
class Request:
    """A person's options for a plan: time, categories, and which tables stay empty."""

    window: Window
    categories: Mapping[str, Category] = field(default_factory=dict)
    skip_backfill: bool = False
    who: str = ""  # whose categories and restatements they are
    naming: Naming = DEFAULT  # what new tables and the environment's views are called
    expires_at: datetime | None = None  # of the environment
    forward: ForwardOnly = NOT_ASKED
    backfill: frozenset[str] | None = None  # compute only these models and what they read; None: whatever is missing
    empty_backfill: bool = False  # say that new tables hold their time, and compute nothing
    no_gaps: bool = False  # a table that takes another's place must hold all the time that one holds
    include_unmodified: bool = False  # show every model in an environment beside prod too
    diff_rendered: bool = False  # show the difference of the queries that run, not of the files
    adopted: Mapping[str, Adoption] = field(default_factory=dict)  # model that prod lacks -> table that holds its rows
    shapes: ShapeMemory = NO_MEMORY  # queries that earlier plans analysed
    refuted: Mapping[str, str] = field(default_factory=dict)  # claim with which Spark's analyzer disagrees -> why
    restated: Mapping[str, Days] = field(default_factory=dict)  # model that keeps its text -> days computed again
    as_of: datetime | None = None  # the execution time that a person chose, UTC
    restated_at: datetime | None = None  # when a person asked for that, UTC
    restate_warnings: tuple[str, ...] = ()  # of selectors that chose no model for that


def build_plan(
    models: Mapping[str, Model],
    target: Environment,
    base: Environment,
    table_state: Loaded,
    request: Request,
    overrides: Iterable[Override] = (),
) -> Plan:
    """Build the plan that makes `target` show these models, decided against `base` (prod).

    Pure: the same arguments give the same plan. `overrides` are categories chosen earlier. Raise ProjectError(s) for
    models that cannot be planned, and RequestError for options that are not allowed.
    """
    _check_prod_is_whole(target, request)
    graph = graph_of(models)
    forward = resolve_selectors(request.forward, graph, request.window.now)
    decided, uncompared, overrides = _decide_changes(
        graph, base, table_state, replace(request, forward=forward), tuple(overrides)
    )
    # A table that keeps another one's rows holds them from its creation on: none of them is missing.
    table_state, snapshots = include_inherited_rows(table_state, decided.changes), decided.snapshots
    changes = schedule.schedule_changes(graph, snapshots, decided.changes, table_state, request.window)
    changes = mark_lost_time(changes, graph, table_state, request.window)
    # Checked before previews replace the tables that prod gets, and before the request removes any time.
    lost = (*find_unwritable_names(changes), *history_lost(changes), *find_emptied_project(graph, base.snapshots))
    if target.name == PROD:
        lost += _find_lost_days(graph, snapshots, changes, table_state, request)
    else:
        stage = PreviewStage(target.name, table_state, request.window, request.naming, forward.preview)
        snapshots, changes = build_previews(graph, snapshots, changes, stage)
    changes = _as_asked(changes, graph, table_state, request)
    gone = find_gaps(changes, target if target.exists else base, table_state) if request.no_gaps else ()
    changes = tuple(_set_owner(change, table_state.owners) for change in changes)
    new = _build_environment(target, base, snapshots, changes, request)
    swaps = digest_of(changes)
    return Plan(
        id=compute_plan_id(swaps, target.name, base.name, changes, request),
        digest=swaps,
        environment=target.name,
        base=base.name,
        old=target,
        new=new,
        changes=tuple(map(as_removed, changes)),
        views=view_changes(target, new),
        blockers=(*decided.blockers, *lost, *gone),
        warnings=(*decided.warnings, *_find_warnings(request, base, target, changes, graph)),
        overrides=decided.used_overrides,
        unused_overrides=_find_unused_overrides(
            overrides, decided.used_overrides, changes, _list_shared_tables(target, base)
        ),
        parents=graph.parents,
        comparisons=tuple(
            comparison
            for comparison in decided.comparisons
            if snapshots[comparison.model].table == comparison.new.table
        ),
        spared=_find_rebuilt_models(uncompared.changes) - _find_rebuilt_models(decided.changes),
        relies=input_timelines(graph, snapshots, changes, table_state),
    )


def _check_prod_is_whole(target: Environment, request: Request) -> None:
    """Raise RequestError if the request would leave rows of prod uncomputed, because no later step computes them."""
    if target.name == PROD and request.window.start:
        raise RequestError("prod must hold all its days: a start is for other environments.", hint="Leave it out.")
    if target.name == PROD and request.backfill is not None:
        raise RequestError("prod must hold all its rows: `--backfill-model` is for other environments.")


def _find_lost_days(
    graph: Graph, snapshots: Mapping[str, Snapshot], changes: tuple[Change, ...], table_state: Loaded, request: Request
) -> tuple[Blocker, ...]:
    limits = [limit for limit in (request.window.end, request.as_of) if limit]
    limit, skips_backfill = min(limits, default=None), request.skip_backfill
    return (
        *find_shortened_tables(graph, snapshots, changes, table_state, request.window),
        *find_withheld_time(changes, table_state, limit, skips_backfill=skips_backfill),
    )


def _build_environment(
    target: Environment,
    base: Environment,
    snapshots: Mapping[str, Snapshot],
    changes: tuple[Change, ...],
    request: Request,
) -> Environment:
    models = {name: snapshot.model for name, snapshot in snapshots.items()}
    every = target.name == PROD or request.include_unmodified
    names = models.keys() if every else {change.name for change in changes if change.new}
    views = frozenset(name for name in names if models[name].kind.has_view)
    naming, expires_at = request.naming, request.expires_at
    new = replace(target, snapshots=snapshots, views=views, naming=naming, expires_at=expires_at)
    # no view may have the name of another model's view
    taken = base.views_by_name if base.name != new.name else {}
    named: dict[str, str] = {}
    for model in sorted(new.views):
        name = new.naming.view(model, new.name)
        owner = named.setdefault(name, taken[name].model if name in taken else model)
        if owner != model:
            message = f"`{name}`, the view of `{model}` in `{new.name}`, is the view of `{owner}` already."
            hint = "Rename the model or the environment."
            raise ProjectError(message, place=new.snapshots[model].model.place, hint=hint)
    return new


def input_timelines(
    graph: Graph, snapshots: Mapping[str, Snapshot], changes: tuple[Change, ...], table_state: Loaded
) -> Mapping[str, Timeline]:
    """Return, by table, the time that the computations of these changes rely on.

    It is the time that the tables hold, or will hold by then. A restatement that starts meanwhile removes such time,
    and rows computed from a table that lacks it would stay wrong.
    """
    filled = {change.name: intersect_intervals(change.missing, change.needed) for change in changes if change.missing}
    inputs = {
        snapshots[name].table: merge_intervals((*table_state.timeline_of(snapshots[name]), *filled.get(name, ())))
        for name in graph.upstream(filled)
        if snapshots[name].kind.is_stored
    }
    copied = {
        copy_change.old.table: table_state.timeline_of(copy_change.old)
        for copy_change in changes
        if copy_change.copies and copy_change.missing and copy_change.old
    }
    return {table: timeline for table, timeline in (*inputs.items(), *copied.items()) if timeline}


def _decide_changes(
    graph: Graph, base: Environment, table_state: Loaded, request: Request, overrides: tuple[Override, ...]
) -> tuple[Decisions, Decisions, tuple[Override, ...]]:
    """Return the decisions, those without any comparison of tables, and all overrides, earlier ones and these."""
    limited, since = schedule.find_limited_models(graph, request.window), str(request.window.start or "")
    if request.window.min_intervals:  # more days than from the start on make another preview
        since += f" {request.window.min_intervals}"

    def decide_with(overrides: tuple[Override, ...], known_state: Loaded) -> Decisions:
        options = (limited, since, request.naming, request.forward, request.empty_backfill, request.adopted)
        return decide_all_models(Inputs(graph, base, known_state, overrides, *options, request.shapes, request.refuted))

    if request.restated:
        at = request.restated_at or request.window.now
        other = (override for override in overrides if not (override.restates and override.model in request.restated))
        overrides = (*other, *restatements_for(base.snapshots, request.restated, request.who, at))
    decided = decide_with(overrides, table_state)
    if request.categories:
        # An override names the fingerprints of the change that it is about, and these are known once it is decided.
        chosen = overrides_for(decided.changes, request.categories, request.who)
        overrides = (*(override for override in overrides if override.model not in request.categories), *chosen)
        decided = decide_with(overrides, table_state)
    compared = any(change.rule == "same-data" for change in decided.changes)
    # decided once more, so that the plan can show what the comparisons saved
    return decided, decide_with(overrides, replace(table_state, contents=None)) if compared else decided, overrides


def _as_asked(changes: tuple[Change, ...], graph: Graph, table_state: Loaded, request: Request) -> tuple[Change, ...]:
    changes = tuple(map(as_adopted, changes))
    if request.skip_backfill:
        changes = tuple(replace(change, missing=()) for change in changes)
    if request.backfill is not None:
        changes = only(changes, graph, request.backfill)
    if request.empty_backfill:
        changes = apply_empty_backfill(changes, table_state)
    if request.diff_rendered:
        changes = tuple(replace(change, diff=query_diff(change)) for change in changes)
    return changes


def _find_rebuilt_models(changes: Iterable[Change]) -> frozenset[str]:
    return frozenset(change.name for change in changes if change.recomputed)


def build_run(
    environment: Environment,
    table_state: Loaded,
    window: Window,
    base: Environment | None = None,
    only: Collection[str] | None = None,
    ready: Readiness | None = None,
) -> Plan:
    """Build the plan that fills an environment's tables up to their last cron ticks and changes nothing else.

    A table that `base` (prod) shows too is left to prod's own run if it would be filled in another way here. With
    `only`, all other tables stay as they are, and none of these is filled past its parents. Time that is not `ready` is
    `late`, and left for a later run.
    """
    graph = graph_of({name: snapshot.model for name, snapshot in environment.snapshots.items()})
    skipped_names = _models_to_skip(graph, environment, base or environment)
    if only is not None:
        skipped_names |= graph.models.keys() - only
    late: dict[str, Timeline] = {}
    lost = _find_lost_rows(environment, table_state, window) if environment.name != PROD else {}

    def select_ready_time(model: Model, missing: Timeline) -> Timeline:
        available = ready(model, missing) if ready else missing
        if waits := subtract_intervals(missing, available):
            late[model.name] = waits
        return subtract_intervals(available, lost.get(model.name, ()))

    widened = schedule.look_back_like(environment.snapshots, base.snapshots if base else {})
    behind = dict(schedule.schedule_run(graph, widened, table_state, window, skipped_names, select_ready_time))
    # also what no cron fills, if its table is gone: a seed, and the view of a model without a table
    for name in graph.order:
        if environment.snapshots[name].table in table_state.lost and name not in behind and name not in skipped_names:
            once = ONCE if environment.snapshots[name].kind.is_seed else ()
            behind[name] = (once, once)
    changes = tuple(
        replace(_build_due_change(environment.snapshots[name], *behind[name], table_state), old=widened[name])
        for name in graph.order
        if name in behind
    )
    return replace(build_backfill_plan(environment, graph, changes, table_state, window), late=late)


def _find_lost_rows(environment: Environment, table_state: Loaded, window: Window) -> Mapping[str, Timeline]:
    """Return, by model, the time that tables with another table's rows have lost.

    A restatement of prod removed it. Its rows belong to the other table, and a plan restores them from there; the
    table's own query returns different rows.
    """
    time_lost: dict[str, Timeline] = {}
    for name, snapshot in environment.snapshots.items():
        if snapshot.is_mixed and not snapshot.is_preview:
            held_time = table_state.timeline_of(snapshot)
            time_lost[name] = subtract_intervals(
                build_timeline(EPOCH, held_time[-1].end if held_time else window.now), held_time
            )
    return time_lost


def build_backfill_plan(
    environment: Environment, graph: Graph, changes: tuple[Change, ...], table_state: Loaded, window: Window
) -> Plan:
    """Build the plan that fills tables of an environment with these changes and shows no new ones."""
    swaps = digest_of(changes)
    return Plan(
        id=compute_plan_id(swaps, environment.name, environment.name, changes, Request(window)),
        digest=swaps,
        environment=environment.name,
        base=environment.name,
        old=environment,
        new=environment,
        changes=changes,
        views=ViewChanges(),
        parents=graph.parents,
        relies=input_timelines(graph, environment.snapshots, changes, table_state),
    )


def _models_to_skip(graph: Graph, environment: Environment, base: Environment) -> frozenset[str]:
    """Return the models that a run of one environment must not fill.

    These are models whose table both environments show while their parents differ, while they are edited, or while they
    wait for a signal: its code may be edited, too. So are models that are no previews but read one, because their rows
    must not come from it, and copies of a history: a plan copies what the other environment records meanwhile.
    """
    snapshots, base_snapshots, is_elsewhere = environment.snapshots, base.snapshots, environment.name != base.name

    def differs(name: str) -> bool:
        return name not in base_snapshots or base_snapshots[name].version != snapshots[name].version

    shown = {name for name, snapshot in snapshots.items() if snapshot.is_preview}
    for name in graph.order:
        if not snapshots[name].kind.is_stored and not shown.isdisjoint(graph.parents[name]):
            shown.add(name)
    over = {
        name for name in graph.order if not snapshots[name].is_preview and not shown.isdisjoint(graph.parents[name])
    }
    shared = {name: graph.parents[name] for name in graph.order if not differs(name)}
    models = {name: (base_snapshots[name].model, snapshots[name].model) for name in shared}
    edited = {
        name for name, (old, new) in models.items() if is_edited(old, new) or (is_elsewhere and new.schedule.signals)
    }
    differing_inputs = {name for name, parents in shared.items() if any(map(differs, parents))}
    copies = {
        name
        for name, snapshot in snapshots.items()
        if differs(name) and _holds_copy(snapshot, base_snapshots.get(name))
    }
    return frozenset(over | differing_inputs | edited | copies)


def _holds_copy(here: Snapshot, there: Snapshot | None) -> bool:
    """Return True if a table that is filled in order has the rows of another one, in another layout."""
    if there is None or here.is_preview or not here.model.is_order_dependent:
        return False
    return here.kind is there.kind and here.raw == there.raw and here.marks == there.marks


def _build_due_change(snapshot: Snapshot, needed_time: Timeline, missing: Timeline, table_state: Loaded) -> Change:
    reason = "Its table lacks time that is due."
    if snapshot.table in table_state.lost:
        reason = "Its table was gone from the catalog."
    elif not subtract_intervals(missing, table_state.timeline_of(snapshot)):
        reason = "Its latest time is computed again."
    return build_unedited_change(snapshot, ChangeKind.DUE, reason, needed_time, missing)


def _find_warnings(
    request: Request, base: Environment, target: Environment, changes: tuple[Change, ...], graph: Graph
) -> tuple[Blocker, ...]:
    unrestated = list_unrestated(request.restated, base.snapshots, changes)
    emptied = find_emptied(changes, graph, target)
    late = (*find_lost_hours(changes), *find_missed_lookback(graph, changes))
    return (*map(Blocker, request.restate_warnings), *unrestated, *emptied, *late)


def _list_shared_tables(target: Environment, base: Environment) -> frozenset[str]:
    shown = target.snapshots.items()
    return frozenset(name for name, old in shown if name in base.snapshots and base.snapshots[name].table == old.table)


def _find_unused_overrides(
    overrides: tuple[Override, ...], used: tuple[Override, ...], changes: tuple[Change, ...], shared: frozenset[str]
) -> tuple[Override, ...]:
    """Return the overrides of changes that are others now, and the restatements that ended.

    A restatement is left out if the environment shows the base's table: it was merged, or ended in an earlier plan.
    """
    used_models = {override.model for override in used}
    open_models = {c.name for c in changes if c.change is ChangeKind.DIRECT} - used_models
    return tuple(
        override
        for override in overrides
        if override.model in open_models
        or (override.restates and override.model not in used_models and override.model not in shared)
    )


def _set_owner(change: Change, owners: Mapping[str, str]) -> Change:
    if change.shares is not None or change.new is None:
        return change
    return replace(change, shares=owners.get(change.new.table))


def digest_of(changes: tuple[Change, ...]) -> str:
    ordered = sorted(changes, key=_change_name)
    swaps = [f"{c.name} {c.change} {_snapshot_text(c.old)} {_snapshot_text(c.lands)}" for c in ordered]
    return digest(*swaps)[:16]


def compute_plan_id(swaps: str, environment: str, base: str, changes: tuple[Change, ...], request: Request) -> str:
    ordered = sorted(changes, key=_change_name)
    time = [f"{change.name} {[str(i) for i in change.needed]} {change.category}" for change in ordered]
    options = (
        f"{request.skip_backfill} {request.window.start} {request.window.end}",
        "empty" if request.empty_backfill else "",
        "all views" if request.include_unmodified else "",
        f"only {encode_text(sorted(request.backfill))}" if request.backfill is not None else "",
        encode_text(request.naming) if request.naming != DEFAULT else "",
        encode_text(request.forward) if request.forward != NOT_ASKED else "",
    )
    return digest(swaps, environment, base, " ".join(filter(None, options)), *time)[:12]


def _snapshot_text(snapshot: Snapshot | None) -> str:
    return f"{snapshot.fingerprint.text}@{snapshot.version}" if snapshot else "-"


def _change_name(change: Change) -> str:
    return change.name
