"""Output for a program: one JSON object a line, the last one the result (docs/reference/json.md)."""

import sys
from collections.abc import Mapping, Sequence

from mergeplan.planner.apply.events import AuditRan, BatchDone, Event, PromotionPending, PromotionRecovered, Recovery
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.checks.linter import Violation
from mergeplan.planner.checks.unit_test_result import TestResult
from mergeplan.planner.contract.base import Names, Spans
from mergeplan.planner.contract.from_errors import error_line
from mergeplan.planner.contract.from_events import audit_found, event_line, lint_line, promotion_row, test_line
from mergeplan.planner.contract.from_plan import final_plan_view, format_span, plan_view
from mergeplan.planner.contract.lines import AuditLine, AuditRow, PlanLine, StageLine, WarningLine
from mergeplan.planner.contract.plan import PlanView
from mergeplan.planner.contract.result import BackfillCounts, ResultLine, TestCounts
from mergeplan.planner.contract.wire import Line, serialize_line
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.snapshot.snapshot import Snapshot


class JsonLines:
    """A writer of events as they come, which collects what the result repeats."""

    def __init__(self) -> None:
        self._tests = TestCounts()
        self._audits: list[AuditRow] = []
        self._snapshots: Mapping[str, Snapshot] = {}
        self._plan: PlanView | None = None
        self._copied: dict[str, Spans] = {}  # model -> intervals whose rows came from its old table
        self._seconds = 0.0  # of batches
        # Unfinished promotions: environment -> views.
        self._recovered: dict[str, Names] = {}
        self._pending: dict[str, Names] = {}

    def lint(self, violations: Sequence[Violation]) -> None:
        for violation in violations:
            print_line(lint_line(violation))

    def tests(self, results: Sequence[TestResult], seconds: float) -> None:
        print_line(StageLine(name="tests", total=len(results)))
        for result in results:
            print_line(test_line(result))
        failed = sum(not result.ok for result in results)
        unchanged = sum(result.unchanged for result in results)
        passed, took = len(results) - failed, round(seconds, 3)
        self._tests = TestCounts(passed=passed, failed=failed, unchanged=unchanged, seconds=took)

    def plan(self, plan: Plan, estimates: Mapping[str, Estimate]) -> None:
        self.knows(plan.new.snapshots)
        self._plan = plan_view(plan, estimates)
        print_line(PlanLine(plan=self._plan))

    def revise_plan(self, plan: Plan, estimates: Mapping[str, Estimate]) -> None:
        """Set the plan to its final form; it keeps the id under which it was applied."""
        assert self._plan is not None
        self._plan = final_plan_view(self._plan, plan, estimates, self._copied)

    def due(self, plan: Plan, estimates: Mapping[str, Estimate]) -> None:
        """Print what a run would compute; after a plan (`--run`) the result is about that plan."""
        earlier_plan = self._plan
        self.plan(plan, estimates)
        self._plan = earlier_plan or self._plan

    def knows(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Set the models of later events: an audit's line is looked up in them."""
        self._snapshots = snapshots

    def event(self, event: Event) -> None:
        if isinstance(event, BatchDone):
            self._seconds += event.seconds
        match event:
            case BatchDone(copied=True):
                self._copied[event.model] = (*self._copied.get(event.model, ()), format_span(event.interval))
            case PromotionRecovered(environment, ended=Recovery.FINISHED, views=views):
                self._recovered[environment] = tuple(views)
            case PromotionPending(environment, views=views):
                self._pending[environment] = tuple(views)
            case AuditRan(model, result):
                snapshot = self._snapshots.get(model)
                place = snapshot.model.locate(result.name, in_block=True) if snapshot else result.place
                row = audit_found(model, result, place)
                self._audits.append(row)
                print_line(AuditLine(**dict(row)))
        if json_line := event_line(event):
            print_line(json_line)

    def warn(self, message: str) -> None:
        print_line(WarningLine(message=message))

    def error(self, error: MergeplanError) -> None:
        print_line(error_line(error))

    def result(self, result: ResultLine, outcome: Outcome | None = None) -> None:
        """Print the last line: what the verb reports, and what was collected on the way."""
        gathered: dict[str, object] = {"recovered": self._recovered or None, "pending": self._pending or None}
        if self._plan is not None:
            gathered |= {"plan": self._plan, "tests": self._tests, "audits": tuple(self._audits)}
        if outcome is not None:
            promoted = outcome.promoted
            promotion = promotion_row(promoted, outcome.promotion_jobs, outcome.filled) if promoted else None
            rows, batches = outcome.filled.rows, outcome.filled.batches
            filled = BackfillCounts(rows=rows, batches=batches, seconds=round(self._seconds, 3))
            gathered |= {"applied": promotion is not None, "promotion": promotion, "backfill": filled}
        verb_fields = {name: getattr(result, name) for name in result.model_fields_set}
        print_line(result.model_copy(update=gathered | verb_fields))

    def report_end(self, *, ok: bool) -> None:
        self.result(ResultLine(ok=ok))


def print_line(json_line: Line) -> None:
    sys.stdout.write(serialize_line(json_line) + "\n")
    sys.stdout.flush()
