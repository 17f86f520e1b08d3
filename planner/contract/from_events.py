"""Conversion of events of an apply, and of results of checks, to the contract's lines."""

from collections.abc import Callable, Mapping

from mergeplan.planner.apply import events
from mergeplan.planner.apply.backfill.work import Filled
from mergeplan.planner.checks.audits import AuditResult
from mergeplan.planner.checks.linter import Violation
from mergeplan.planner.checks.unit_test_result import TestResult
from mergeplan.planner.contract import lines
from mergeplan.planner.contract.base import Sample, convert_to_json
from mergeplan.planner.contract.from_errors import split_place
from mergeplan.planner.contract.from_plan import format_span, format_spans
from mergeplan.planner.contract.result import BackfillCounts, PromotionRow, ViewCounts
from mergeplan.planner.contract.wire import Line
from mergeplan.planner.engine.protocol import Rows
from mergeplan.planner.errors import Located

# Events whose lines have the same fields.
SAME_FIELDS: Mapping[type[events.Event], Callable[[events.Event], Line]] = {
    events.TableCreated: lines.TableLine.model_validate,
    events.ClaimRefuted: lines.RefutedLine.model_validate,
    events.RestatedThemselves: lines.RestatingLine.model_validate,
    events.EnvironmentTouched: lines.TouchedLine.model_validate,
    events.ModelFailed: lines.FailedLine.model_validate,
    events.ModelSkipped: lines.SkippedLine.model_validate,
    events.TableDropped: lines.DroppedLine.model_validate,
    events.PromotionFound: lines.RecoveredLine.model_validate,
    events.PromotionUndone: lines.UndoneLine.model_validate,
}


def event_line(event: events.Event) -> Line | None:
    """Return the line of an event; None if it has none, or if it lacks the place, as an audit's."""
    if validate := SAME_FIELDS.get(type(event)):
        return validate(event)
    match event:
        case events.StageStarted(stage, total, ui):
            return lines.StageLine(name=str(stage), total=total, spark_ui=ui)
        case events.BatchDone():
            return batch_line(event)
        case events.ViewSwapped(view, table):
            return lines.ViewLine(name=view, table=table)
        case events.ViewDropped(view):
            return lines.ViewLine(name=view)
        case events.Compared(reader, model, columns, spared):
            return lines.ComparedLine(reader=reader, model=model, columns=tuple(columns), skipped=spared)
        case events.ModelLate(model, signals, late):
            return lines.LateLine(model=model, signals=signals, intervals=format_spans(late))
        case events.TableAwaited(model, table, holder):
            return lines.WaitingLine(model=model, table=table, holder=holder)
        case events.BatchAwaited(model, interval):
            return lines.WaitingLine(model=model, interval=format_span(interval), holder="Spark")
        case events.BatchRepeated(model, interval):
            return lines.RepeatedLine(model=model, interval=format_span(interval))
        case events.EnvironmentAwaited(environment, holder):
            return lines.WaitingLine(environment=environment, holder=holder)
        case events.PromotionPending(environment, revision, views, holder):
            return lines.PendingLine(environment=environment, revision=revision, views=views, holder=holder or None)
        case _:
            return None


def batch_line(event: events.BatchDone) -> lines.BatchLine:
    return lines.BatchLine(
        model=event.model,
        index=event.index,
        of=event.of,
        interval=format_span(event.interval),
        rows=event.rows,
        seconds=round(event.seconds, 3),
        copied=event.copied,
        unchanged=event.unchanged,
        audits_unchanged=event.audits_unchanged,
    )


def audit_found(model: str, result: AuditResult, place: Located | None) -> lines.AuditRow:
    path, line, _ = split_place(place)
    return lines.AuditRow(
        model=model,
        reads=tuple(result.reads),
        name=result.name,
        ok=result.ok,
        blocking=result.blocking,
        count=result.count,
        query=result.sql,
        sample=build_sample(result.sample),
        unchanged=result.unchanged,
        path=path,
        line=line,
        interval=format_span(result.interval) if result.interval else None,
    )


def lint_line(violation: Violation) -> lines.LintLine:
    path, line, column = split_place(violation.place)
    return lines.LintLine(
        rule=violation.rule,
        model=violation.model,
        message=violation.message,
        path=path,
        line=line,
        column=column,
        severity="error" if violation.blocking else "warning",
    )


def test_line(result: TestResult) -> lines.TestLine:
    test = result.test
    return lines.TestLine(
        name=test.name, ok=result.ok, path=test.path, line=test.line, message=result.message, unchanged=result.unchanged
    )


def promotion_row(promoted: events.Promoted, jobs: int | None = None, filled: Filled | None = None) -> PromotionRow:
    return PromotionRow(
        views=ViewCounts.model_validate(promoted),
        revision=promoted.revision,
        spark_jobs=jobs,
        backfill=BackfillCounts.model_validate(filled) if filled else None,
    )


def build_sample(rows: Rows) -> Sample:
    return Sample(
        columns=tuple(rows.columns), rows=tuple(tuple(convert_to_json(cell) for cell in row) for row in rows.rows)
    )
