"""The models of a plan: a few one by one, many in groups of like ones, diffs that lead to files."""

from __future__ import annotations

from typing import Any

from mergeplan.bot.report.comment import plan_comment
from mergeplan.bot.report.models import Site, diffs_blocks, group_table, model_row, model_table
from mergeplan.planner.contract.plan import ModelChange
from tests.bot.report.test_comment import is_balanced, show
from tests.bot.report.test_rows import PHONE, narrowest


def model(name: str, change: str = "direct", category: str | None = "breaking", **more: Any) -> dict[str, Any]:
    return {"name": name, "change": change, "category": category, "kind": "FULL", **more}


def many() -> list[dict[str, Any]]:
    """Five hundred models of six sorts."""
    edit = {"diff": "-1\n+2", "recomputed": True, "intervals": [("2026-01-01", "2026-02-01")]}
    return [
        *(model(f"shop.added_{n}", "added", None, rule="added", reason="It is new.", **edit) for n in range(57)),
        *(model(f"shop.down_{n}", "indirect", "indirect_breaking", rule="reads", reason=f"R{n}.") for n in range(400)),
        *(model(f"shop.edit_{n}", rule="rows-changed", reason=f"Because of {n}.", **edit) for n in range(40)),
        *(model(f"shop.gone_{n}", "removed", None, rule="removed") for n in range(2)),
        model("shop.odd", category="undecided", rule="undecidable", reason="It is Python."),
    ]


def test_five_hundred_models_are_one_screen_and_a_valid_comment() -> None:
    """Behaviour 49: like rows are one, the most severe first; what is long is folded, and all of it fits."""
    text = plan_comment(show(models=many()))

    assert text is not None
    assert (len(text) < 60_000, is_balanced(text)) == (True, True)
    opened = text.split("<details>\n")[0]
    rows = [line for line in opened.splitlines() if line.startswith("| ")][1:]
    assert len(opened.splitlines()) < 30
    assert [row.strip("| ").split("<br>")[0] for row in rows[1:]] == [
        "🔴 Breaking", "🟣 Undecided", "🗑️ Removed", "🟠 Indirect breaking", "🆕 Added",
    ]  # fmt: skip
    assert "<summary>97 diffs</summary>" in text
    assert "<summary>Each of the 500 models</summary>" in text


def test_a_group_is_a_row_that_unfolds_to_its_names() -> None:
    lines = group_table([ModelChange.model_validate(fields) for fields in many()]).splitlines()

    assert lines[2].startswith(
        "| 🔴 Breaking<br><details><summary><b>40 models</b></summary>shop.edit_0<br>shop.edit_1<br>"
    )
    assert lines[4].startswith("| 🗑️ Removed<br>`shop.gone_0`, `shop.gone_1` |")
    assert lines[6].endswith("| It is new. <sub>`added`</sub> | 57 tables |")


def test_a_group_with_several_reasons_shows_the_most_frequent_one() -> None:
    members = [model(f"shop.m{n}", rule="rows-changed", reason=f"`a{min(n, 2)}` changed.") for n in range(9)]
    lines = group_table([ModelChange.model_validate(member) for member in members]).splitlines()

    assert "| `a2` changed. And 2 more like that. <sub>`rows-changed`</sub> |" in lines[2]


def test_names_in_a_group_are_inert() -> None:
    """Behaviour 14: between tags no Markdown is read, and no tag of a name is one."""
    evil = [ModelChange.model_validate(model(f"<img src=x> @team | {n}")) for n in range(3)]

    assert "&lt;img src=x&gt; @\u200bteam \\| 0<br>" in group_table(evil)


def test_a_model_and_its_diff_lead_to_the_file_and_line() -> None:
    site = Site("https://github.com/ann/shop", "abc", "etl")
    change = ModelChange.model_validate(model("a.b", path="models/a b.sql", line=3, diff="-1\n+2"))
    gone = ModelChange.model_validate(model("a.c", "removed", None, path="models/c.sql"))

    assert (
        model_row(change, site)[0]
        == "[`a.b`](https://github.com/ann/shop/blob/abc/etl/models/a%20b.sql#L3)<br>🔴 Breaking"
    )
    assert model_row(gone, site)[0] == "`a.c`<br>🗑️ Removed"
    (diff,) = diffs_blocks([change], site)
    assert "[`models/a b.sql:3`](https://github.com/ann/shop/blob/abc/etl/models/a%20b.sql#L3)" in diff


def test_a_long_name_can_be_broken_where_a_table_is_narrow() -> None:
    """A phone shows 300 pixels: names in back-ticks are never broken, and would push the other columns out of sight."""
    long = model("sqlmesh_example.incremental_model", reason="Reads `shop.a`, not `shop.customers_by_<b>_day`.")
    text = model_table([ModelChange.model_validate(long)], 1_000)

    assert "| <code>sqlmesh\\_<wbr>example.<wbr>incremental\\_<wbr>model</code><br>🔴 Breaking |" in text
    assert "`shop.a`, not <code>shop.<wbr>customers\\_<wbr>by\\_<wbr>&lt;b&gt;\\_<wbr>day</code>" in text


def test_the_table_of_models_fits_a_phone() -> None:
    """Names of two or three ordinary words, in back-ticks, would push what is computed out of sight."""
    days = [("2026-01-01", "2026-01-09")]
    edited = model("shop.daily_revenue", reason="Reads `shop.orders.amount`, which changed.", intervals=days)
    below = model("shop.top_customers", "indirect", "indirect_non_breaking", rule="reads-nothing-changed")

    assert narrowest(model_table([ModelChange.model_validate(row) for row in (edited, below)], 4_000)) < PHONE


def test_a_reason_does_not_repeat_the_name_beside_which_it_stands() -> None:
    """Behaviour 49: so that new models have one reason, and a group of them shows it."""
    new = [model(f"shop.m{n}", "added", None, reason=f"`shop.m{n}` is not in `prod` yet.") for n in range(3)]
    changes = [ModelChange.model_validate(row) for row in new]

    assert model_row(changes[0])[1] == "It is not in `prod` yet."
    assert "| It is not in `prod` yet. |" in group_table(changes)


def test_a_view_is_called_no_table() -> None:
    view = ModelChange.model_validate(model("shop.a", kind="VIEW", table="p.a__1"))
    shared = view.model_copy(update={"shares": "prod"})

    assert model_row(view)[2] == "nothing<br>a view of its own"
    assert model_row(shared)[2] == "nothing<br>view shared with `prod`"


def test_a_removed_comment_is_counted_as_a_removed_line() -> None:
    diff = "--- a/m.sql\n+++ b/m.sql\n@@ -1,2 +1,1 @@\n--- note\n-a\n+++ b"
    (block,) = diffs_blocks([ModelChange(name="a.b", change="direct", diff=diff)])

    assert "1 added, 2 removed" in block


def test_a_few_models_stand_with_the_most_severe_first() -> None:
    mild = {"name": "shop.a", "change": "direct", "category": "non_breaking", "kind": "FULL"}
    text = plan_comment(show(models=[mild, {**mild, "name": "shop.b", "category": "breaking"}])) or ""

    assert text.index("| `shop.b`<br>🔴 Breaking") < text.index("| `shop.a`<br>🟢 Non-breaking")
