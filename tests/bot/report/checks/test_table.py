"""The table of checks: a name is on record in branch protection, so none changes."""

from __future__ import annotations

from mergeplan.bot.policy.approvals import Decision
from mergeplan.bot.records import PullState
from mergeplan.bot.report.checks.keys import check_key, pull_of_key
from mergeplan.bot.report.checks.table import CHECKS, checks, page_of, writing_turn
from tests.bot.report.test_comment import run_lines, show


def test_the_check_of_approvals_stands_where_the_project_has_rules() -> None:
    ruled = show(decision=Decision(ruled=True))

    assert {check.name for check in checks(ruled)} - {check.name for check in checks(show())} == {
        "mergeplan / approval"
    }


def test_what_a_reader_waits_for_most_is_written_first() -> None:
    order = sorted((check.name for check in CHECKS), key=writing_turn)

    assert [name.removeprefix("mergeplan / ") for name in order] == [
        "environment", "approval", "promotion", "plan", "tests", "lint",
    ]  # fmt: skip


def test_every_check_has_a_key_of_its_own() -> None:
    keys = {check_key("ann/shop", 7, check.name) for check in CHECKS}

    assert len(keys) == len(CHECKS)
    assert {pull_of_key(key) for key in keys} == {(7, "")}


def test_the_check_of_the_environment_shows_how_far_the_run_has_come() -> None:
    view = show(PullState.PLANNING, progress="Computing `shop.orders`.")
    titles = {check.name: check.title for check in checks(view)}
    environment = titles.pop("mergeplan / environment")

    assert environment == "Computing `shop.orders`."
    assert set(titles.values()) == {"Being planned and built."}


def test_a_check_that_is_not_in_the_table_any_more_leads_to_the_plan() -> None:
    """Older heads may have one."""
    assert page_of("mergeplan / gone") == "plan"
    assert page_of("mergeplan / environment") == "progress"


def test_the_plan_check_says_computed_once_it_is() -> None:
    edited = {"name": "shop.orders", "change": "direct", "category": "breaking", "kind": "FULL",
              "intervals": [["2026-01-01", "2026-01-02"]]}  # fmt: skip
    plan = {"id": "p1", "environment": "pr_7", "base": "prod", "models": [edited]}
    waiting = run_lines([{"event": "result", "ok": True, "applied": False, "plan": plan}], 0)
    built, unbuilt = ({check.name: check for check in checks(view)}["mergeplan / plan"]
                      for view in (show(models=[edited]), show(run_lines=waiting)))  # fmt: skip

    assert (built.title, unbuilt.title) == ("1 breaking; computed: 1 table", "1 breaking; to compute: 1 table")
    assert "| Model | Computed |" in built.summary and "| Model | To compute |" in unbuilt.summary


def test_a_view_that_is_replaced_is_no_table() -> None:
    models = [{"name": name, "change": "direct", "category": "breaking", "kind": kind}
              for name, kind in (("shop.orders", "FULL"), ("shop.latest", "VIEW"))]  # fmt: skip
    promotion = {check.name: check for check in checks(show(models=models))}["mergeplan / promotion"]

    assert promotion.title == "Ready: replaces 1 table and 1 view of prod"
    assert "- `shop.latest` gets another view" in promotion.summary
