"""The result of a plan or a run, for a person or a program, and as an exit code."""

from collections.abc import Mapping

from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.cli.failure import report_error
from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.output import Output
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.contract.result import PromotionRow, ResultLine
from mergeplan.planner.errors import Refused
from mergeplan.planner.plan.build import Plan

DONE = ResultLine(ok=True)
NOTHING: Mapping[str, object] = {}


def report_unapplied(
    out: Output, new_plan: Plan, before: PromotionRow | None = None, comparisons: Mapping[str, object] = NOTHING
) -> int:
    """Report a plan that is not applied: done if empty, refused if blocked; `comparisons` are keys of the result."""
    if isinstance(out, JsonLines):
        for blocker in new_plan.blockers:
            out.error(Refused(blocker.message, place=blocker.place))
        result = ResultLine(ok=not new_plan.blockers, promoted_before=before)
        out.result(result.model_copy(update=comparisons))
    return Refused.exit_code if new_plan.blockers else 0


def report_outcome(out: Output, outcome: Outcome, result: ResultLine = DONE) -> int:
    """Report the result; return the exit code of the first failure, or 0."""
    if isinstance(out, Terminal):
        out.finish()
        out.conclude(outcome)
    elif not outcome.failures:
        out.result(result, outcome)
    return _report_failures(out, outcome) if outcome.failures else 0


def _report_failures(out: Output, outcome: Outcome) -> int:
    errors = [failure.error for failure in outcome.failures]
    if isinstance(out, JsonLines):
        for error in errors:
            out.error(error)
        out.result(ResultLine(ok=False), outcome)
    else:
        for error in errors:
            report_error(error, as_json=False)
    return errors[0].exit_code
