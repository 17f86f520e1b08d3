"""Applying: what was shown and nothing else; what fails is told, stops its own branch, and never reaches prod."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import TODAY, CommandLine, Ran
from tests.planner.shop import ALONE, rows, write_shop

Shop = Callable[..., CommandLine]
AT = ("--execution-time", TODAY)
JSON = ("--output", "json")
ONE = "MODEL (name shop.total, kind FULL);\nSELECT 1 AS a"
TWO = "MODEL (name shop.total, kind FULL);\nSELECT 2 AS a"
APART = "MODEL (name shop.apart, kind FULL);\nSELECT 7 AS seven"
READER = "MODEL (name shop.reader, kind FULL);\nSELECT a FROM shop.total"
AUDITED = "MODEL (name shop.total, kind FULL, audits (not_null(columns := (a))));\nSELECT * FROM VALUES {} AS t(a, b)"
SMALL = {**ALONE, "total": ONE}


def show_plan(mergeplan: CommandLine, *arguments: str) -> str:
    """The id of a plan that was only shown."""
    return str(mergeplan("plan", *arguments, "--no-prompts", *JSON, *AT).result["plan"]["id"])


def promote(mergeplan: CommandLine, *arguments: str) -> Ran:
    ran = mergeplan("plan", *arguments, "--auto-apply", *JSON, *AT)
    assert ran.code == 0, ran.out
    return ran


def kinds(ran: Ran) -> list[str]:
    return [line["kind"] for line in ran.lines if line["event"] == "error"]


def test_a_plan_that_was_shown_is_applied_by_its_id(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)
    said = mergeplan("plan", "dev", "--no-prompts", *AT).out.splitlines()[-1]
    assert said.startswith("Apply it with: mergeplan apply ")

    ran = mergeplan("apply", said.split()[-1])

    assert (ran.code, ran.err) == (0, "")
    assert "✔ Virtual layer updated" in ran.out
    assert rows(engine, "SELECT a FROM shop__dev.total") == [(1,)]
    assert mergeplan.state.environments.get("dev").plan_id == said.split()[-1]


def test_after_an_edit_it_is_refused_and_the_edit_named(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)
    plan = show_plan(mergeplan, "dev")
    mergeplan.write("models/total.sql", TWO)

    ran = mergeplan("apply", plan)

    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith(f"Error: Plan {plan} no longer holds: the project's files changed. Plan again: ")
    assert mergeplan.state.environments.history() == ()
    assert not engine.catalog.objects("mergeplan__shop")


def test_after_prod_moved_it_is_refused_and_prod_named(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    promote(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    plan = show_plan(mergeplan, "dev")
    promote(mergeplan)

    ran = mergeplan("apply", plan, *JSON)

    assert ran.code == 4
    assert kinds(ran) == ["PlanMoved"]
    assert "the models of `prod` that it replaces" in ran.lines[-2]["message"]
    assert not mergeplan.state.environments.get("dev").exists


def test_a_plan_is_applied_once(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    plan = show_plan(mergeplan)
    assert mergeplan("apply", plan).code == 0

    ran = mergeplan("apply", plan)

    assert ran.code == 4
    assert mergeplan.state.environments.get("prod").revision == 1


@pytest.mark.parametrize("plan", ["../x", "/etc/passwd", "..", "a/b"])
def test_a_path_is_no_plan_and_nothing_is_looked_up_or_written_there(offline: CommandLine, plan: str) -> None:
    home = offline.root / "shop"
    write_shop(home, **SMALL)
    (offline.root / "x").write_text("{}")
    mergeplan = CommandLine(home)

    ran = mergeplan("apply", plan)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"Error: There is no plan `{plan}`. Make one with `mergeplan plan`.\n"
    assert {path.name for path in offline.root.iterdir()} == {"shop", "x"}


@pytest.mark.parametrize("options", [{"environment": "dev", "words_from": None}, {"environment": "dev", "select": 7}])
def test_a_plan_that_another_version_saved_is_planned_again(offline: CommandLine, options: dict[str, object]) -> None:
    write_shop(offline.root, **SMALL)
    offline.state.plans.save("abcdef123456", "dev", options=options)

    ran = offline("apply", "abcdef123456")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Error: Plan abcdef123456 was saved by another version of mergeplan. Plan again.\n"


def test_what_sparks_parser_refuses_of_a_shown_plan_ends_its_apply_before_anything_is_done(
    shop: Shop, engine: SparkEngine
) -> None:
    mergeplan = shop(**ALONE, total="MODEL (name shop.total, kind FULL);\nSELECT\n  CAST(1 AS TEXT) AS a")
    plan = show_plan(mergeplan, "dev")

    ran = mergeplan("apply", plan, *JSON)

    (error,) = (line for line in ran.lines if line["event"] == "error")
    assert (ran.code, error["kind"], error["path"], error["line"]) == (1, "ProjectError", "models/total.sql", 3)
    assert "shop.total" in error["message"] and "TEXT" in error["message"]
    assert not engine.catalog.objects("mergeplan__shop")
    assert not mergeplan.state.environments.get("dev").exists


def test_a_blocking_audit_stops_the_promotion_and_shows_the_rows(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)
    promote(mergeplan)
    mergeplan.write("models/total.sql", AUDITED.format("(1, 10), (NULL, 20), (NULL, 30)"))

    ran = mergeplan("plan", "--auto-apply", *AT)

    assert ran.code == 4
    assert "✘ audit not_null of shop.total: 2 failing rows" in ran.out
    assert "a IS NULL" in ran.out
    assert "│ NULL │ ## │" in ran.out
    assert ran.err == "Error: models/total.sql:1: The audit `not_null` of `shop.total` found 2 rows.\n"
    assert rows(engine, "SELECT a FROM shop.total") == [(1,)]
    assert mergeplan.state.environments.get("prod").revision == 1


@pytest.mark.prove
def test_after_mending_what_an_audit_found_the_next_plan_goes_through(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**{**SMALL, "total": AUDITED.format("(1, 10), (NULL, 20)")})
    failed = mergeplan("plan", "--auto-apply", *JSON, *AT)
    mergeplan.write("models/total.sql", AUDITED.format("(1, 10), (2, 20)"))

    promote(mergeplan)

    audit = next(line for line in failed.lines if line["event"] == "audit")
    assert (failed.code, kinds(failed)) == (4, ["AuditFailed"])
    assert (audit["count"], audit["path"], audit["line"]) == (1, "models/total.sql", 1)
    assert audit["sample"] == {"columns": ["a", "b"], "rows": [[None, "##"]]}
    assert rows(engine, "SELECT a FROM shop.total ORDER BY a") == [(1,), (2,)]


def test_a_query_that_fails_names_its_file_and_the_other_branches_finish(shop: Shop, engine: SparkEngine) -> None:
    divided = "MODEL (name shop.total, kind FULL);\nSELECT 1 / (id - 1) AS a FROM range(3)"
    mergeplan = shop(**{**SMALL, "total": divided, "reader": READER, "apart": APART})

    ran = mergeplan("plan", "--auto-apply", *AT)

    assert ran.code == 1
    assert ran.err.startswith("Error: models/total.sql:1: Division by zero.")
    assert ran.err.count("\n") == 1
    assert "shop.apart" in ran.out
    assert "- shop.reader: not computed, because `shop.total` failed" in ran.out
    assert "✔ Model batches executed" not in ran.out
    assert "\nSKIP: `prod` stays as it was, because shop.total failed\n" in ran.out
    assert not mergeplan.state.environments.get("prod").exists
    assert not engine.catalog.objects("shop")


def test_after_mending_a_query_only_what_is_missing_is_computed(shop: Shop) -> None:
    cast = "MODEL (name shop.total, kind FULL);\nSELECT cast(text AS INT) AS a FROM VALUES ('{}') AS t(text)"
    mergeplan = shop(**{**SMALL, "total": cast.format("x1"), "apart": APART})
    failed = mergeplan("plan", "--auto-apply", *JSON, *AT)
    mergeplan.write("models/total.sql", cast.format("1"))

    ran = promote(mergeplan)

    error = next(line for line in failed.lines if line["event"] == "error")
    assert (failed.code, error["path"], error["line"], error["kind"]) == (1, "models/total.sql", 1, "QueryError")
    assert "x1" in error["message"]
    assert failed.result["ok"] is failed.result["applied"] is False
    assert [line["model"] for line in ran.lines if line["event"] == "batch"] == ["shop.total"]


def test_run_computes_the_days_since_and_leaves_views_alone(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(total="", shown="", apart="")
    mergeplan("plan", "--auto-apply", "--execution-time", "2026-01-03 05:00:00")
    before = rows(engine, "SELECT id FROM shop.daily ORDER BY id")

    ran = mergeplan("run", "--execution-time", "2026-01-06 05:00:00", *JSON)
    again = mergeplan("run", "--execution-time", "2026-01-06 05:00:00")

    assert before == [(1,), (2,)]
    assert [line["interval"] for line in ran.lines if line["event"] == "batch"] == [
        ["2026-01-03", "2026-01-04"], ["2026-01-04", "2026-01-05"], ["2026-01-05", "2026-01-06"],
    ]  # fmt: skip
    assert rows(engine, "SELECT id FROM shop.daily ORDER BY id") == [(1,), (2,), (3,)]
    assert (ran.result["backfill"]["rows"], ran.result["backfill"]["batches"]) == (1, 3)
    assert mergeplan.state.environments.get("prod").revision == 1
    assert (again.code, again.out) == (0, "Nothing is due in `prod`.\n")


@pytest.mark.prove
def test_a_plan_for_another_moment_is_applied_as_of_that_moment(shop: Shop) -> None:
    mergeplan = shop(total="", shown="", apart="")

    ran = mergeplan("apply", show_plan(mergeplan, "dev"), *JSON)

    assert ran.code == 0
    daily = next(model for model in ran.result["plan"]["models"] if model["name"] == "shop.daily")
    assert daily["needed"] == [["2026-01-01", "2026-01-06"]]
