"""Estimates of what computing a table costs, based on what its batches cost before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from mergeplan.planner.errors import TooCostly
from mergeplan.planner.intervals import Timeline
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Change
from mergeplan.planner.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class Cost:
    """The total cost of a table's batches; `units` is the number of units of time that they covered, see `units`."""

    units: int
    rows: int
    seconds: float


@dataclass(frozen=True)
class BatchCost:
    """The cost of one batch when it was last computed, and when that was."""

    start: datetime
    units: int
    rows: int
    seconds: float
    at: datetime


@dataclass(frozen=True)
class TableSize:
    """The bytes of a table's files when they were measured."""

    bytes: int
    measured_at: datetime


@dataclass(frozen=True)
class TableHistory:
    """The batches of a table: their total, their number, the last write, and those of the newest time, newest first."""

    total: Cost
    count: int
    written_at: datetime
    batches: tuple[BatchCost, ...]

    def count_rows(self, model: Model, held: Timeline) -> int | None:
        """Return the number of rows in the table; None where its batches do not tell.

        The batches of a table that is filled by time add up, unless some of them overlap: then they cover more units
        than the table holds. A merge may write a row that is there already.
        """
        if not model.kind.is_incremental:
            return self.total.rows if self.count == 1 else None
        if model.kind.is_by_time and self.total.units == units(model, held):
            return self.total.rows
        return None


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of computing the missing time of a table; None where it is unknown."""

    bytes: int | None = None  # read from files
    rows: int | None = None  # written
    seconds: float | None = None  # of its batches, added up: those that run side by side end sooner


def total_estimate(estimates: Iterable[Estimate]) -> Estimate:
    """Return the total cost, a lower bound: unknown parts count as nothing."""
    parts = tuple(estimates)
    return Estimate(
        sum(part.bytes or 0 for part in parts),
        sum(part.rows or 0 for part in parts),
        sum(part.seconds or 0.0 for part in parts),
    )


@dataclass(frozen=True)
class CostLimit:
    """The highest cost that computing a plan may have; None: no limit."""

    bytes: int | None = None
    seconds: float | None = None

    def check(self, estimates: Iterable[Estimate]) -> None:
        """Raise TooCostly if the known part of the cost exceeds the limit."""
        cost = total_estimate(estimates)
        over = []
        if self.bytes is not None and (cost.bytes or 0) > self.bytes:
            over.append(f"read at least {cost.bytes:,} bytes, and {self.bytes:,} are allowed")
        if self.seconds is not None and (cost.seconds or 0) > self.seconds:
            over.append(f"take about {cost.seconds:,.0f} seconds of batches, and {self.seconds:,.0f} are allowed")
        if over:
            hint = "Compute less with --start or --select-model, or allow more."
            raise TooCostly(f"Computing this plan would {'; it would '.join(over)}.", hint=hint)


def units(model: Model, timeline: Timeline) -> int:
    """Return the number of units of the model's time in a timeline; a table computed as a whole counts as one."""
    if not model.kind.is_incremental:
        return 1
    return max(1, sum(1 for interval in timeline for _ in model.cron.cuts(interval)))


def estimate_cost(change: Change, costs: Mapping[str, Cost], scans: Mapping[str, int | None]) -> Estimate:
    """Estimate the cost of the missing time of a change's table.

    The cost per unit of time is that of the table's own batches or, when it has none yet, of the version it replaces.
    `costs` are by table; `scans` are by model: the bytes its queries would read.
    """
    scanned = scans.get(change.name)
    cost = _find_cost(change, costs)
    if cost is None or change.new is None:
        return Estimate(scanned)
    share = units(change.new.model, change.missing) / cost.units
    return Estimate(scanned, round(cost.rows * share), cost.seconds * share)


def _find_cost(change: Change, costs: Mapping[str, Cost]) -> Cost | None:
    """Return the costs to estimate by, or None; a version with other units of time says nothing."""
    if change.new is None:
        return None
    if change.new.table in costs:
        return costs[change.new.table]
    if change.old is None or _time_unit(change.old) != _time_unit(change.new):
        return None
    return costs.get(change.old.table)


def _time_unit(snapshot: Snapshot) -> tuple[Kind, str]:
    return snapshot.kind, snapshot.model.cron.unit if snapshot.kind.is_incremental else ""
