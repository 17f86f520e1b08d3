"""Limits that a request sets on the time a plan computes: only some models, nothing at all, no gaps."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from mergeplan.planner.intervals import (
    Timeline,
    build_timeline,
    intersect_intervals,
    merge_intervals,
    subtract_intervals,
)
from mergeplan.planner.model.graph import Graph
from mergeplan.planner.model.kind import Fill
from mergeplan.planner.plan.change import Blocker, Change
from mergeplan.planner.plan.schedule import EPOCH, Loaded, Window, whole_start
from mergeplan.planner.snapshot.environment import PROD, Environment
from mergeplan.planner.wording import first_names


def only(changes: Iterable[Change], graph: Graph, names: Collection[str]) -> tuple[Change, ...]:
    """Return the changes with only these models and their ancestors to compute; the other new tables stay empty."""
    # with their ancestors: else they would be computed from empty tables
    filled = set(names) | graph.upstream(names)
    return tuple(
        change if change.name in filled else replace(change, missing=(), needed=(), copies=()) for change in changes
    )


def apply_empty_backfill(changes: Iterable[Change], table_state: Loaded) -> tuple[Change, ...]:
    """Return the changes with the missing time of new tables recorded as held instead of computed.

    A table that an environment shows holds rows: its missing time is still computed.
    """
    return tuple(
        replace(change, missing=(), copies=(), recorded=change.missing)
        if change.missing and change.new and change.new.table not in table_state.complete
        else change
        for change in changes
    )


def find_emptied(changes: Iterable[Change], graph: Graph, old_environment: Environment) -> tuple[Blocker, ...]:
    # Models of prod that show rows now are computed from these tables later, and nothing else says so.
    emptied = {change.name for change in changes if change.recorded}
    if not emptied or old_environment.name != PROD:
        return ()
    losing = set[str]()
    for name in graph.order:
        model = graph.models[name]
        reads_empty = not (emptied | losing).isdisjoint(graph.parents[name])
        # A run over an empty input replaces all rows, those of the lookback, or ends the versions of all keys.
        by_lookback = model.kind.is_by_time and model.batches.lookback > 0
        ends_keys = model.history is not None and model.history.invalidates_deleted
        gives_up = not model.kind.is_stored or model.kind.fill is Fill.WHOLE or by_lookback or ends_keys
        if name not in emptied and reads_empty and gives_up:
            losing.add(name)
    shown = [f"`{name}`" for name in graph.order if name in losing & old_environment.views]
    if not shown:
        return ()
    loss = "they lose the rows that they show now" if len(shown) > 1 else "it loses the rows that it shows now"
    message = f"`--empty-backfill` leaves tables empty from which {first_names(shown, 10)} "
    message += f"{'are' if len(shown) > 1 else 'is'} computed: {loss}, by the next run at the latest."
    return (Blocker(message),)


def mark_lost_time(changes: Iterable[Change], graph: Graph, table_state: Loaded, window: Window) -> tuple[Change, ...]:
    """Return the changes with the time before the first day of a new table that the old one holds."""

    def find_lost_time(change: Change) -> Timeline:
        old, new = change.old, change.new
        if not (old and new and old.kind.is_by_time and new.kind.is_by_time and old.table != new.table):
            return ()
        begin = whole_start(graph, new.model, window)
        return () if change.forward else intersect_intervals(table_state.timeline_of(old), build_timeline(EPOCH, begin))

    return tuple(replace(change, lost=find_lost_time(change)) for change in changes)


def find_gaps(changes: Iterable[Change], old_environment: Environment, table_state: Loaded) -> tuple[Blocker, ...]:
    """Return a blocker for each model whose new table would lack time that the environment's current table holds."""
    blockers = []
    for change in changes:
        old = old_environment.snapshots.get(change.name)
        if change.new is None or old is None or old.table == change.new.table or not change.new.kind.is_incremental:
            continue
        # time recorded as held counts: the request wants it empty
        if gone := subtract_intervals(
            table_state.timeline_of(old),
            merge_intervals((*table_state.timeline_of(change.new), *change.missing, *change.recorded)),
        ):
            message = f"`{change.name}` would lack {gone[0]}, which `{old_environment.name}` shows now."
            blockers.append(Blocker(message, change.new.model.place))
    return tuple(blockers)
