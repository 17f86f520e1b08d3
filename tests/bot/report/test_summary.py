"""The job summary: the comment, and all that did not fit into it."""

from __future__ import annotations

from mergeplan.bot.report.comment import job_summary, plan_comment
from tests.bot.report.test_comment import is_balanced, show


def edit_rows(number: int, diff: str) -> list[dict[str, object]]:
    return [{"name": f"shop.m{i}", "change": "direct", "category": "breaking", "diff": diff} for i in range(number)]


def test_a_small_plans_summary_is_its_comment() -> None:
    view = show(models=edit_rows(3, "+a"))
    assert job_summary(view).rstrip() == (plan_comment(view) or "").rstrip()


def test_every_model_and_diff_stands_in_the_summary_where_the_comment_had_no_room() -> None:
    view = show(models=edit_rows(60, "+a line\n" * 150 + "+the last line"))
    comment, summary = plan_comment(view) or "", job_summary(view)

    assert comment.count("+the last line") < 60
    assert summary.count("+the last line") >= 60
    assert is_balanced(summary)


def test_a_summary_is_never_larger_than_github_takes() -> None:
    summary = job_summary(show(models=edit_rows(1_000, "+\U0001f300\n" * 3_000)))

    assert len(summary.encode()) < 1024 * 1024
    assert is_balanced(summary)
    assert "The rest is in the pull request's files." in summary
