"""What computing a table would cost, judged by what its batches cost before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mergeplan.planner.errors import TooCostly
from mergeplan.planner.intervals import Timeline
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Change
from mergeplan.planner.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class Cost:
    """What a table's batches have cost together; `units` says of how much time they were, see `units`."""

    units: int
    rows: int
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """What computing the missing time of a table would cost; None where nobody can tell."""

    bytes: int | None = None  # read from files
    rows: int | None = None  # written
    seconds: float | None = None  # of its batches, added up: those that run side by side end sooner


def total(estimates: Iterable[Estimate]) -> Estimate:
    """What they cost together, at least: what is not known of one of them is not in it."""
    parts = tuple(estimates)
    return Estimate(
        sum(part.bytes or 0 for part in parts),
        sum(part.rows or 0 for part in parts),
        sum(part.seconds or 0.0 for part in parts),
    )


@dataclass(frozen=True)
class CostLimit:
    """What computing a plan may cost at most; None: as much as it takes."""

    bytes: int | None = None
    seconds: float | None = None

    def check(self, estimates: Iterable[Estimate]) -> None:
        """TooCostly when what is known of the cost is more already."""
        cost = total(estimates)
        over = []
        if self.bytes is not None and (cost.bytes or 0) > self.bytes:
            over.append(f"read at least {cost.bytes:,} bytes, and {self.bytes:,} are allowed")
        if self.seconds is not None and (cost.seconds or 0) > self.seconds:
            over.append(f"take about {cost.seconds:,.0f} seconds of batches, and {self.seconds:,.0f} are allowed")
        if over:
            hint = "Compute less with --start or --select-model, or allow more."
            raise TooCostly(f"Computing this plan would {'; it would '.join(over)}.", hint=hint)


def units(model: Model, timeline: Timeline) -> int:
    """How many units of the model's time a timeline covers; a table computed as a whole counts as one."""
    if not model.kind.is_incremental:
        return 1
    return max(1, sum(1 for interval in timeline for _ in model.cron.cuts(interval)))


def estimate(change: Change, costs: Mapping[str, Cost], scans: Mapping[str, int | None]) -> Estimate:
    """What the missing time of a change's table would cost: as much per unit of time as that table's own batches
    have cost, or, when it has none yet, those of the version it replaces.

    `costs` are by table; `scans` by model: the bytes its queries would read.
    """
    scanned = scans.get(change.name)
    cost = _like(change, costs)
    if cost is None or change.new is None:
        return Estimate(scanned)
    share = units(change.new.model, change.missing) / cost.units
    return Estimate(scanned, round(cost.rows * share), cost.seconds * share)


def _like(change: Change, costs: Mapping[str, Cost]) -> Cost | None:
    """The costs to judge by; those of a version that was cut otherwise tell nothing."""
    if change.new is None:
        return None
    if change.new.table in costs:
        return costs[change.new.table]
    if change.old is None or _cut(change.old) != _cut(change.new):
        return None
    return costs.get(change.old.table)


def _cut(snapshot: Snapshot) -> tuple[Kind, str]:
    """What a unit of its time is."""
    return snapshot.kind, snapshot.model.cron.unit if snapshot.kind.is_incremental else ""
