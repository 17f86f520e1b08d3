"""The intervals that each table of a plan must hold, and those that are missing."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from mergeplan.planner import intervals
from mergeplan.planner.intervals import Cron, Timeline
from mergeplan.planner.model.graph import Graph
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.plan.change import Change, ChangeKind, longest_lookback
from mergeplan.planner.snapshot.content_hash import Contents
from mergeplan.planner.snapshot.snapshot import Snapshot

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Readiness = Callable[[Model, Timeline], Timeline]  # what of a model's missing time may be computed now
ONCE = intervals.build_timeline(EPOCH, EPOCH + timedelta(days=1))  # what a seed needs: to be loaded, once


@dataclass(frozen=True)
class Window:
    """The time that a request allows: `start` and `end` in UTC, or None for what models and clocks say; `now` in UTC.

    Without `end` a plan fills a new version no further than the version it replaces, so that a merge, days later, finds
    nothing to compute. A run fills the days since.
    """

    now: datetime
    start: datetime | None = None
    end: datetime | None = None
    min_intervals: int = 0  # units of each model that are computed at least, however late `start` is
    ignore_cron: bool = False

    def due(self, model: Model) -> datetime:
        """Return up to where a table is to be filled: its last cron tick, or its last whole unit with `ignore_cron`."""
        return model.cron.cut(self.now) if self.ignore_cron else model.cron.due(self.now)

    def find_end(self, model: Model) -> datetime:
        # A unit that is not over has rows still to come, which no run computes once it is recorded.
        return min(self.end, model.cron.cut(self.now)) if self.end else self.due(model)


@dataclass(frozen=True)
class Loaded:
    """The contents of tables: physical table -> timeline; `complete` are tables that some environment already shows.

    `drifted` are those that an override kept while their parents changed: their rows are no longer what their versions
    say. `contents` is what Spark found in tables, as hashes; None if tables are not to be compared. `owners` maps a
    table to the environment that shows it, prod before any other. `lost` are tables that are gone from the catalog.
    """

    timelines: Mapping[str, Timeline]
    complete: frozenset[str] = frozenset()
    drifted: frozenset[str] = frozenset()
    contents: Mapping[str, Contents] | None = None
    owners: Mapping[str, str] = field(default_factory=dict)
    lost: frozenset[str] = frozenset()

    def timeline_of(self, snapshot: Snapshot) -> Timeline:
        return self.timelines.get(snapshot.table, ())

    def end(self, snapshot: Snapshot) -> datetime | None:
        timeline = self.timeline_of(snapshot)
        return timeline[-1].end if timeline else None


@dataclass
class Frontiers:
    """Up to where the readers of each model may be filled, parents first.

    A day computed from a parent that lacks it would stay empty for ever. A parent that holds all that its own cron asks
    for sets no bound, unless it is filled by time, as often as the reader, and only later: its next tick brings that
    day. A reader that is computed as a whole waits for it too, and holds up none that runs more often.
    """

    graph: Graph
    window: Window
    ends: dict[str, datetime | None] = field(default_factory=dict)  # None: as far as the readers like
    filled: dict[str, frozenset[tuple[Cron, datetime]]] = field(default_factory=dict)  # tables by time that are read
    waits: set[tuple[str, datetime]] = field(default_factory=set)  # up to where tables that are written whole wait

    def find_bound(self, name: str) -> datetime | None:
        # Its readers may be filled as far as itself, unless its own end is recorded.
        parents, model = self.graph.parents[name], self.graph.models[name]
        self.ends[name] = earliest_moment(self.ends[parent] for parent in parents)
        self.filled[name] = frozenset[tuple[Cron, datetime]]().union(*(self.filled[parent] for parent in parents))
        due = self.window.due(model)
        behind = ((cron, end) for cron, end in self.filled[name] if end < due and cron != model.cron)
        later_ends = [end for cron, end in behind if cron.longest_gap <= model.cron.longest_gap]
        if not model.kind.is_incremental:
            self.waits |= {(name, end) for end in later_ends}
        return earliest_moment((self.ends[name], *later_ends))

    def record_end(self, name: str, end: datetime) -> None:
        model = self.graph.models[name]
        if (name, end) not in self.waits:
            self.ends[name] = end if end < self.window.due(model) else None
        if model.kind.is_by_time:
            self.filled[name] = frozenset({(model.cron, end)})


def schedule_changes(
    graph: Graph, snapshots: Mapping[str, Snapshot], changes: tuple[Change, ...], table_state: Loaded, window: Window
) -> tuple[Change, ...]:
    """Return the changes with the time that their tables need and lack, within what their parents hold."""
    by_name = {change.name: change for change in changes}
    concerned_names = by_name.keys() | graph.upstream(by_name)
    frontiers = Frontiers(graph, window)
    for name in filter(concerned_names.__contains__, graph.order):
        snapshot, change = snapshots[name], by_name.get(name)
        bound = frontiers.find_bound(name)
        builds = change is not None and change.shares is None
        needed: Timeline = ()
        if snapshot.kind.is_seed:
            needed = ONCE
        elif snapshot.kind.is_stored:
            end = _table_end(snapshot, change, table_state, window, bound)
            needed = _find_needed_time(graph, snapshot.model, end, window) if builds else ()
            held_end = end
            if not builds:
                held_end = contiguous_end(table_state.timeline_of(snapshot), whole_start(graph, snapshot.model, window))
            frontiers.record_end(name, held_end)
        if change is not None and builds:
            begin = whole_start(graph, snapshot.model, window)
            missing = _missing_time(snapshot.model, needed, table_state.timeline_of(snapshot), change.lookback, begin)
            old_timeline = table_state.timeline_of(change.old) if change.old and change.copies else ()
            # A table filled in order that copies one written since: its query would not return the rows that came
            # into that one meanwhile, versions of a history or appended rows.
            copied = intervals.intersect_intervals(intervals.intersect_intervals(change.copies, old_timeline), needed)
            is_behind = bool(intervals.subtract_intervals(old_timeline, table_state.timeline_of(snapshot)))
            if snapshot.model.is_order_dependent and is_behind and copied == old_timeline:
                missing = needed
            copies = intervals.intersect_intervals(intervals.intersect_intervals(change.copies, old_timeline), missing)
            if snapshot.model.is_order_dependent and copies != old_timeline:
                copies = ()  # such a table is copied whole, or not at all
            by_name[name] = replace(change, needed=needed, missing=missing, copies=copies)
    return tuple(by_name[change.name] for change in changes)


def schedule_run(
    graph: Graph,
    snapshots: Mapping[str, Snapshot],
    table_state: Loaded,
    window: Window,
    late_names: frozenset[str] = frozenset(),
    ready: Readiness | None = None,
) -> Mapping[str, tuple[Timeline, Timeline]]:
    """Return, for a run, name -> (needed, missing) of every stored table that is behind its last cron tick.

    Models in `late_names` stay as they are, and their readers are filled no further than they are. The same holds for
    time that is not `ready` yet. Time that is missing but not needed is an unfinished unit, of a model that allows
    that.
    """
    behind: dict[str, tuple[Timeline, Timeline]] = {}
    frontiers = Frontiers(graph, window)
    for name in graph.order:
        snapshot = snapshots[name]
        bound = frontiers.find_bound(name)
        if snapshot.kind.is_seed or not snapshot.kind.is_stored:
            continue
        if name in late_names:
            held_end = contiguous_end(table_state.timeline_of(snapshot), whole_start(graph, snapshot.model, window))
            frontiers.record_end(name, held_end)
            continue
        end = earliest_moment([window.find_end(snapshot.model), snapshot.model.schedule.end, bound])
        assert end is not None
        needed = _find_needed_time(graph, snapshot.model, snapshot.model.cron.cut(end), window)
        if snapshot.is_preview:  # it goes on from where it began, and is never filled backwards
            begun = table_state.timeline_of(snapshot)
            needed = (
                intervals.intersect_intervals(needed, intervals.build_timeline(begun[0].start, end)) if begun else ()
            )
        begin, lookback = whole_start(graph, snapshot.model, window), snapshot.model.batches.lookback
        missing = _missing_time(snapshot.model, needed, table_state.timeline_of(snapshot), lookback, begin)
        missing = intervals.merge_intervals((*missing, *_current_unit(snapshot.model, window)))
        late = intervals.subtract_intervals(missing, ready(snapshot.model, missing)) if missing and ready else ()
        missing = intervals.subtract_intervals(missing, late)
        if late := intervals.intersect_intervals(late, needed):
            # What waits for a signal is a hole, and nothing downstream may be computed past a hole.
            needed = intervals.subtract_intervals(needed, late)
            held_end = contiguous_end(table_state.timeline_of(snapshot), whole_start(graph, snapshot.model, window))
            end = min(end, late[0].start if snapshot.kind.is_incremental else held_end)
        if window.start and snapshot.kind.is_incremental:
            # What is missing before the start is a hole, too, but for a table that begins later.
            held_time = table_state.timeline_of(snapshot)
            first = held_time[0].start if held_time else begin
            end = min(end, contiguous_end(intervals.merge_intervals((*held_time, *missing)), first))
        frontiers.record_end(name, end)
        if missing:
            behind[name] = (needed, missing)
    return behind


def _table_end(
    snapshot: Snapshot, change: Change | None, table_state: Loaded, window: Window, end_bound: datetime | None
) -> datetime:
    model, due = snapshot.model, window.due(snapshot.model)
    replaced = table_state.end(change.old) if change and change.old and change.old.kind.is_stored else None
    if replaced is not None and model.kind.is_incremental:
        # The one that it replaces may hold more: by a run that ignored its cron, or by an edit of that.
        due = max(due, min(replaced, model.cron.cut(window.now)))
    latest = earliest_moment([window.find_end(model) if window.end else due, model.schedule.end, end_bound])
    assert latest is not None
    if change is None or window.end:
        return model.cron.cut(latest)
    if change.old is not None and _is_rescheduled(change.old.model, model, window):
        # The end of the table that it replaces is that of another schedule. Once it is built, its own end holds.
        built = None if model.kind.is_incremental else table_state.end(snapshot)
        return model.cron.cut(earliest_moment([latest, built]) or latest)
    # No further than the table that it replaces: the merge, days later, would find the days since missing.
    if replaced is None and change.change is ChangeKind.ADDED and snapshot.table in table_state.complete:
        replaced = table_state.end(snapshot)
    return model.cron.cut(min(latest, replaced) if replaced else latest)


def _is_rescheduled(old: Model, new: Model, window: Window) -> bool:
    """Return True if an edit moves the end of a table's time; an end that moves with the clock is left to a run."""
    end, is_moved = new.schedule.end, old.schedule.end != new.schedule.end
    if new.kind.is_incremental:
        return is_moved and end is not None and end <= window.due(new)
    return is_moved or old.cron != new.cron


def look_back_like(snapshots: Mapping[str, Snapshot], base: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
    """Return the snapshots with the longest lookback of their models here and in the base, to which they may go."""

    def widen(snapshot: Snapshot) -> Snapshot:
        lookback = longest_lookback(base.get(snapshot.name), snapshot)
        if lookback == snapshot.model.batches.lookback:
            return snapshot
        return replace(snapshot, model=replace_settings(snapshot.model, {"lookback": lookback}))

    return {name: widen(snapshot) for name, snapshot in snapshots.items()}


def find_limited_models(graph: Graph, window: Window) -> frozenset[str]:
    if window.start is None:
        return frozenset()
    ranged = [model for model in graph.models.values() if model.kind.is_incremental]
    return frozenset(m.name for m in ranged if m.cron.cut(window.start) > m.cron.cut(range_start(graph, m, window)))


def _find_needed_time(graph: Graph, model: Model, end: datetime, window: Window) -> Timeline:
    if not model.kind.is_incremental:
        return intervals.build_timeline(EPOCH, end)  # all of it, as of `end`
    start = range_start(graph, model, window)
    if window.start is None:
        return intervals.build_timeline(model.cron.cut(start), end)
    window_start = min(window.start, units_before(model, end, window.min_intervals))
    return intervals.build_timeline(model.cron.cut(max(start, window_start)), end)


def units_before(model: Model, end: datetime, count: int) -> datetime:
    for _ in range(count):
        end = model.cron.cut(end - timedelta(seconds=1))
    return end


def range_start(graph: Graph, model: Model, window: Window) -> datetime:
    if model.schedule.start:
        return model.schedule.start
    starts = [start for p in graph.upstream([model.name]) if (start := graph.models[p].schedule.start)]
    return min(starts, default=None) or model.cron.cut(window.now - timedelta(days=1))


def whole_start(graph: Graph, model: Model, window: Window) -> datetime:
    """Return since when the table of a model must hold rows, whatever a window leaves out."""
    if not model.kind.is_incremental:
        return EPOCH
    return model.cron.cut(range_start(graph, model, window))


def contiguous_end(held_time: Timeline, start: datetime) -> datetime:
    """Return up to where a table holds all time since its start; EPOCH if it holds nothing or begins later.

    Nothing may be computed from it past a hole: time that is being restated, or whose audit failed.
    """
    return next((interval.end for interval in held_time if interval.start <= start <= interval.end), EPOCH)


def _missing_time(model: Model, needed_time: Timeline, held_time: Timeline, lookback: int, begin: datetime) -> Timeline:
    missing = intervals.subtract_intervals(needed_time, held_time)
    # such a table has no parts that could be computed alone: it is written whole
    if not model.kind.is_incremental or out_of_order(model, missing, held_time):
        return needed_time if missing else ()
    return extend_lookback(model, missing, held_time, lookback, begin)


def extend_lookback(model: Model, missing: Timeline, held_time: Timeline, lookback: int, begin: datetime) -> Timeline:
    # before a requested start too: once the missing time is recorded, no later run computes its lookback
    reached_time = intervals.add_lookback(model.cron, missing, lookback, begin)
    return intervals.merge_intervals((*missing, *intervals.intersect_intervals(reached_time, held_time)))


def out_of_order(model: Model, missing: Timeline, held_time: Timeline) -> bool:
    """Return True if a table that is filled in order lacks time before what it holds: then it is refilled whole."""
    return model.is_order_dependent and bool(held_time and missing) and missing[0].start < held_time[-1].end


def _current_unit(model: Model, window: Window) -> Timeline:
    start = model.cron.cut(window.now)
    over = any(end is not None and end <= start for end in (window.end, model.schedule.end))
    if not model.schedule.allow_partials or over or start == window.now or model.kind.is_order_dependent:
        return ()
    if not model.kind.is_by_time:
        return intervals.build_timeline(EPOCH, model.cron.next_cut(window.now))
    return intervals.build_timeline(start, model.cron.next_cut(window.now))


def earliest_moment(moments: Iterable[datetime | None]) -> datetime | None:
    known_moments = [moment for moment in moments if moment is not None]
    return min(known_moments, default=None)
