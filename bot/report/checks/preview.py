"""What a merge into a branch would do to the environment that the branch has: a comment and a check. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from mergeplan.bot.projects import repository_of
from mergeplan.bot.report.checks.check import CheckView, fit_summary, fit_title, make_annotations, running_view
from mergeplan.bot.report.markdown import (
    COMMENT_LIMIT,
    MARKER,
    NAMES,
    code,
    details_block,
    fence,
    fit_blocks,
    format_table,
    inert_text,
    tag_text,
)
from mergeplan.bot.report.words import estimate_words, problem_line, work_words
from mergeplan.bot.results import PlannerOutcome, Problem, problems_of
from mergeplan.planner.contract.result import DiffRow
from mergeplan.planner.wording import count_noun

NAME = "mergeplan / branch plan"
ROWS_MOST, DIFFS_MOST = 100, 20
DIFF_ROOM = 6_000  # characters of one diff


@dataclass(frozen=True)
class BranchPreview:
    """The plan of a merge: `changes` are those of the environment's models, `outcome` is what planning it came to."""

    branch: str
    environment: str
    commit: str  # that the environment shows
    revision: int
    outcome: PlannerOutcome
    changes: tuple[DiffRow, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        blockers = problems_of(self.outcome.plan.blockers) if self.outcome.plan else ()
        return (*self.outcome.problems, *(problem for problem in blockers if problem not in self.outcome.problems))

    @property
    def is_fine(self) -> bool:
        """True when the environment would get it."""
        return self.outcome.ok and not self.problems

    @property
    def title(self) -> str:
        if not self.is_fine:
            return f"Plan of {self.environment}: {count_noun(max(1, len(self.problems)), 'problem')}"
        if not self.changes:
            return f"Plan of {self.environment}: no model changes"
        return f"Plan of {self.environment}: {count_noun(len(self.changes), 'model')} against {self.environment}"


def preview_marker(repository: str) -> str:
    """Return the hidden key of the comment for one project."""
    return f"{MARKER}:branch-plan{repository.removeprefix(repository_of(repository))} -->"


def preview_comment(repository: str, preview: BranchPreview) -> str:
    shown = f"{preview.commit[:7]}, revision {preview.revision}" if preview.revision else "nothing yet"
    title = preview.title.replace(f" {preview.environment}", f" {code(preview.environment)}")
    blocks = [
        f"{preview_marker(repository)}\n### {title}\n\nAgainst the environment {code(preview.environment)} of the "
        f"branch {code(preview.branch)} ({shown}).",
        *_preview_blocks(preview),
        f"A merge promotes to {code(preview.environment)} alone: prod does not change. Nothing was computed for this "
        "plan, and this pull request has no environment of its own.",
    ]
    return fit_blocks(blocks, COMMENT_LIMIT, "The rest does not fit here.")


def preview_withdrawn(repository: str, environment: str, base: str) -> str:
    """Return the comment on a pull request that merges into another branch by now."""
    return (
        f"{preview_marker(repository)}\n### No plan of {code(environment)}\n\nThis pull request merges into "
        f"{code(base)} now, and no longer into the branch of {code(environment)}."
    )


def preview_check(preview: BranchPreview) -> CheckView:
    summary, marks = (
        fit_summary("\n\n".join(_preview_blocks(preview)) or preview.title),
        make_annotations(preview.problems),
    )
    conclusion = "success" if preview.is_fine else "failure"
    return CheckView(NAME, fit_title(preview.title), summary, conclusion=conclusion, annotations=marks)


def preview_running(environment: str) -> CheckView:
    return running_view(NAME, f"Planning against {environment}")


def _preview_blocks(preview: BranchPreview) -> list[str]:
    blocks = []
    if preview.problems:
        blocks.append("\n".join(problem_line(problem) for problem in preview.problems[:ROWS_MOST]))
    elif not preview.outcome.ok:
        blocks.append("Internal error in mergeplan. Push again to have it planned once more.")
    if preview.changes:
        blocks.append(format_table(("Model", "Change", "Why"), map(_change_row, preview.changes[:ROWS_MOST])))
    if len(preview.changes) > ROWS_MOST:
        blocks.append(f"and {len(preview.changes) - ROWS_MOST} more")
    plan = preview.outcome.plan
    if plan and preview.is_fine:
        cost = estimate_words(plan.models)
        blocks.append(f"A merge computes {work_words(plan)}{f' ({cost})' if cost else ''}.")
    return blocks + [
        details_block(f"Diff of <code>{tag_text(change.name)}</code>", fence(change.diff, "diff", DIFF_ROOM))
        for change in [change for change in preview.changes if change.diff][:DIFFS_MOST]
    ]


def _change_row(change: DiffRow) -> Sequence[str]:
    category = NAMES.get(change.category or "", "") or change.change
    return code(change.name), category, inert_text(change.reason)
