"""A plan and a difference as HTML for a notebook: every text escaped, no script, a style that stays inside."""

from collections.abc import Iterator, Mapping
from html import escape

from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Change
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.session.notebook.listing import html_fragment, html_table
from mergeplan.planner.session.wording import TITLES, cost_text, days_text, display_name, plan_headline


def plan_fragment(plan: Plan, estimates: Mapping[str, Estimate]) -> str:
    rows = [_change_row(plan, change, estimates.get(change.name)) for change in plan.changes]
    parts = [html_table(("Model", "Change", "Why", "Computed", "Estimated"), rows)] if rows else []
    parts += [
        _render_line("blocked", "Blocked", f"{blocker.place or ''} {blocker.message}") for blocker in plan.blockers
    ]
    parts += [
        _render_line("warned", "Warning", f"{warning.place or ''} {warning.message}") for warning in plan.warnings
    ]
    return html_fragment(plan_headline(plan), (*parts, *_render_diffs(plan)))


def difference_fragment(plan: Plan, other: str = "") -> str:
    subject = f"the `{other}` environment" if other else "the project"
    if not plan.changes:
        return html_fragment(f"{subject[0].upper()}{subject[1:]} matches the `{plan.environment}` environment.", ())
    rows = [_change_row(plan, change, None)[:3] for change in plan.changes]
    table = html_table(("Model", "Change", "Why"), rows)
    return html_fragment(
        f"Differences of {subject} from the `{plan.environment}` environment:", (table, *_render_diffs(plan))
    )


def _change_row(plan: Plan, change: Change, estimate: Estimate | None) -> tuple[str, ...]:
    category = TITLES[change.category] if change.category else ""
    change_text = str(change.change).capitalize() + (f" ({category})" if category else "")
    computed = days_text(change) if change.missing else ""
    return (
        display_name(plan, change.name),
        change_text,
        change.reason,
        computed,
        cost_text([estimate]) if estimate else "",
    )


def _render_diffs(plan: Plan) -> Iterator[str]:
    for change in plan.changes:
        if change.diff:
            name = escape(display_name(plan, change.name))
            yield f"<details><summary>{name}</summary><pre>{escape(change.diff)}</pre></details>"


def _render_line(style: str, word: str, text: str) -> str:
    return f'<p class="{style}">{word}: {escape(text.strip())}</p>'
