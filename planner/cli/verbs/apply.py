"""Applying a plan in the terminal and printing its result; imported only when a plan is applied."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from mergeplan.planner.apply.backfill.work import Filled
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.cli.checks.data_diff import diff_plan_data
from mergeplan.planner.cli.checks.physical_plan import physical_of_plan
from mergeplan.planner.cli.handling import Handling
from mergeplan.planner.cli.outcome import report_outcome, report_unapplied
from mergeplan.planner.cli.output import Output, make_emitter, output_of, output_option
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.from_events import promotion_row
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.use_cases.apply import apply_plan, check_queries
from mergeplan.planner.session.use_cases.plan import find_earlier_promotion, rebuild_plan
from mergeplan.planner.session.use_cases.planning import estimate_costs
from mergeplan.planner.session.use_cases.run import run_after_plan
from mergeplan.planner.session.workspace import Workspace


@click.command()
@click.argument("plan_id")
@click.option("--note", default="", help="The reason, for the environment's history.")
@output_option
@workspace
def apply(plan_id: str, root: Path, gateway: str | None, output: str, note: str) -> int:
    """Apply the plan PLAN_ID, as it was shown.

    The plan is made again from the current project and state. If the result differs, nothing is applied, and the
    differences are named.

    \b
    mergeplan plan dev --no-prompts
    mergeplan apply 3f9c0a1b2d4e
    """
    out = output_of(output)
    with open_workspace(root, gateway, "backfill", on_event=make_emitter(out)) as work:
        new_plan, plan_options = rebuild_plan(work, plan_id)
        out.plan(new_plan, estimate_costs(work, new_plan))
        if new_plan.is_empty or new_plan.blockers:
            return report_unapplied(out, new_plan)
        check_queries(work, new_plan)
        return carry_out(work, out, new_plan, plan_options, Handling(True, False, False, False, True, note, None))


def carry_on(work: Workspace, out: Output, new_plan: Plan, handling: Handling) -> int:
    """Handle a plan that is empty or blocked: run what is due, compare, or answer a program."""
    if not new_plan.blockers and handling.then_run:
        return report_outcome(out, _run_due_models(work, out, new_plan))
    compared = {} if new_plan.blockers else _comparison_results(work, out, new_plan, handling)
    promotion = find_earlier_promotion(work, new_plan.environment, handling.note)
    return report_unapplied(out, new_plan, promotion_row(promotion) if promotion else None, compared)


def _comparison_results(work: Workspace, out: Output, new_plan: Plan, handling: Handling) -> Mapping[str, object]:
    if isinstance(out, Terminal):
        out.finish()  # the comparisons follow the last stage
    rows = diff_plan_data(work, out, new_plan, handling.data_diff)
    plans = physical_of_plan(work, out, new_plan, handling.physical_plan)
    shown = {"data_diff": None if rows is None else tuple(rows), "physical_plan": plans}
    return {key: value for key, value in shown.items() if value is not None}


def carry_out(work: Workspace, out: Output, new_plan: Plan, options: PlanOptions, handling: Handling) -> int:
    """Apply the plan, on request run what is due and compare what changed, and report the result."""
    started = time.monotonic()
    outcome = apply_plan(work, new_plan, options, handling.note)
    final = outcome.plan or new_plan
    if handling.then_run and not outcome.failures:
        outcome = replace(outcome, filled=outcome.filled.plus(_run_due_models(work, out, new_plan).filled))
    seconds = round(time.monotonic() - started, 3)
    expected = handling.expect_digest in (None, final.digest)
    result = ResultLine(ok=True, seconds=seconds, expected=expected)
    if not outcome.failures:
        result = result.model_copy(update=_comparison_results(work, out, final, handling))
    return report_outcome(out, outcome, result)


def _run_due_models(work: Workspace, out: Output, new_plan: Plan) -> Outcome:
    if isinstance(out, Terminal):
        out.finish()
    return run_after_plan(work, new_plan.environment).outcome or Outcome((), Filled(), None)
