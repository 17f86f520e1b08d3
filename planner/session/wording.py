"""Phrases for a plan's actions and costs, shared by pages and terminal."""

from collections.abc import Callable, Sequence

from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Category, Change
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.wording import duration_text, size_text

TITLES = {
    Category.BREAKING: "Breaking",
    Category.NON_BREAKING: "Non-breaking",
    Category.FORWARD_ONLY: "Forward-only",
    Category.METADATA: "Metadata",
    Category.EQUIVALENT: "Equivalent",
    Category.INDIRECT_BREAKING: "Indirect Breaking",
    Category.INDIRECT_NON_BREAKING: "Indirect Non-breaking",
    Category.UNDECIDED: "Undecided (treated as breaking; override with `--categorize`)",
}


def plan_headline(plan: Plan) -> str:
    if plan.is_empty:
        return f"No changes to plan: the project matches the `{plan.environment}` environment."
    if plan.environment == PROD and not plan.old.exists:
        return "`prod` environment will be initialized"
    if not plan.old.exists:
        return f"New environment `{plan.environment}` will be created from `{plan.base}`"
    if plan.restatement is not None:
        return f"Restatement of the `{plan.environment}` environment as it is shown; no model changes."
    return differences_text(plan)


def differences_text(plan: Plan) -> str:
    if plan.changes:
        return f"Differences from the `{plan.base}` environment:"
    return f"No differences from the `{plan.base}` environment."


def display_name(plan: Plan, name: str) -> str:
    return plan.new.naming.view(name, plan.environment)


def cost_text(estimates: Sequence[Estimate]) -> str:
    """Return `~1.2 GiB read, ~3 s`; unknown parts are left out, and an incomplete sum says `at least`."""
    read = _format_sum([estimate.bytes for estimate in estimates], size_text)
    time = _format_sum([estimate.seconds for estimate in estimates], duration_text)
    return ", ".join(text for text in (f"{read} read" if read else "", time) if text)


def _format_sum(values: Sequence[float | None], text: Callable[[float], str]) -> str:
    numbers = [value for value in values if value is not None]
    return f"{'~' if len(numbers) == len(values) else 'at least '}{text(sum(numbers))}" if sum(numbers) else ""


def days_text(change: Change) -> str:
    if change.is_first_load:
        return "[first load: all rows]"
    if change.kind.is_incremental:
        return f"[{', '.join(str(interval) for interval in change.missing)}]"
    return "[full refresh]"
