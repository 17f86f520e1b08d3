"""A task of a backfill, cut into batches, and the results."""

from __future__ import annotations

from dataclasses import dataclass

from mergeplan.planner.checks.audits import AuditResult
from mergeplan.planner.errors import AuditFailed, MergeplanError, Refused
from mergeplan.planner.intervals import (
    Interval,
    Timeline,
    add_lookback,
    batches,
    intersect_intervals,
    merge_intervals,
    subtract_intervals,
)
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.stages import BackfillTask


@dataclass(frozen=True)
class Failure:
    """A model that could not be computed; `audit` is the result of a blocking audit that found rows."""

    model: str
    error: MergeplanError
    audit: AuditResult | None = None


@dataclass(frozen=True)
class Filled:
    """The result of a backfill: rows written, audits with rows, failed models, and models left out for them."""

    rows: int = 0
    batches: int = 0
    warnings: tuple[AuditResult, ...] = ()
    failures: tuple[Failure, ...] = ()
    skipped: tuple[str, ...] = ()

    def plus(self, other: Filled) -> Filled:
        return Filled(
            self.rows + other.rows,
            self.batches + other.batches,
            self.warnings + other.warnings,
            self.failures + other.failures,
            self.skipped + other.skipped,
        )


class FoundRows(Exception):
    """A blocking audit found rows."""

    def __init__(self, result: AuditResult) -> None:
        super().__init__(result.name)
        self.result = result


def batches_of(task: BackfillTask, loaded_time: Timeline) -> tuple[Interval, ...]:
    """Return the remaining work, cut into batches; another process or an earlier run may have done some of it."""
    model, remaining_time = task.snapshot.model, subtract_intervals(task.missing, loaded_time)
    if not remaining_time:
        return ()
    if not model.kind.is_incremental:
        return (Interval(task.missing[0].start, task.missing[-1].end),)
    widened_time = remaining_time if model.is_order_dependent else _add_lookback(task, remaining_time)
    reached = merge_intervals(
        (
            *_add_lookback(task, subtract_intervals(remaining_time, task.copies)),
            *subtract_intervals(widened_time, task.copies),
        )
    )
    # What is copied is copied with its lookback: the other table has been written there again since.
    copied = subtract_intervals(intersect_intervals(widened_time, task.copies), reached)
    return (*copied, *batches(model.cron, reached, model.batches.batch_size))


def _add_lookback(task: BackfillTask, time: Timeline) -> Timeline:
    model = task.snapshot.model
    return add_lookback(model.cron, time, max(model.batches.lookback, task.lookback), task.missing[0].start)


def not_ready(model: Model, late: Timeline) -> Refused:
    names = " and ".join(f"`{call.name}`" for call in model.schedule.signals)
    message = f"{model.name} waits for {names}: {late[0]} is not ready yet."
    return Refused(message, place=model.locate(model.schedule.signals[0].name, in_block=True), hint="Run again later.")


def audit_failure(model: Model, audit: AuditResult) -> Failure:
    rows = "1 row" if audit.count == 1 else f"{audit.count} rows"
    place = model.locate(audit.name, in_block=True)
    message = f"The audit `{audit.name}` of `{model.name}` found {rows}."
    return Failure(model.name, AuditFailed(message, place=place, audit=audit.name, model=model.name), audit)
