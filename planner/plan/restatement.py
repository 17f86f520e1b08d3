"""Restatement: which tables and intervals are recomputed without a model change, and which rows become outdated.

A restated table keeps its version and its name. The time to recompute is forgotten first, in one transaction. So a
crash leaves missing time, and never time that is recorded as loaded but mixes old and new rows.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from mergeplan.planner.intervals import Timeline, build_timeline, intersect_intervals, merge_intervals
from mergeplan.planner.model.graph import Graph, graph_of, reach_names
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan import schedule
from mergeplan.planner.plan.change import Days
from mergeplan.planner.plan.schedule import EPOCH, Frontiers, Loaded, Window
from mergeplan.planner.snapshot.environment import PROD, Environment
from mergeplan.planner.snapshot.snapshot import Snapshot

ALL_TIME = build_timeline(EPOCH.replace(year=1), EPOCH.replace(year=9999))


@dataclass(frozen=True)
class LeftOut:
    """A model that the selection reaches but that is not restated, with the reason as a clause."""

    model: str
    reason: str


@dataclass(frozen=True)
class Touched:
    """Another environment that a restatement affects.

    `shared` are models whose restated table it shows too. `outdated` are models whose own tables were computed from
    restated rows: they lack that time until the environment plans or runs.
    """

    environment: str
    shared: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()


@dataclass(frozen=True)
class Restatement:
    """The restatement that a plan makes.

    `forgets` is, by physical table, the time that no longer counts as loaded before anything is computed. It includes
    tables of other environments and of the past.
    """

    forgets: Mapping[str, Timeline]
    left_out: tuple[LeftOut, ...] = ()
    touched: tuple[Touched, ...] = ()


@dataclass(frozen=True)
class Past:
    """All maps that an environment shows or has shown, and tables that were built for a plan and that no map shows.

    `maps` are (environment, whether it shows it now, model -> snapshot). `built` are snapshots by table, None if it is
    unknown what the table was made of.
    """

    maps: tuple[tuple[str, bool, Mapping[str, Snapshot]], ...] = ()
    built: Mapping[str, Snapshot | None] = field(default_factory=dict)

    @property
    def tables_of_prod(self) -> frozenset[str]:
        maps = (shown for name, is_shown, shown in self.maps if name == PROD and is_shown)
        return frozenset(snapshot.table for shown in maps for snapshot in shown.values())


def graph_with_outer_tables(shown_snapshots: Mapping[str, Snapshot]) -> Graph:
    return add_outer_tables({name: snapshot.model for name, snapshot in shown_snapshots.items()})


def add_outer_tables(models: Mapping[str, Model]) -> Graph:
    """Return the graph of models and of the tables that they read and no model defines."""
    outer = {read for model in models.values() for read in model.depends_on} - models.keys()
    return graph_of({**models} | {name: Model(name, Kind.EXTERNAL, "", 0, "") for name in outer})


def cascade_models(
    graph: Graph,
    shown_snapshots: Mapping[str, Snapshot],
    chosen_names: Collection[str],
    kept_tables: Collection[str] = (),
) -> tuple[frozenset[str], tuple[LeftOut, ...]]:
    """Return the models that are restated with the chosen ones, down the graph, and those that are left out.

    A model that is left out keeps its rows, and so does one that reads only such models. `kept_tables` are tables that
    prod shows and that another environment must not write.
    """
    reached: set[str] = set()
    restated: set[str] = set()
    left_out: list[LeftOut] = []
    for name in graph.order:
        if name not in chosen_names and reached.isdisjoint(graph.parents[name]):
            continue
        reason = _why_not(graph.models[name], name in shown_snapshots and shown_snapshots[name].table in kept_tables)
        if reason:
            left_out.append(LeftOut(name, reason))
        if not reason or graph.models[name].kind.is_seed:  # a seed keeps its rows, and its readers are restated
            reached.add(name)
        if not reason and graph.models[name].kind.is_stored:
            restated.add(name)
    return frozenset(restated), tuple(left_out)


def find_computed(graph: Graph, names: Collection[str]) -> frozenset[str]:
    """Return these models, and in place of those that are not computed into a table, their nearest readers that are."""
    computed, pending, seen = set[str](), list(names), set[str]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        model = graph.models.get(name)
        if model is not None and model.kind.is_stored and not model.kind.is_seed:
            computed.add(name)
        else:
            pending += [reader for reader, parents in graph.parents.items() if name in parents]
    return frozenset(computed)


def _why_not(model: Model, is_prods: bool) -> str:
    if model.kind.is_seed:
        return "its rows are those of its file"
    if not model.kind.is_stored:
        return ""
    if model.policy.disable_restatement:
        return "its `disable_restatement` is true"
    return "prod shows the same table: restate it in prod" if is_prods else ""


def interval_in_window(model: Model, window: Window | Days) -> Timeline:
    """Return a model's time in a window, in whole units; all time if computed whole, and no end if it reads itself."""
    if not model.kind.is_by_time:
        return ALL_TIME
    start = model.cron.cut(window.start) if window.start else ALL_TIME[0].start
    end = model.cron.ceiling(window.end) if window.end and not model.reads_itself else ALL_TIME[0].end
    return build_timeline(start, end)


def windows_by_model(graph: Graph, restated_names: Collection[str], window: Window) -> Mapping[str, Window]:
    """Return each model's window to restate, without bounds for readers of a table that is restated as a whole."""
    # A batch of such a table builds on the batches before it, and its rows carry no time by which a reader could tell
    # which of them are new ones.
    unbounded: set[str] = set()
    onward: set[str] = set()  # what reads one that reads itself: at any time after its start
    for name in graph.order:
        in_order = name in restated_names and graph.models[name].kind.is_order_dependent
        if in_order or not unbounded.isdisjoint(graph.parents[name]):
            unbounded.add(name)
        if (name in restated_names and graph.models[name].reads_itself) or not onward.isdisjoint(graph.parents[name]):
            onward.add(name)
    since = {name: None if name in unbounded else window.start for name in graph.order}
    until = {name: None if name in unbounded | onward else window.end for name in graph.order}
    return {name: replace(window, start=since[name], end=until[name]) for name in graph.order}


def time_to_restate(
    graph: Graph,
    shown_snapshots: Mapping[str, Snapshot],
    table_state: Loaded,
    window: Window,
    restated_names: Collection[str],
) -> Mapping[str, Timeline]:
    """Return, by model, the time to recompute, for models that have any.

    It is the window's time, from the model's start up to its last cron tick, and never past what its parents hold.
    """
    times: dict[str, Timeline] = {}
    frontiers = Frontiers(graph, window)
    model_windows = windows_by_model(graph, restated_names, window)
    for name in graph.order:  # parents first, so that each knows up to where all that it reads will be filled
        model, bound = graph.models[name], frontiers.find_bound(name)
        if model.kind.is_seed or not model.kind.is_stored:
            continue
        held_time = table_state.timeline_of(shown_snapshots[name])
        due, start = window.due(model), schedule.whole_start(graph, model, window)
        if held_time and model.kind.is_incremental:  # more than is due: its cron was another, or was ignored
            due = max(due, min(held_time[-1].end, model.cron.cut(window.now)))
        if name in restated_names:
            latest = schedule.earliest_moment([due, model.schedule.end, bound])
            assert latest is not None
            whole = build_timeline(start, model.cron.cut(latest))
            time = intersect_intervals(whole, interval_in_window(model, model_windows[name]))
            if time:
                times[name] = time
                held_time = merge_intervals((*held_time, *time))
        frontiers.record_end(name, schedule.contiguous_end(held_time, start))
    return times


def find_outdated_tables(
    target: Environment,
    past: Past,
    restated_time: Mapping[str, Timeline],
    chosen_names: Collection[str],
    window: Window,
) -> tuple[Mapping[str, Timeline], tuple[Touched, ...]]:
    """Return the time to forget by table, and the environments that this affects.

    In prod every version of the chosen models, and every table that any environment made of them, is forgotten.
    Otherwise a table that was built before could be promoted with old rows. Elsewhere only tables made of these very
    tables are forgotten; tables that prod shows are left alone.
    """
    if target.name == PROD:
        chosen_names = _add_former_names(past, chosen_names)
    own_times = {target.snapshots[name].table: time for name, time in restated_time.items()}
    forgets = dict(own_times)
    # The target's own tables that are left out keep their rows on purpose, and only prod changes prod's tables.
    kept_tables = {version.table for version in target.snapshots.values()} - own_times.keys()
    if target.name != PROD:
        kept_tables |= past.tables_of_prod
    touched: dict[str, tuple[set[str], set[str]]] = {}
    for environment, is_shown, shown in past.maps:
        graph = graph_with_outer_tables(shown)
        if target.name == PROD:  # by name: any version of a chosen model may have been built from the old rows
            roots = graph.models.keys() & chosen_names
        else:
            roots = {name for name, version in shown.items() if version.table in own_times}
        names, _ = cascade_models(graph, shown, roots)
        model_windows = windows_by_model(graph, names, window)
        for name in sorted(names):
            table = shown[name].table
            if table in kept_tables:
                continue
            if table not in own_times:
                forgets[table] = merge_intervals(
                    (*forgets.get(table, ()), *interval_in_window(shown[name].model, model_windows[name]))
                )
            if is_shown and environment != target.name:
                touched.setdefault(environment, (set(), set()))[table not in own_times].add(name)
    names = _downstream_by_name(past, chosen_names if target.name == PROD else restated_time.keys())
    for table, snapshot in past.built.items():
        # the origin of an unknown table cannot be told: it is forgotten too
        if table not in kept_tables and (snapshot is None or snapshot.name in names):
            forgets.setdefault(table, ALL_TIME)
    return forgets, tuple(Touched(n, tuple(sorted(a)), tuple(sorted(b))) for n, (a, b) in sorted(touched.items()))


def _add_former_names(past: Past, names: Collection[str]) -> frozenset[str]:
    """Return the names with those that models of the same query had: renamed back, a model finds its old table."""
    shown = [snapshot for _, _, snapshots in past.maps for snapshot in snapshots.values()]
    stored = [s for s in (*shown, *past.built.values()) if s and s.kind.is_stored and not s.kind.is_seed]

    def find_query(snapshot: Snapshot) -> tuple[object, ...]:
        model = snapshot.model
        return model.kind, model.sql, model.python and model.python.digest

    restated = {find_query(snapshot) for snapshot in stored if snapshot.name in names}
    return frozenset({*names, *(snapshot.name for snapshot in stored if find_query(snapshot) in restated)})


def _downstream_by_name(past: Past, names: Iterable[str]) -> frozenset[str]:
    # A reader of long ago may no longer read the model; its table is still there and could be promoted again.
    """Return these models and all that read them through any version of any model."""
    edges: dict[str, set[str]] = {}
    shown = [snapshot for _, _, snapshots in past.maps for snapshot in snapshots.values()]
    for snapshot in (*shown, *(built for built in past.built.values() if built)):
        for parent in snapshot.model.depends_on:
            edges.setdefault(parent, set()).add(snapshot.name)
    return frozenset(reach_names(names, edges))


def find_overtaken_time(
    due_times: Mapping[str, Timeline], past: Past, timelines: Mapping[str, Timeline]
) -> Mapping[str, Timeline]:
    """Return, by table, the time that it holds although prod computes that time only now, from later rows.

    `due_times` is, by model, what prod's table lacks. An environment may run before prod does, or a rollback brought
    back a table that is behind. Tables that were computed from such time are outdated with it. A table that keeps
    history is left alone: it cannot be computed again.
    """
    due_times = {name: time for name, time in due_times.items() if time}
    overtaken = dict(_find_overtaken_builds(due_times, past, timelines))
    tables_of_prod = past.tables_of_prod
    for _, _, shown in past.maps:
        due_tables = {shown[name].table: time for name, time in due_times.items() if name in shown}
        if not any(intersect_intervals(timelines.get(table, ()), time) for table, time in due_tables.items()):
            continue  # as nearly always: the graph of each map is not needed
        graph, outdated = graph_with_outer_tables(shown), dict[str, Timeline]()
        for name in filter(shown.__contains__, graph.order):
            snapshot, above = shown[name], [outdated.get(parent, ()) for parent in graph.parents[name]]
            time = merge_intervals(interval for timeline in (due_times.get(name, ()), *above) for interval in timeline)
            if not snapshot.kind.is_stored:
                outdated[name] = time
            elif snapshot.table not in tables_of_prod:
                outdated[name] = outdate_rows(snapshot, timelines.get(snapshot.table, ()), time)
                overtaken[snapshot.table] = merge_intervals((*overtaken.get(snapshot.table, ()), *outdated[name]))
    return {table: timeline for table, timeline in overtaken.items() if timeline}


def _find_overtaken_builds(
    due_times: Mapping[str, Timeline], past: Past, timelines: Mapping[str, Timeline]
) -> Iterator[tuple[str, Timeline]]:
    """Yield overtaken time by table, for tables that no environment shows: an apply that failed leaves them.

    No record says from which tables they were computed. The due time of every model counts for them.
    """
    time = merge_intervals(interval for timeline in due_times.values() for interval in timeline)
    ahead = {table: held for table in past.built if intersect_intervals(held := timelines.get(table, ()), time)}
    names = _downstream_by_name(past, due_times) if ahead else frozenset[str]()
    for table, held_time in ahead.items():
        snapshot = past.built[table]
        if snapshot is None:
            yield table, held_time
        elif snapshot.name in names:
            yield table, outdate_rows(snapshot, held_time, time)


def outdate_rows(snapshot: Snapshot, held_time: Timeline, time: Timeline, *, keeps_keys: bool = False) -> Timeline:
    """Return what of the time that a table holds is outdated with its rows of some time.

    With `keeps_keys` a table by key may hold rows that no source has any more.
    """
    model, gone = snapshot.model, intersect_intervals(held_time, time)
    if not gone or snapshot.is_preview or snapshot.kind.keeps_history:
        return ()
    # Merged again, rows may count twice, and keys that are gone stay.
    is_repeatable = not (model.by_key.when_matched or model.reads_itself) and (keeps_keys or snapshot.is_mixed)
    if not snapshot.kind.is_by_time and not (snapshot.kind.is_incremental and is_repeatable):
        return held_time
    if model.is_order_dependent:  # its later batches build on that one
        return intersect_intervals(held_time, build_timeline(gone[0].start, held_time[-1].end))
    return gone
