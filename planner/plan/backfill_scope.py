"""What a request takes away from the time that a plan would compute: only some models, nothing at all, no gaps."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from mergeplan.planner.intervals import merge, subtract
from mergeplan.planner.model.graph import Graph
from mergeplan.planner.plan.change import Blocker, Change
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.snapshot.environment import Environment


def only(changes: Iterable[Change], graph: Graph, names: Collection[str]) -> tuple[Change, ...]:
    """The changes of which only these models, and what they read, are computed; the other new tables stay empty."""
    # with what they read, or they would be computed from tables that hold nothing
    filled = set(names) | graph.upstream(names)
    return tuple(each if each.name in filled else replace(each, missing=(), needed=(), copies=()) for each in changes)


def left_empty(changes: Iterable[Change], loaded: Loaded) -> tuple[Change, ...]:
    """The changes whose new tables are recorded as holding their time without being computed.

    A table that an environment shows holds rows: what it lacks is computed.
    """
    return tuple(
        replace(each, missing=(), copies=(), recorded=each.missing)
        if each.missing and each.new and each.new.table not in loaded.complete
        else each
        for each in changes
    )


def gaps(changes: Iterable[Change], shown: Environment, loaded: Loaded) -> tuple[Blocker, ...]:
    """A blocker for each model whose new table would lack time that the table holds which the environment shows now."""
    found = []
    for each in changes:
        old = shown.snapshots.get(each.name)
        if each.new is None or old is None or old.table == each.new.table or not each.new.kind.is_incremental:
            continue
        # what is recorded as held counts: it was asked for that it be empty
        if gone := subtract(loaded.of(old), merge((*loaded.of(each.new), *each.missing, *each.recorded))):
            message = f"`{each.name}` would lack {gone[0]}, which `{shown.name}` shows now."
            found.append(Blocker(message, each.new.model.place))
    return tuple(found)
