"""What a plan does to rows and columns, as a person reads it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mergeplan.bot.report.rows import exposures_block, format_share, impact_block, rows_blocks, rows_title, schema_block
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.contract.plan import PlanView
from mergeplan.planner.contract.tables import DataDifference


def diff(model: str, changed: int = 0, **more: Any) -> DataDifference:
    rows = {"first": 1000, "second": 1000, "only_first": 0, "only_second": 0, "common": 1000,
            "matched": 1000 - changed, "changed": changed, "null_keys": (0, 0), "duplicate_keys": (0, 0)}  # fmt: skip
    told = {"model": model, "before": 1000, "after": 1000, "rows": rows, "key": ["id"]}
    columns = [{"name": "amount", "changed": changed}, {"name": "day", "changed": 0}]
    return DataDifference.model_validate({**told, "columns": columns, **more})


def counts(**numbers: int) -> dict[str, Any]:
    one = {"first": 1000, "second": 1000, "common": 1000, "matched": 1000, "null_keys": (0, 0)}
    return one | {"only_first": 0, "only_second": 0, "changed": 0, "duplicate_keys": (0, 0)} | numbers


def outcome(*differences: DataDifference) -> PlannerOutcome:
    return PlannerOutcome(0, True, data_diff=differences)


PHONE = 324  # pixels that GitHub's page leaves a table at 390


def narrowest(table: str) -> int:
    """How narrow a table can be made, in pixels: its longest pieces that cannot be broken, and the padding of cells."""
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ") and "---" not in line]
    text = [[re.sub(r"\]\([^)]*\)|[`*\\\\\[\]]|</?(code|sub)>", "", cell) for cell in row] for row in rows]
    pieces = [[len(max(re.split(r"<br>|<wbr>|[\s-]", cell), key=len)) for cell in row] for row in text]
    return sum(27 + round(7.3 * max(column)) for column in zip(*pieces, strict=True))


@pytest.mark.parametrize(
    ("differences", "title"),
    [
        ((), ""),
        ((diff("a.a"), diff("a.b")), "0 rows changed"),
        ((diff("a.a", 3), diff("a.b", 1)), "rows differ in 2 models"),
        ((diff("a.a", 3), diff("a.b")), "3 rows changed"),
        ((diff("a.a", left_out=[("2026-01-01", "2026-01-02")]),), "0 rows changed on the days built here"),
        ((diff("a.a"), diff("a.b", rows=None, note="not compared")), "no row changed in 1 model, 1 not compared"),
        ((diff("a.a", 2), diff("a.b", rows=None)), "2 rows changed (1 model not compared)"),
        ((diff("a.b", rows=None),), ""),
        ((diff("a.a", rows=counts(only_first=2)),), "2 rows gone"),
        ((diff("a.a", rows=counts(only_second=1)), diff("a.b")), "1 row new"),
        ((diff("a.a", rows=counts(changed=3, only_first=1, only_second=4)),), "3 rows changed, 1 gone, 4 new"),
        (
            (diff("a.a", 2), diff("a.b", rows=counts(only_first=2)), diff("a.c", rows=None)),
            "rows differ in 2 models (1 model not compared)",
        ),
    ],
)
def test_the_first_line_says_how_many_rows_and_nothing_that_was_not_compared(
    differences: tuple[DataDifference, ...], title: str
) -> None:
    assert rows_title(outcome(*differences)) == title


def test_the_models_with_the_largest_shares_stand_first_and_equal_ones_share_a_line() -> None:
    table, same = rows_blocks(outcome(diff("a.a", 3), diff("a.b", 500), diff("a.c"), diff("a.d")))

    lines = table.splitlines()
    assert lines[0] == "#### Rows, before and after (by `id`)"
    assert lines[4] == "| `a.b` | 1,000 | **500** changed (50%)<br>`amount` 50% |"
    assert lines[5].startswith("| `a.a` |")
    assert same == "`a.c`, `a.d` hold the same rows as before."


def test_an_edited_model_stands_before_the_models_that_it_changes() -> None:
    """Its share may be the smallest: a row that goes at the source changes every sum below."""
    plan = PlanView.model_validate(
        {"id": "p", "environment": "pr_1", "models": [{"name": "a.source", "change": "direct"}]}
    )
    differences = [diff("a.sum", 1000), diff("a.source", 1), diff("a.other", 500)]

    table, rest = rows_blocks(PlannerOutcome(0, True, plan=plan, data_diff=tuple(differences)), most=2)

    assert [line.split(" | ")[0] for line in table.splitlines()[4:]] == ["| `a.source`", "| `a.sum`"]
    assert "<summary>1 more model whose rows differ</summary>" in rest


def test_rows_that_are_only_gone_have_no_column_that_changed() -> None:
    table, *_ = rows_blocks(outcome(diff("a.a", rows=counts(only_first=2))))

    assert table.splitlines()[2:] == ["| Model | Rows | Differ |", "| --- | --- | --- |", "| `a.a` | 1,000 | 2 gone |"]


def test_the_table_of_rows_fits_a_phone_also_where_models_are_compared_otherwise() -> None:
    """What was compared stands below the model, and columns below the counts: a fourth column would be out of sight."""
    days = [("2026-01-01", "2026-01-09")]
    table, *_ = rows_blocks(outcome(diff("shop.daily_revenue", 3, days=days), diff("shop.customers", 2)))

    assert table.startswith("#### Rows, before and after (by `id`)\n")
    assert "shop.<wbr>daily\\_<wbr>revenue</code><br>8 days, 2026-01-01 to 2026-01-08 |" in table
    assert narrowest(table) < PHONE


def test_models_of_the_same_files_share_a_line_of_their_own() -> None:
    rows, same = rows_blocks(outcome(diff("a.a", 3), diff("a.b", same_files=True, key=[])))
    (alone,) = rows_blocks(outcome(diff("a.b", same_files=True, key=[])))

    assert rows.splitlines()[0] == "#### Rows, before and after (by `id`)"
    assert same == "`a.b` is made of the same files as before."
    assert alone == f"#### Rows, before and after\n\n{same}"


def test_five_hundred_models_with_changed_rows_are_five_rows_and_a_fold() -> None:
    table, rest, unknown = rows_blocks(
        outcome(
            *(diff(f"a.m{n}", n) for n in range(1, 500)), diff("a.x", rows=None, before=None, note="@all too large")
        )
    )

    assert table.count("\n") == 3 + 5
    assert rest.startswith("<details>\n<summary>494 more models whose rows differ</summary>")
    assert len(rest) < 9_000
    assert "`a.x`: @\u200ball too large" in unknown


def test_of_rows_that_are_nobodys_business_only_the_columns_are_told() -> None:
    schema = {"added": [("new", "int")], "removed": [], "retyped": []}
    off = outcome(diff("a.a", rows=None, before=None, is_off=True, note="not compared", schema=schema))

    assert (rows_title(off), rows_blocks(off)) == ("", [])
    assert "| `a.a` | `new` | added as `int` |" in schema_block(off)[0]


def test_samples_are_folded_inert_and_side_by_side() -> None:
    sample = {"columns": ["id", "s__amount", "t__amount"], "rows": [[7, "##", "<b>@ann</b> `|`"]]}
    *_, block = rows_blocks(outcome(diff("a.a", 1, samples={"changed": sample})))

    assert "| `id` | `amount before` | `amount after` |" in block
    assert "| `7` | `##` | `` <b>@ann</b> `\\|` `` |" in block


def test_columns_and_nullability_are_a_table() -> None:
    schema = {"added": [("new", "int")], "removed": [("old", "date")], "retyped": [("id", "int", "bigint")]}
    nullable = [{"column": "day", "nullable": True}]
    (block,) = schema_block(outcome(diff("a.a", schema=schema, nullability=nullable)))

    assert block.splitlines()[4:] == [
        "| `a.a` | `old` | removed; was `date` |",
        "| `a.a` | `id` | `int` → `bigint` |",
        "| `a.a` | `new` | added as `int` |",
        "| `a.a` | `day` | audited: no NULL → may hold NULL |",
    ]


def test_no_row_is_said_to_be_unchanged_in_a_column_that_was_not_compared() -> None:
    schema = {"retyped": [("at", "string", "timestamp")], "uncompared": ["at"]}
    reply = outcome(diff("a.a", schema=schema))

    assert rows_title(reply) == "0 rows changed in the columns compared"
    text = "\n".join(rows_blocks(reply))
    assert "`a.a` holds the same rows as before in the columns that were compared." in text
    assert "⚠️ `at` of `a.a` was not compared" in text


def test_who_is_hit_downstream_is_told_by_column_and_owner() -> None:
    hit = {"name": "a.b", "change": "indirect", "recomputed": True, "owner": "ann", "parents": ["a.a"]}
    kept = {"name": "a.c", "change": "indirect", "recomputed": False, "owner": "bob"}
    models = [{**hit, "columns": {"altered": ["amount"]}}, kept]
    (block,) = impact_block(PlanView.model_validate({"id": "x", "environment": "pr_1", "models": models}))

    view = {**hit, "name": "a.v", "kind": "VIEW", "recomputed": False, "category": "indirect_breaking"}
    (both,) = impact_block(PlanView.model_validate({"id": "x", "environment": "pr_1", "models": [*models, view]}))

    assert both.startswith("**2 downstream models read what changes**, owned by `ann`.")
    assert block.startswith("**1 downstream model reads what changes**, owned by `ann`.")
    assert "| `a.b` | `amount` | `a.a` | `ann` |" in block


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [(0, 0, "0%"), (1, 10_000, "< 0.1%"), (9_999, 10_000, "> 99.9%"), (5, 100, "5.0%"), (7, 7, "100%")],
)
def test_a_share_never_rounds_to_nothing_or_to_all(part: int, whole: int, said: str) -> None:
    assert format_share(part, whole) == said


def test_exposures_stand_in_the_open_while_they_are_few_and_their_words_are_inert() -> None:
    report = {"name": "Weekly @ann", "type": "dashboard", "owner": "<b>", "models": ["shop.total"]}
    view = {"id": "x", "environment": "pr_1"}

    (block,) = exposures_block(PlanView.model_validate({**view, "exposures": [report]}))
    assert block.splitlines() == [
        "**1 exposure uses what changes:**",
        "",
        "- `Weekly @ann` (`dashboard`, `<b>`) uses `shop.total`",
    ]
    (folded,) = exposures_block(PlanView.model_validate({**view, "exposures": [report] * 6}))
    assert folded.startswith("<details>\n<summary>6 exposures use what changes</summary>")
    assert exposures_block(PlanView.model_validate(view)) == []
