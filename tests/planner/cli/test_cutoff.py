"""Early cut-off as a person and a program see it: what is still open, what was compared, what that spared."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.planner.cli.conftest import TODAY, CommandLine
from tests.planner.shop import ALONE
from tests.planner.shop import FILES as DAILY_FILES

AT = ("--execution-time", TODAY)
MODEL = "MODEL (name shop.{}, kind FULL);\n{}"
FILES = {
    **ALONE,
    "total": MODEL.format("total", "SELECT 1 AS a, 2 AS b, 3 AS c"),
    "same": MODEL.format("same", "SELECT a + b AS sum FROM shop.total"),
    "top": MODEL.format("top", "SELECT max(sum) AS most FROM shop.same"),
    "other": MODEL.format("other", "SELECT c + 1 AS more FROM shop.total"),
}
EDITED = MODEL.format("total", "SELECT 1 AS a, abs(2) AS b, 4 AS c")
APPLIED = """
Updating physical layer ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100.0% • 1/1 • TIME

[1/1] shop__dev.total   [full refresh] TIME
Executing model batches ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100.0% • 1/1 • TIME

- shop.other is computed: not the same rows (looked at shop.total in c)
- shop.same keeps its table: shop.total holds the same rows as before in a, b
Comparing tables ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100.0% • 2/2 • TIME

Updating physical layer ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100.0% • 1/1 • TIME

[1/1] shop__dev.other   [full refresh] TIME
Executing model batches ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100.0% • 1/1 • TIME

✔ Physical layer updated
✔ Model batches executed
✔ Tables compared

Updating virtual layer  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100.0% • 4/4 • TIME

✔ Virtual layer updated

Not computed, because they read the same rows as before: shop__dev.same, shop__dev.top (saved TIME)

Computed 2 models in 2 batches: 2 rows, TIME.
"""


@pytest.fixture(name="shop_after_edit")
def _shop_after_edit(shop: Callable[..., CommandLine]) -> CommandLine:
    """A shop whose prod stands and whose edit leaves what `same` reads as it was."""
    mergeplan = shop(**FILES)
    assert mergeplan("plan", "--auto-apply", *AT).code == 0
    mergeplan.write("models/total.sql", EDITED)
    return mergeplan


def timeless(text: str) -> str:
    return re.sub(r" +TIME", " TIME", re.sub(r"\d+\.\d\ds|\d:\d\d:\d\d|~?\d+ s\b", "TIME", text))


def test_explain_says_of_each_model_why_and_what_may_spare_it(shop_after_edit: CommandLine) -> None:
    _, _, told = shop_after_edit("plan", "dev", "--explain", *AT).out.partition("Decisions\n")

    assert told.startswith("""\
├── shop__dev.total: Breaking, by the rule `column-altered`
│   ├── Alters `b` and `c`; the rows stay the same ones.
│   ├── Columns: alters b, c
│   └── Table: a new one, which is computed
├── shop__dev.other: Indirect Breaking, by the rule `reads-changed-column`
│   ├── Reads `shop.total.c`, which changed.
│   ├── Columns: alters more
│   ├── Table: a new one, which is computed
│   └── Waits for shop.total to be built: if it holds the same rows as before in c, this is not computed
├── shop__dev.same: Indirect Breaking, by the rule `reads-changed-column`
│   ├── Reads `shop.total.b`, which changed.
│   ├── Columns: alters sum
│   ├── Table: a new one, which is computed
│   └── Waits for shop.total to be built: if it holds the same rows as before in a, b, this is not computed
└── shop__dev.top: Indirect Breaking, by the rule `reads-changed-column`
""")


def test_the_rounds_of_an_apply_are_ticked_off_once(shop_after_edit: CommandLine) -> None:
    plan, _, applied = timeless(shop_after_edit("plan", "dev", "--auto-apply", *AT).out).partition("\n\nUpdating")
    another = shop_after_edit("plan", "other_dev", "--explain", *AT).out

    assert "shop__dev.same: [full refresh] TIME, unless shop.total comes out the same\n" in plan
    assert "\nUpdating" + applied == APPLIED
    assert "├── shop__other_dev.other: `dev` has it, nothing is computed\n" in another
    assert "│   └── Table: the one of `dev`, which has it already; nothing is computed\n" in another
    assert "│   └── Table: the one of `prod` is kept; nothing is computed\n" in another


@pytest.mark.prove
def test_the_json_result_is_the_final_plan_as_of_the_shown_one(shop_after_edit: CommandLine) -> None:
    ran = shop_after_edit("plan", "dev", "--auto-apply", "-o", "json", *AT)

    shown = next(line["plan"] for line in ran.lines if line["event"] == "plan")
    final = ran.result["plan"]
    computed = {model["name"] for model in final["models"] if model["intervals"]}
    assert {"reader": "shop.same", "model": "shop.total", "columns": ["a", "b"]} in shown["comparisons"]
    assert [line for line in ran.lines if line["event"] == "compared"] == [
        {"event": "compared", "reader": "shop.other", "model": "shop.total", "columns": ["c"], "skipped": False},
        {"event": "compared", "reader": "shop.same", "model": "shop.total", "columns": ["a", "b"], "skipped": True},
    ]
    assert computed == {line["model"] for line in ran.lines if line["event"] == "batch"} == {"shop.total", "shop.other"}
    assert {model["name"] for model in final["models"] if model["skipped"]} == {"shop.same", "shop.top"}
    assert (final["id"], final["planned_digest"], final["comparisons"]) == (shown["id"], shown["digest"], [])
    assert not final["virtual"]


@pytest.mark.prove
def test_without_cut_off_nothing_waits(shop_after_edit: CommandLine) -> None:
    shop_after_edit.write(
        "config.yaml", (shop_after_edit.root / "config.yaml").read_text() + "plan:\n  early_cut_off: false\n"
    )

    ran = shop_after_edit("plan", "dev", "--auto-apply", "-o", "json", *AT)

    assert [line for line in ran.lines if line["event"] in ("compared", "plan") and line.get("comparisons")] == []
    assert sum(line["event"] == "batch" for line in ran.lines) == 4


@pytest.mark.prove
def test_days_that_are_copied_are_told_apart_from_those_that_are_computed(shop: Callable[..., CommandLine]) -> None:
    daily = DAILY_FILES["models/daily.sql"].replace("batch_size 1", "batch_size 7")
    later = daily.replace("shop.daily", "shop.later").replace("shop.items", "shop.daily")
    mergeplan = shop(later=later, daily=daily, total="", shown="", apart="")
    assert mergeplan("plan", "--auto-apply", *AT).code == 0
    dearer = daily.replace("day, price", "day, price + CASE WHEN id = 3 THEN 1 ELSE 0 END AS price")
    mergeplan.write("models/daily.sql", dearer)

    ran = mergeplan("plan", "dev", "--auto-apply", "-o", "json", *AT)

    told = {model["name"]: model for model in ran.result["plan"]["models"]}["shop.later"]
    batches = [line for line in ran.lines if line["event"] == "batch" and line["model"] == "shop.later"]
    assert told["copies"] == [line["interval"] for line in batches if line["copied"]]
    assert [line["interval"] for line in batches if not line["copied"]] == [["2026-01-04", "2026-01-05"]]
    assert told["intervals"] == [["2026-01-01", "2026-01-06"]]


@pytest.mark.prove
def test_who_says_breaking_is_not_contradicted_by_a_comparison(shop_after_edit: CommandLine) -> None:
    ran = shop_after_edit("plan", "dev", "--auto-apply", "--categorize", "shop.total=breaking", "-o", "json", *AT)

    assert [line["reader"] for line in ran.lines if line["event"] == "compared"] == ["shop.top"]
    assert sum(line["event"] == "batch" for line in ran.lines) == 3
