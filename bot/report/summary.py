"""The summary of an Action's job: the plan comment, and after it whatever the comment had no room for. Pure."""

from __future__ import annotations

from mergeplan.bot.report.comment import plan_comment
from mergeplan.bot.report.markdown import fit_blocks
from mergeplan.bot.report.models import OPEN, Site, diffs_blocks, model_table
from mergeplan.bot.report.shown import Shown
from mergeplan.planner.contract.plan import ModelChange

SUMMARY_LIMIT = 250_000  # characters: GitHub takes 1 MiB, and a character may be four bytes
ROWS_ROOM = 100_000
DIFFS_APART = 6  # of more edited models the comment shows beginnings only


def job_summary(pull_view: Shown) -> str:
    """Return the comment, each model in a row, each diff; '' for a pull request without a comment."""
    comment = plan_comment(pull_view)
    if comment is None:
        return ""
    outcome = pull_view.record.outcome
    models = [model for model in outcome.plan.models if model.change != "unchanged"] if outcome and outcome.plan else []
    return fit_blocks(
        [comment, *_extra_blocks(pull_view, models), ""], SUMMARY_LIMIT, "*The rest is in the pull request's files.*"
    )


def _extra_blocks(pull_view: Shown, models: list[ModelChange]) -> list[str]:
    site = Site(pull_view.record.place.site, pull_view.record.head, pull_view.record.place.folder)
    edited = [model for model in models if model.diff]
    blocks = [f"#### Each model\n\n{model_table(models, ROWS_ROOM, site)}"] if len(models) > OPEN else []
    if len(edited) > DIFFS_APART:
        diffs = [block for model in edited for block in diffs_blocks([model], site)]
        blocks += ["#### Each diff", *diffs]
    return blocks
