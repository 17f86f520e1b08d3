"""The plan comment: what it says in each state, whole whatever its size, inert whatever it quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt

from mergeplan.bot.records import Prod, ProdRecord, PullRecord, PullState
from mergeplan.bot.report.checks.table import checks
from mergeplan.bot.report.comment import plan_comment
from mergeplan.bot.report.markdown import COMMENT_LIMIT, code, fence, format_days, inert_text
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.results import pack_outcome, select_lines, unpack_outcome
from mergeplan.bot.transitions.planning import note_moved_sources
from mergeplan.planner.contract.wire import read_line
from tests.bot.changing import change_record


def show(state: PullState = PullState.PLANNED, *, models: list[dict[str, Any]] | None = None, **changes: Any) -> Shown:
    change_rows = (
        [{"name": "shop.orders", "change": "direct", "category": "breaking", "kind": "FULL"}]
        if models is None
        else models
    )
    plan = {"id": "p1", "digest": "q", "environment": "pr_7", "base": "prod", "models": change_rows, "blockers": []}
    result = {"event": "result", "ok": True, "applied": True, "plan": plan}
    record = PullRecord("ann/shop", 7, state, "a" * 40)
    known = {"environment_name": "pr_7", "comment_id": 1, "run_lines": run_lines([result], 0)}
    return Shown(change_record(record, **{**known, **changes}), ProdRecord("ann/shop", Prod.READY))


def run_lines(lines: Iterable[Mapping[str, Any]], exit_code: int) -> str:
    """A run that printed those lines, as a record keeps it."""
    read = [read_line(json.dumps(line)) for line in lines]
    assert all(read)
    return pack_outcome(select_lines(line for line in read if line), exit_code)


def is_balanced(text: str) -> bool:
    """True when every fence and every <details> is closed."""
    fence, depth = 0, 0
    for line in text.split("\n"):
        ticks = len(line) - len(line.lstrip("`"))
        if fence:
            fence = 0 if ticks >= fence and not line.strip("`") else fence
        elif ticks >= 3:
            fence = ticks
        else:
            depth += (line == "<details>") - (line == "</details>")
    return fence == depth == 0


@pytest.mark.parametrize("state", list(PullState))
def test_every_state_has_a_comment_and_the_same_checks(state: PullState) -> None:
    """Behaviour 38: checks have stable names in every state."""
    view = show(state, merge_sha="b" * 40)
    text = plan_comment(view)

    assert text is not None
    assert text.startswith("<!-- mergeplan:plan -->\n### ")
    assert [check.name for check in checks(view)] == [
        f"mergeplan / {name}" for name in ("lint", "tests", "plan", "environment", "promotion")
    ]


def test_a_megabyte_of_output_still_makes_a_valid_comment() -> None:
    """Behaviour 34: under the limit, closed, the summary kept, the rest counted."""
    many = [
        {
            "name": f"shop.m{index}",
            "change": "direct",
            "category": "breaking",
            "reason": "x" * 500,
            "diff": "+```\n" * 900,
        }
        for index in range(400)
    ]
    view = show(models=many)
    text = plan_comment(view)

    assert text is not None
    assert len(text) < COMMENT_LIMIT
    assert is_balanced(text)
    assert "400 breaking" in text
    assert "`/plan`" in text
    assert "more diffs: see the files of the pull request." in text
    assert re.search(r"… and 3\d\d more", text)
    assert all(len(check.summary) < 65_535 and len(check.title) <= 140 for check in checks(view))


def test_three_thousand_models_and_blockers_still_make_valid_texts() -> None:
    """Behaviour 34: counts and commands are kept, whole lines are shown, and how many are left out is shown."""
    many = [{"name": f"shop.m{index}", "change": "direct", "reason": "x" * 200} for index in range(3000)]
    blockers = [{"message": f"`{index}` " + "& " * 3_000, "path": "models/a.sql"} for index in range(3000)]
    plan = {"id": "p1", "environment": "pr_7", "models": many, "blockers": blockers}
    view = show(run_lines=run_lines([{"event": "result", "ok": False, "plan": plan}], 4))
    text = plan_comment(view)

    assert text is not None
    assert len(text) < COMMENT_LIMIT
    assert "3,000 undecided" in text
    assert re.search(r"… and 2,\d{3} more", text)
    assert re.search(r"- and 2,\d{3} more", text.split("**What blocks promotion**")[1])
    assert all(len(check.summary) < 65_535 and len(check.title) <= 140 for check in checks(view))


def test_a_comment_and_checks_of_three_thousand_models_parse_their_json_once() -> None:
    """Also when the record was read anew between them, as publishing does."""
    many = [{"name": f"shop.m{index}", "change": "direct", "category": "breaking"} for index in range(3000)]
    view = show(models=many)
    again = replace(view, record=change_record(view.record, run_lines="".join(view.record.run.lines)))
    unpack_outcome.cache_clear()

    assert plan_comment(view) and checks(view) and plan_comment(again) and checks(again)
    assert unpack_outcome.cache_info().misses == 1


def test_a_run_that_an_older_version_kept_counts_as_none() -> None:
    result = {"event": "result", "ok": True, "version": 0}
    assert unpack_outcome(json.dumps({"exit_code": 0, "lines": [json.dumps(result)]})) is None
    assert unpack_outcome(json.dumps({"exit_code": 0, "lines": [result]})) is None
    assert unpack_outcome("") is None


def test_a_diff_with_odd_line_ends_is_shown() -> None:
    """Behaviour 7: a form feed in a model's text is no line of its own."""
    text = plan_comment(show(models=[{"name": "a.b", "change": "direct", "diff": "--- a\n+++ b\n\n+x\f\fy\n-z"}]))

    assert text is not None
    assert "1 added, 1 removed" in text


def test_echoed_text_is_inert() -> None:
    """Behaviour 14: no mention, no HTML, no link, no way out of its cell or fence."""
    evil = "@team <img src=x> [a](http://x) | `code` ```\n</details>"
    text = plan_comment(
        show(models=[{"name": evil, "change": "direct", "category": evil, "reason": evil, "diff": evil}])
    )

    assert text is not None
    table = text[text.index("| Model |") : text.index("<details>")]
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    outside = re.sub(r"<code.*?</code>", "", page, flags=re.DOTALL)
    for live in ("@team", "<img", "<a ", "://"):
        assert live not in outside
    assert table.count("\n") == 4
    assert is_balanced(text)


def test_a_code_span_and_a_fence_outlast_what_they_hold() -> None:
    """Behaviour 14: the longest run of back-ticks, and one more."""
    assert code("a`b``c") == "```a`b``c```"
    assert fence("a\n````\nb").startswith("`````\n")
    assert inert_text("see `a < b` and <b>") == "see `a < b` and &lt;b&gt;"


def test_days_are_told_as_a_person_would() -> None:
    """Half-open intervals: the last day is the one before the end."""
    assert format_days([("2026-01-01", "2026-01-08")]) == "7 days, 2026-01-01 to 2026-01-07"
    assert format_days([("2026-01-01", "2026-01-02"), ("2026-01-05", "2026-01-06")]) == "2 days, 2026-01-01, 2026-01-05"
    assert format_days([("2026-01-01T03:00:00Z", "2026-01-01T04:00:00Z")]).endswith("until 2026-01-01T04:00:00Z")


def test_what_blocks_promotion_stands_in_the_box_below_the_headline() -> None:
    """Behaviours 33, 39: the blocker, its place, and the check annotated there."""
    blocker = {"message": "`total` is removed but still read.", "path": "models/a.sql", "line": 3}
    plan = {
        "id": "p1",
        "environment": "pr_7",
        "base": "prod",
        "models": [{"name": "a.b", "change": "direct"}],
        "blockers": [blocker],
    }
    lines = [{"event": "error", "kind": "Refused", **blocker}, {"event": "result", "ok": False, "plan": plan}]
    view = show(run_lines=run_lines(lines, 4))
    text = plan_comment(view)

    assert text is not None
    box = "> [!WARNING]\n> **Blocked: a merge does not change prod.**\n>\n> - `models/a.sql:3`: `total` is removed"
    assert box in text
    assert text.count("is removed but still read") == 1
    verdicts = {check.name.rpartition(" ")[2]: check.conclusion for check in checks(view)}
    assert (verdicts["plan"], verdicts["promotion"]) == ("failure", "failure")
    assert [(mark.path, mark.line) for check in checks(view) for mark in check.annotations] == [("models/a.sql", 3)]


def test_a_large_graph_is_folded() -> None:
    """Behaviour 41."""
    many = [{"name": f"shop.m{index}", "change": "direct", "category": "breaking"} for index in range(40)]
    text = plan_comment(show(models=many))

    assert text is not None
    assert "<summary>Graph of 40 models</summary>" in text


def test_days_that_are_copied_are_told() -> None:
    later = {
        "name": "shop.later",
        "change": "indirect",
        "category": "indirect_breaking",
        "recomputed": True,
        "kind": "INCREMENTAL_BY_TIME_RANGE",
        "intervals": [["2026-01-01", "2026-01-06"]],
        "copies": [["2026-01-01", "2026-01-04"]],
    }
    text = plan_comment(show(models=[later]))

    assert text is not None
    assert "of these copied (unchanged): 3 days, 2026-01-01 to 2026-01-03<br>" in text


def test_what_the_linter_only_tells_is_folded_in_the_comment_and_a_remark_at_its_line() -> None:
    place = {"path": "models/orders.sql", "line": 4, "column": 8}
    warning = {"event": "lint", "rule": "noselectstar", "message": "no `*`.", "severity": "warning", **place}
    plan = {"id": "p1", "environment": "pr_7", "base": "prod", "models": [{"name": "shop.orders", "change": "direct"}]}
    result = {"event": "result", "ok": True, "applied": True, "plan": plan}
    view = show(run_lines=run_lines([warning, result], 0))

    text, lint = plan_comment(view) or "", checks(view)[0]

    assert "1 warning of the linter" in text
    assert "`models/orders.sql:4`" in text
    assert [(mark.path, mark.line, mark.level) for mark in lint.annotations] == [("models/orders.sql", 4, "warning")]
    assert (lint.title, lint.conclusion) == ("1 warning", "success")


def test_a_broken_rule_fails_the_check_of_the_linter_and_another_error_leaves_it_out() -> None:
    place = {"path": "models/orders.sql", "line": 4}
    broken = {"event": "error", "kind": "RuleBroken", "message": "noselectstar: no `*`.", **place}
    wrong = {"event": "error", "kind": "ProjectError", "message": "There is no `x`.", **place}

    def check_texts(*errors: dict[str, Any]) -> list[tuple[str, str, str, int]]:
        view = show(PullState.FAILED, run_lines=run_lines([*errors, {"event": "result", "ok": False}], 1))
        by_name = {check.name.split()[-1]: check for check in checks(view)}
        of_both = ((name, by_name[name]) for name in ("lint", "plan"))
        return [(name, check.conclusion, check.title, len(check.annotations)) for name, check in of_both]

    title = "The project breaks rules of its linter"
    assert check_texts(broken) == [("lint", "failure", "1 error", 1), ("plan", "failure", title, 0)]
    assert check_texts(wrong)[0] == ("lint", "cancelled", "Not run", 0)
    assert check_texts(broken, wrong)[1] == ("plan", "failure", "The project does not load", 1)


def test_a_project_that_does_not_load_says_so_once_with_every_error() -> None:
    """In the comment's headline; of the checks in the plan's, to which the others lead."""
    wrong = {"event": "error", "kind": "ProjectError", "path": "models/a.sql"}
    errors = [{**wrong, "message": "No `x`.", "line": 2}, {**wrong, "message": "No `y`.", "line": 3}]
    view = show(PullState.FAILED, run_lines=run_lines([*errors, {"event": "result", "ok": False}], 1))

    text, shown_checks = plan_comment(view) or "", checks(view)

    assert text.count("does not load") == 1
    assert ("- `models/a.sql:2`: No `x`.\n- `models/a.sql:3`: No `y`." in text) is True
    assert [check.name for check in shown_checks if "does not load" in check.title + check.summary] == [
        "mergeplan / plan"
    ]


def test_what_an_audit_found_is_shown_with_its_query_and_its_masked_rows() -> None:
    sample = {"columns": ["id", "na|me"], "rows": [["#", "a*** (7)"], [None, "<b>"]]}
    audit = {"model": "", "reads": ["shop.a", "shop.b"], "name": "few", "ok": False, "blocking": False, "count": 2}
    failed = {**audit, "query": "SELECT 1 -- ```", "sample": sample, "path": "audits/few.sql", "line": 1}
    text = plan_comment(show(run_lines=run_lines([{"event": "result", "ok": True, "audits": [failed]}], 0)))

    assert text is not None
    assert "- `shop.a, shop.b`: audit `few` found 2 rows (a warning: it does not block)" in text
    assert "<summary>What <code>few</code> of <code>shop.a, shop.b</code> found</summary>" in text
    assert "| `id` | `na\\|me` |\n| --- | --- |\n| `#` | `a*** (7)` |\n| `NULL` | `<b>` |" in text
    assert is_balanced(text)


def audit_comment(*problems: dict[str, Any]) -> str:
    """The comment of a plan whose audit `nulls` of shop.orders found rows, beside other problems."""
    audit = {"event": "audit", "model": "shop.orders", "name": "nulls", "ok": False, "blocking": True, "count": 3}
    lines = [audit, *({"event": "error", **problem} for problem in problems), {"event": "result", "ok": False}]
    return plan_comment(show(PullState.FAILED, run_lines=run_lines(lines, 4))) or ""


def test_a_failed_audit_keeps_its_line_whatever_other_problems_say() -> None:
    """No decision looks for words in sentences: the name of an audit may be part of any message."""
    other = {"message": "The table `shop.nulls_by_day` cannot be read.", "kind": "QueryError"}
    line = "audit `nulls` found 3 rows"

    assert line in audit_comment(other)
    assert line in audit_comment(
        {"message": "It found rows.", "kind": "AuditFailed", "audit": "nulls", "model": "shop.b"}
    )


def test_a_failed_audit_is_named_in_the_headline_with_its_rows() -> None:
    """Several are counted."""
    other = {"event": "audit", "model": "shop.orders", "name": "few", "ok": False, "blocking": True, "count": 1}
    audit = {**other, "name": "nulls", "count": 3}

    def title(*audits: dict[str, Any]) -> str:
        lines = run_lines([*audits, {"event": "result", "ok": False}], 4)
        return (plan_comment(show(PullState.FAILED, run_lines=lines)) or "").splitlines()[1]

    assert title(audit) == "### ❌ The audit `nulls` of `shop.orders` found 3 rows"
    assert title(audit, other) == "### ❌ 2 blocking audits found rows"
    assert title(audit, {**other, "blocking": False}) == "### ❌ The audit `nulls` of `shop.orders` found 3 rows"


def test_a_line_has_one_remark_for_a_failed_audit() -> None:
    place = {"path": "models/orders.sql", "line": 3}
    audit = {"event": "audit", "model": "shop.orders", "name": "nulls", "ok": False, "blocking": True, "count": 3}
    error = {"event": "error", "message": "3 rows.", "kind": "AuditFailed", "audit": "nulls", "model": "shop.orders"}
    plan = {"id": "p1", "environment": "pr_7", "base": "prod", "models": [{"name": "shop.orders", "change": "direct"}]}
    lines = [{**audit, **place}, {**error, **place}, {"event": "result", "ok": False, "plan": plan}]
    view = show(PullState.FAILED, run_lines=run_lines(lines, 4))

    check = next(check for check in checks(view) if check.name == "mergeplan / environment")

    assert [(mark.line, mark.message) for mark in check.annotations] == [(3, "3 rows.")]


def test_a_missing_table_is_named_by_the_plan_and_not_again_by_the_linter() -> None:
    at = {"path": "models/orders.sql", "line": 4}
    lint = {"event": "lint", "severity": "warning", "rule": "misspelledtable", **at}
    warnings = [{**lint, "message": "`shop.item` is no model."}, {**lint, "message": "`shop.othr` is no model."}]
    remark = {"message": "Spark's catalog has no table `shop.item`, which `shop.orders` reads.", **at}
    model = {"name": "shop.orders", "change": "direct"}
    plan = {"id": "p1", "environment": "pr_7", "base": "prod", "models": [model], "warnings": [remark]}
    text = plan_comment(show(run_lines=run_lines([*warnings, {"event": "result", "ok": True, "plan": plan}], 0))) or ""

    assert text.count("shop.item`") == 1
    assert "1 warning of the linter" in text


def test_an_environment_whose_tables_were_built_before_is_built() -> None:
    """Nothing was applied by this run, as there is nothing to compute: the merge computes nothing, too."""
    days = [["2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"]]

    def title(intervals: list[list[str]]) -> str:
        model = {"name": "shop.orders", "change": "direct", "category": "breaking", "intervals": intervals}
        plan = {"id": "p1", "environment": "pr_7", "base": "prod", "models": [model]}
        lines = run_lines([{"event": "result", "ok": True, "applied": False, "plan": plan}], 0)
        return next(check.title for check in checks(show(run_lines=lines)) if check.name == "mergeplan / environment")

    assert title([]) == "pr_7 is built. Computed: nothing."
    assert title(days) == "pr_7 is planned; its rows are computed at the merge."


def test_the_check_of_a_blocked_plan_says_what_a_merge_would_take() -> None:
    gone = {"name": "shop.orders", "change": "removed", "category": "breaking", "kind": "FULL"}
    plan = {"id": "p1", "environment": "pr_7", "base": "prod", "models": [gone]}
    blocked = {**plan, "blockers": [{"message": "`shop.b` still reads `shop.orders`."}]}
    lines = run_lines([{"event": "result", "ok": False, "plan": blocked}], 4)

    check = next(check for check in checks(show(run_lines=lines)) if check.name == "mergeplan / plan")

    assert check.title == "shop.b still reads shop.orders."
    assert check.summary.startswith("**A merge would take something away from prod:**")


def test_a_failed_plan_says_that_prod_was_never_built() -> None:
    """Every model counts as new then, and a reader wonders why."""
    wrong = {"event": "error", "kind": "QueryError", "message": "No `x`.", "path": "models/a.sql", "line": 2}
    lines = run_lines([wrong, {"event": "result", "ok": False}], 1)
    view = show(PullState.FAILED, run_lines=lines)
    unbuilt = replace(view, prod=ProdRecord("ann/shop", Prod.FAILED, run_lines=lines))

    assert "every model is planned as new" in (plan_comment(unbuilt) or "")


def test_a_failed_audit_is_told_once() -> None:
    """Its error tells it already, at the line where the model asks for it."""
    problem = {"message": "Rows were found.", "kind": "AuditFailed", "audit": "nulls", "model": "shop.orders"}

    assert "audit `nulls` found" not in audit_comment(problem)
    assert "Rows were found." in audit_comment(problem)


@pytest.mark.parametrize("reason", ["It reads `shop.rows`.", "The order of `arrow` is another one."])
def test_every_row_is_told_whatever_the_reason_says(reason: str) -> None:
    change = {"name": "shop.orders", "change": "direct", "category": "breaking", "kind": "FULL", "reason": reason}
    text = plan_comment(show(models=[{**change, "rule": "reads-every-column", "columns": {"every": True}}])) or ""
    by_rule = plan_comment(show(models=[{**change, "rule": "rows-changed", "columns": {"every": True}}])) or ""

    assert "Any row may change." in text
    assert "Any row may change." not in by_rule


def test_columns_are_told_whatever_the_reason_says() -> None:
    """A column `a` is part of nearly every sentence."""
    change = {"name": "shop.orders", "change": "direct", "category": "breaking", "kind": "FULL", "rule": "categorized"}
    text = plan_comment(show(models=[{**change, "reason": "ann said so.", "columns": {"altered": ["a"]}}])) or ""

    assert "ann said so. Alters `a`. <sub>" in text


@pytest.mark.parametrize("state", list(PullState))
def test_no_check_repeats_its_title_as_its_text(state: PullState) -> None:
    view = show(state, merge_sha="b" * 40, reason="Something moved.", progress="Tables are computed.")

    said = [(check.title.strip("."), check.summary.replace("`", "").strip(".\n")) for check in checks(view)]
    assert [title for title, text in said if title == text] == []


def test_the_headline_is_a_verdict_and_the_categories_are_explained() -> None:
    text = plan_comment(show()) or ""

    assert text.splitlines()[1] == "### ✅ Ready to merge · replaces 1 table of prod"
    assert "\n\n1 breaking · Computed here: nothing\n" in text
    assert "<summary>What the categories mean</summary>" in text


def test_a_category_that_has_ended_stands_below_the_verdict_while_something_can_be_done() -> None:
    ended = {"model": "shop.orders", "category": "non_breaking", "who": "wim", "at": None, "ended_by": "edit"}
    edited = {"name": "shop.orders", "change": "direct", "category": "breaking", "kind": "FULL"}
    plan = {"id": "p1", "environment": "pr_7", "base": "prod", "models": [edited], "unused_overrides": [ended]}
    run = run_lines([{"event": "result", "ok": True, "applied": True, "plan": plan}], 0)
    text = plan_comment(show(run_lines=run)) or ""

    assert text.index("**Ready.**") < text.index("> `wim` set `shop.orders` to Non-breaking") < text.index("1 breaking")
    assert "`wim` set" not in (plan_comment(show(PullState.PROMOTED, run_lines=run, merge_sha="b" * 40)) or "")


def test_a_built_plan_counts_what_it_took_and_not_what_was_estimated() -> None:
    estimate = {"seconds": 60.0, "basis": ["batches"]}
    edited = {"name": "shop.orders", "change": "direct", "category": "breaking", "kind": "FULL",
              "intervals": [["2026-01-01", "2026-01-02"]], "estimate": estimate}  # fmt: skip
    plan = {"id": "p1", "environment": "pr_7", "base": "prod", "models": [edited]}
    result = {"event": "result", "ok": True, "applied": True, "plan": plan,
              "backfill": {"batches": 1, "rows": 7, "seconds": 3.0}}  # fmt: skip
    built = plan_comment(show(run_lines=run_lines([result], 0))) or ""
    waiting = plan_comment(show(run_lines=run_lines([{**result, "applied": False, "backfill": None}], 0))) or ""

    assert (
        "Computed here: 1 table · took 3 s\n" in built and "Estimated: about 60 s (earlier batches). It took" in built
    )
    assert "To compute: 1 table · about 60 s (earlier batches)\n" in waiting


def test_tables_that_were_made_from_rows_of_before_are_named_with_the_command_for_them() -> None:
    """The newest change of each; nothing is said of a plan that is not there."""
    view = show()
    record = note_moved_sources(view.record, ["core.orders"], "2026-01-02T03:04:05+00:00")
    record = note_moved_sources(record, ["core.orders"], "2026-01-03T03:04:05+00:00")
    text = plan_comment(replace(view, record=record)) or ""

    assert "> `core.orders` changed in another project at 2026-01-03 03:04 UTC." in text
    assert "`/restate core.orders` computes them again." in text
    assert "2026-01-02" not in text
    assert "core.orders" not in (plan_comment(replace(view, record=replace(record, state=PullState.FAILED))) or "")
