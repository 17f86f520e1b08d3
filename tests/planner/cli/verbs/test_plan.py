"""`plan` asks, shows and decides; nothing is done without a yes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import TODAY, CommandLine, Ran
from tests.planner.shop import ALONE, rows

Shop = Callable[..., CommandLine]
AT = ("--execution-time", TODAY)
ONE = "MODEL (name shop.total, kind FULL);\nSELECT 1 AS a, 2 AS b"
TWO = "MODEL (name shop.total, kind FULL);\nSELECT 1 AS a, 3 AS b"
THREE = "MODEL (name shop.total, kind FULL);\nSELECT 1 AS a, 2 AS b, 3 AS c"
READER = "MODEL (name shop.reader, kind FULL);\nSELECT a + b AS sum FROM shop.total"
OTHER = "MODEL (name shop.other, kind FULL);\nSELECT a FROM shop.total"
SMALL = {**ALONE, "total": ONE}


def promote(mergeplan: CommandLine, *arguments: str) -> Ran:
    """A plan that was applied."""
    ran = mergeplan("plan", *arguments, "--auto-apply", "--output", "json", *AT)
    assert ran.code == 0, ran.out
    return ran


def categories(ran: Ran) -> dict[str, str]:
    return {model["name"]: model["category"] for model in ran.result["plan"]["models"]}


@pytest.mark.parametrize("answer", ["n\n", "N\n", "", "perhaps\nn\n"], ids=["n", "N", "end of input", "perhaps, n"])
def test_without_a_yes_nothing_is_done(answer: str, shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)

    ran = mergeplan("plan", *AT, answer=answer)

    assert ran.code == 0
    assert ran.out.endswith("Nothing was applied.\n")
    assert mergeplan.state.environments.history() == ()
    assert not engine.catalog.objects("mergeplan__shop")


def test_with_json_there_are_only_json_lines_and_the_last_is_the_result(shop: Shop) -> None:
    ran = promote(shop(**SMALL, reader=READER))

    assert ran.err == ""
    assert [line["event"] for line in ran.lines] == [
        "plan", "stage", "table", "table", "stage", "batch", "batch", "stage", "view", "view", "result",
    ]  # fmt: skip
    result = ran.result
    assert (result["ok"], result["applied"]) == (True, True)
    assert result["promotion"]["views"] == {"added": 2, "swapped": 0, "dropped": 0, "unchanged": 0}
    assert result["promotion"]["spark_jobs"] == 0
    reader = result["plan"]["models"][0]
    assert {name: reader[name] for name in ("name", "change", "rule", "recomputed", "intervals", "preview")} == {
        "name": "shop.total",
        "change": "added",
        "rule": "added",
        "recomputed": True,
        "intervals": [["1970-01-01", "2026-01-06"]],
        "preview": False,
    }
    assert result["plan"]["views"] == {"added": ["shop.reader", "shop.total"], "swapped": [], "dropped": []}
    assert result["plan"]["blockers"] == []


def test_a_program_gets_the_plan_before_spark_has_checked_it(shop: Shop) -> None:
    mergeplan = shop(**SMALL, reader=READER)
    promote(mergeplan)
    mergeplan.write("models/total.sql", THREE)

    ran = mergeplan("plan", "dev", "--no-prompts", "--refresh", "--output", "json", *AT)

    shown = [line["plan"] for line in ran.lines if line["event"] == "plan"]
    first, last = ({model["name"]: model["checked"] for model in plan["models"]} for plan in shown)
    assert first["shop.reader"] == {"state": "unchecked", "detail": "the comparison is running"}
    assert last["shop.reader"]["state"] == "agrees"
    assert shown[0]["id"] == shown[1]["id"] == ran.result["plan"]["id"]


def test_explain_tells_what_would_be_done_and_does_none_of_it(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)

    as_text, as_json = mergeplan("plan", "--explain", *AT), mergeplan("plan", "--explain", "-o", "json", *AT)

    assert "Explained plan\n" in as_text.out
    assert (as_json.result["ok"], as_json.result["applied"]) == (True, False)
    assert mergeplan.state.environments.history() == ()
    assert not engine.catalog.objects("mergeplan__shop")


def test_a_reader_of_the_altered_column_is_recomputed_and_another_is_not(shop: Shop) -> None:
    mergeplan = shop(**SMALL, reader=READER, other=OTHER)
    promote(mergeplan)
    mergeplan.write("models/total.sql", TWO)

    ran = promote(mergeplan, "dev")

    assert categories(ran) == {
        "shop.total": "breaking",
        "shop.reader": "indirect_breaking",
        "shop.other": "indirect_non_breaking",
    }
    assert [line["model"] for line in ran.lines if line["event"] == "batch"] == ["shop.total", "shop.reader"]


def test_a_word_overrules_the_rule_and_is_kept_for_the_next_plan(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL, reader=READER)
    promote(mergeplan)
    mergeplan.write("models/total.sql", TWO)

    said = promote(mergeplan, "dev", "--categorize", "Shop.Total=Non-Breaking", "--who", "ann")
    again = mergeplan("plan", "--overrides-from", "dev", "-o", "json", "--no-prompts", *AT)

    assert categories(said) == {"shop.total": "non_breaking", "shop.reader": "indirect_non_breaking"}
    assert categories(again) == categories(said)
    assert again.result["plan"]["virtual"]
    assert rows(engine, "SELECT b FROM shop__dev.total") == [(3,)]
    assert rows(engine, "SELECT sum FROM shop__dev.reader") == [(3,)]


def test_a_word_outlives_its_environment_and_is_taken_with_those_of_others(shop: Shop) -> None:
    """A pull request may be closed and reopened, or merged after one that did not reach prod."""
    mergeplan = shop(**SMALL, reader=READER)
    promote(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    first = categories(promote(mergeplan, "dev", "--categorize", "shop.total=non-breaking"))
    assert mergeplan("invalidate", "dev").code == 0

    again = promote(mergeplan, "dev")
    merged = mergeplan("plan", "--overrides-from", "other,dev", "-o", "json", "--no-prompts", *AT)

    assert categories(again) == categories(merged) == first
    assert first["shop.total"] == "non_breaking"


@pytest.mark.prove
def test_a_word_that_is_taken_back_leaves_the_rule_to_decide_here_and_at_the_merge(shop: Shop) -> None:
    mergeplan = shop(**SMALL, reader=READER)
    promote(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    ruled = categories(mergeplan("plan", "dev", "-o", "json", "--no-prompts", *AT))
    promote(mergeplan, "dev", "--categorize", "shop.total=non-breaking")

    back = promote(mergeplan, "dev", "--categorize", "shop.total=reset")
    merged = mergeplan("plan", "--overrides-from", "dev", "-o", "json", "--no-prompts", *AT)

    assert categories(back) == categories(merged) == ruled != {"shop.total": "non_breaking"}


@pytest.mark.prove
def test_a_category_is_kept_also_where_it_moves_no_table(shop: Shop) -> None:
    """A model that nothing reads: its table stands already, and the plan that changes its category is empty."""
    mergeplan = shop(**SMALL)
    promote(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    promote(mergeplan, "dev")

    promote(mergeplan, "dev", "--categorize", "shop.total=non-breaking", "--who", "ann")
    kept = promote(mergeplan, "dev")
    promote(mergeplan, "dev", "--categorize", "shop.total=reset")

    assert [row["who"] for row in kept.result["plan"]["overrides"]] == ["ann"]
    assert promote(mergeplan, "dev").result["plan"]["overrides"] == []


def test_a_category_for_a_model_that_is_not_changed_names_those_that_are(shop: Shop) -> None:
    mergeplan = shop(**SMALL, reader=READER)
    promote(mergeplan)
    mergeplan.write("models/total.sql", TWO)

    ran = mergeplan("plan", "dev", "--categorize", "shop.totl=breaking", *AT)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "Error: `shop.totl` is not directly changed here. Models that can be categorized: `shop.total`.\n"
    )


def test_what_a_run_that_was_cut_off_has_promoted_is_told_to_who_plans_under_its_note(shop: Shop) -> None:
    """Its views are counted from the history, and another note asks about another promotion."""
    mergeplan = shop(**SMALL, reader=READER)
    again = ("plan", "--auto-apply", "--output", "json", *AT, "--note")
    first = mergeplan(*again, "#7").result
    second, other = mergeplan(*again, "#7").result, mergeplan(*again, "#8").result

    assert second["promoted_before"] == {"views": first["promotion"]["views"], "revision": 1}
    assert (second["ok"], second["applied"], "promotion" in second) == (True, False, False)
    assert "promoted_before" not in other and "promoted_before" not in first


def test_an_environment_without_differences_says_so(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    promote(mergeplan)

    ran = mergeplan("plan", "dev", "--no-prompts", *AT)

    assert ran.out.startswith(
        "New environment `dev` will be created from `prod`\n\n\nNo differences from the `prod` environment.\n"
    )


def test_start_and_end_bound_what_is_computed(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(total="", shown="", apart="")

    ran = promote(mergeplan, "dev", "--start", "2026-01-02", "--end", "2026-01-03")

    batches = [line["interval"] for line in ran.lines if line.get("model") == "shop.daily" and line["event"] == "batch"]
    assert batches == [["2026-01-02", "2026-01-03"], ["2026-01-03", "2026-01-04"]]
    assert rows(engine, "SELECT id FROM shop__dev.daily") == [(2,)]


def test_skip_backfill_leaves_new_tables_empty_and_promotes(shop: Shop, engine: SparkEngine) -> None:
    ran = promote(shop(**SMALL), "--skip-backfill")

    assert ran.result["applied"]
    assert not [line for line in ran.lines if line["event"] == "batch"]
    assert rows(engine, "SELECT * FROM shop.total") == []


def test_empty_backfill_leaves_new_tables_empty_and_nothing_is_due_afterwards(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)

    ran = promote(mergeplan, "--empty-backfill")

    assert ran.result["plan"]["models"][0]["recorded"] == [["1970-01-01", "2026-01-06"]]
    assert not [line for line in ran.lines if line["event"] == "batch"]
    assert rows(engine, "SELECT * FROM shop.total") == []
    assert mergeplan("run", *AT).out == "Nothing is due in `prod`.\n"
    assert mergeplan("plan", *AT).out.startswith("No changes to plan")


def test_only_the_selected_change_is_planned(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL, reader=READER)
    promote(mergeplan)
    mergeplan.write("models/total.sql", THREE)
    mergeplan.write("models/other.sql", OTHER)

    ran = promote(mergeplan, "dev", "--select-model", "shop.other", "--include-unmodified")

    assert categories(ran) == {"shop.other": None}
    assert rows(engine, "SELECT * FROM shop__dev.total") == [(1, 2)]


def test_a_failing_unit_test_stops_the_plan(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)
    mergeplan.write("tests/t.yaml", "test_total:\n  model: shop.total\n  outputs:\n    query: [{a: 1, b: 5}]\n")

    ran = mergeplan("plan", "--auto-apply", *AT)
    as_json = mergeplan("plan", "--auto-apply", "--output", "json", *AT)

    assert ran.code == as_json.code == 1
    assert "1 of 1 test failed." in ran.out
    assert "FAIL: test_total (tests/t.yaml:1)" in ran.out
    failed = "Error: tests/t.yaml:1: Unit tests failed: `test_total`. Nothing was planned.\n"
    assert ran.err == f"Running 1 unit test...\n{failed}"
    assert [line["ok"] for line in as_json.lines if line["event"] == "test"] == [False]
    assert mergeplan.state.environments.history() == ()
    assert not engine.catalog.objects("mergeplan__shop")


def test_a_removed_column_that_is_still_read_blocks_the_plan(shop: Shop) -> None:
    mergeplan = shop(**SMALL, reader=READER)
    promote(mergeplan)
    mergeplan.write("models/total.sql", "MODEL (name shop.total, kind FULL);\nSELECT 1 AS a")

    as_text = mergeplan("plan", "--auto-apply", *AT)
    as_json = mergeplan("plan", "--auto-apply", "--output", "json", *AT)

    assert as_text.code == as_json.code == 4
    assert "Blocked: models/reader.sql:2 `shop.reader` reads `b`, which this change removes from" in as_text.out
    assert as_json.result["plan"]["blockers"][0]["line"] == 2
    assert [line["kind"] for line in as_json.lines if line["event"] == "error"] == ["Refused"]


def test_a_model_that_reads_a_table_nobody_defined_knows_its_columns(shop: Shop, engine: SparkEngine) -> None:
    engine.fetch("CREATE TABLE default.raw USING parquet AS SELECT 7 AS id, 'x' AS name")
    mergeplan = shop(**{**ALONE, "total": "MODEL (name shop.total, kind FULL);\nSELECT * FROM default.raw"})

    promote(mergeplan)
    wrong = shop(**{**ALONE, "total": "MODEL (name shop.total, kind FULL);\nSELECT nme FROM default.raw"})("plan", *AT)

    assert rows(engine, "SELECT id, name FROM shop.total") == [(7, "x")]
    assert wrong.code == 1
    assert wrong.err.startswith("Error: models/total.sql:2: `shop.total` reads the column `nme`, which is not in")
    assert "Did you mean `name`?" in wrong.err


def test_without_a_name_the_plan_is_for_the_environment_that_the_project_names(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    promote(mergeplan)
    config = mergeplan.root / "config.yaml"
    config.write_text(config.read_text() + "default_target_environment: dev\n")

    assert mergeplan("plan", "--explain", "--output", "json", *AT).result["plan"]["environment"] == "dev"


def test_a_forward_only_plan_is_told_with_its_preview_and_refused_with_what_is_wrong(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    promote(mergeplan)
    mergeplan.write("models/total.sql", THREE)

    text = mergeplan("plan", "dev", "--forward-only", "--no-prompts", *AT).out
    assert "Directly Modified: shop__dev.total (Forward-only (preview))" in text
    assert "shop__dev.total: [full refresh] (preview)" in text
    ran = promote(mergeplan, "dev", "--categorize", "shop.total=forward-only")
    (total,) = ran.result["plan"]["models"]
    assert (total["category"], total["preview"], len(total["keeps"])) == ("forward_only", True, 1)
    assert "mergeplan__shop.shop__total__preview_" in total["table"]

    wrong = mergeplan("plan", "dev", "--effective-from", "2026-01-01", *AT)
    told = "Error: A forward-only plan alone has an effective date. Add `--forward-only`.\n"
    assert (wrong.code, wrong.err) == (1, told)
    assert "MODEL=forward-only" in mergeplan("plan", "--categorize", "shop.total=forwards", *AT).err


def test_a_unit_test_that_passed_runs_again_when_something_changed_or_on_request(
    shop: Shop, engine: SparkEngine
) -> None:
    mergeplan = shop(**SMALL)
    mergeplan.write("tests/t.yaml", "test_total:\n  model: shop.total\n  outputs:\n    query: [{a: 1, b: 2}]\n")
    plan = ("plan", "--no-prompts", *AT)
    first = mergeplan(*plan, "--output", "json")
    mergeplan.engine = None  # from here on Spark must not be started

    again, as_json = mergeplan(*plan), mergeplan(*plan, "--output", "json")

    assert first.result["tests"].items() >= {"passed": 1, "unchanged": 0}.items()
    assert "1 test passed (1 unchanged since they passed)." in again.out
    assert as_json.result["tests"].items() >= {"passed": 1, "unchanged": 1}.items()
    assert [line["unchanged"] for line in as_json.lines if line["event"] == "test"] == [True]
    mergeplan.engine = engine
    assert mergeplan(*plan, "--rerun-tests").err == "Running 1 unit test...\n"
    mergeplan.write("models/total.sql", THREE)
    assert mergeplan(*plan).code == 1


def test_a_unit_test_that_failed_is_not_remembered(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    mergeplan.write("tests/t.yaml", "test_total:\n  model: shop.total\n  outputs:\n    query: [{a: 1, b: 5}]\n")

    codes = [mergeplan("plan", "--no-prompts", *AT).code for _ in range(2)]

    assert codes == [1, 1]


def test_a_table_that_does_not_exist_is_warned_of_before_anything_is_applied(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    mergeplan.write("models/wrong.sql", "MODEL (name shop.wrong, kind FULL);\nSELECT * FROM shop.totals")

    ran = mergeplan("plan", "--no-prompts")

    said = "Warning: models/wrong.sql:2 Spark's catalog has no table `shop.totals`, which `shop.wrong` reads."
    assert f"{said} Did you mean `shop.total`?" in ran.out
