"""The cost of a plan: estimated from earlier batches of its tables, and the bytes that its queries would read."""

from collections.abc import Mapping
from datetime import datetime

from mergeplan.planner.apply.backfill.layout import Layout
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Change
from mergeplan.planner.plan.costs import Estimate, estimate_cost
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.store import StateStore


def forecast_costs(plan: Plan, store: StateStore, engine: Engine | None, now: datetime) -> Mapping[str, Estimate]:
    """Return, by model, the cost of computing its missing time; without an engine the bytes are unknown."""
    if plan.is_virtual:
        return {}
    costs = store.costs.load(
        {snapshot.table for change in plan.backfills for snapshot in (change.old, change.new) if snapshot}
    )
    scans = _estimate_scans(plan, engine, Layout(plan.new.snapshots, plan.parents, now)) if engine else {}
    return {change.name: estimate_cost(change, costs, scans) for change in plan.backfills}


def _estimate_scans(plan: Plan, engine: Engine, layout: Layout) -> dict[str, int | None]:
    """Return, by model, the bytes its queries would read, without models that read a table which this plan fills."""
    filled = frozenset(change.name for change in plan.backfills)
    return {
        change.name: _estimate_bytes(change, change.new, engine, layout)
        for change in plan.backfills
        if change.new and not _reads_any(layout, change.name, filled)
    }


def _estimate_bytes(change: Change, snapshot: Snapshot, engine: Engine, layout: Layout) -> int | None:
    if snapshot.kind.is_seed:
        return 0
    if snapshot.model.python:
        return None  # what code reads shows when it runs
    total = 0
    for interval in change.missing:
        scanned = engine.scan_bytes(layout.query(snapshot.model, interval))
        if scanned is None:
            return None
        total += scanned
    return total


def _reads_any(layout: Layout, name: str, filled_tables: frozenset[str]) -> bool:
    return any(
        parent in filled_tables or (parent in layout.snapshots and layout.snapshots[parent].kind.is_view
                             and _reads_any(layout, parent, filled_tables))
        for parent in layout.reads(name)
    )  # fmt: skip
