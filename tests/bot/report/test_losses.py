"""What a merge takes from prod: it stands first, in the comment and in the checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mergeplan.bot.readers.impact import ReaderSummary, Reading
from mergeplan.bot.report.checks.table import checks
from mergeplan.bot.report.comment import plan_comment
from mergeplan.bot.report.losses import Loss, find_losses, is_narrowed, loss_title, reader_blocks
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.states import headline
from tests.bot.report.test_comment import run_lines, show
from tests.bot.report.test_rows import counts

EDITED = {"name": "shop.orders", "change": "direct", "category": "breaking", "kind": "FULL"}


def show_losses(*models: dict[str, Any], **difference: Any) -> Shown:
    compared = {"model": "shop.orders", "key": ["id"], "rows": counts(), **difference}
    board = {"name": "board", "owner": "ann", "models": ["shop.orders"]}
    plan = {"id": "p1", "environment": "pr_7", "base": "prod", "models": models or [EDITED], "exposures": [board]}
    result = {"event": "result", "ok": True, "applied": True, "plan": plan, "data_diff": [compared]}
    return show(run_lines=run_lines([result], 0))


def title(view: Shown) -> str:
    return loss_title(find_losses(view.record.outcome))


def test_a_dropped_column_stands_first_and_never_under_a_green_tip() -> None:
    view = show_losses({**EDITED, "columns": {"removed": ["amount"]}}, schema={"removed": [["amount", "bigint"]]})
    text, by_name = plan_comment(view) or "", {check.name.split()[-1]: check for check in checks(view)}

    assert text.splitlines()[1].startswith("### ⚠️ Drops column `amount` of `shop.orders` · ")
    assert "[!TIP]" not in text and "> [!WARNING]\n> **The merge takes something away from prod:**" in text
    assert "> - drops column `amount` of `shop.orders`; used outside the project by `board` (`ann`)" in text
    assert "`shop.orders` holds the same rows as before in the columns that both versions have." in text
    assert all(by_name[name].title.startswith("⚠️ Drops column amount of shop.orders") for name in ("plan", "promotion"))


@pytest.mark.parametrize(("readers", "words"), [(["shop.daily"], "by `shop.daily`"), ([], "by no model")])
def test_a_dropped_column_names_the_models_that_read_it(readers: list[str], words: str) -> None:
    columns = {"removed": ["amount"], "lost_readers": [["amount", readers]]}

    assert title(show_losses({**EDITED, "columns": columns})) == (
        f"Drops column `amount` of `shop.orders` (read {words})"
    )


@pytest.mark.parametrize(
    ("change", "difference", "lost"),
    [
        ({"change": "removed", "category": None}, {}, "Drops table `shop.orders`"),
        ({"change": "removed", "category": None, "kind": "VIEW"}, {}, "Drops view `shop.orders`"),
        ({"change": "removed", "category": None, "kind": "EXTERNAL"}, {}, ""),
        ({}, {"schema": {"retyped": [["a", "bigint", "int"]]}}, "Narrows `a` of `shop.orders` from `bigint` to `int`"),
        ({}, {"schema": {"retyped": [["a", "int", "bigint"]]}}, ""),
        ({}, {"rows": counts(only_first=3)}, "Loses 3 rows of `shop.orders`"),
        (
            {},
            {"rows": counts(first=9, second=7, only_first=4, only_second=2), "key": []},
            "Loses 2 rows of `shop.orders`",
        ),
        ({"lost": [["2026-01-01", "2026-01-03"]]}, {}, "Loses 2 days, 2026-01-01 to 2026-01-02 of `shop.orders`"),
        (
            {"columns": {"removed": ["a", "b"]}},
            {"rows": counts(only_first=1)},
            "Drops 2 columns, loses rows of 1 model",
        ),
        ({"change": "added", "category": None}, {}, ""),
    ],
)
def test_each_sort_of_loss_is_named(change: dict[str, Any], difference: dict[str, Any], lost: str) -> None:
    assert title(show_losses({**EDITED, **change}, **difference)) == lost


@pytest.mark.parametrize(
    ("old", "new", "narrowed"),
    [("string", "int", True), ("int", "decimal(10,0)", False), ("bigint", "double", True), ("timestamp", "date", True)],
)
def test_a_type_is_narrower_unless_each_value_fits(old: str, new: str, narrowed: bool) -> None:
    assert is_narrowed(old, new) is narrowed


def test_without_an_exposure_that_is_said_once() -> None:
    view = show_losses({**EDITED, "name": "shop.items", "columns": {"removed": ["a", "b"]}})
    text = plan_comment(view) or ""

    assert "> - drops column `a` of `shop.items`\n> - drops column `b` of `shop.items`\n>\n> No exposure" in text
    assert text.count("No exposure of the project names this model.") == 1


def test_a_dropped_table_is_counted_once_in_the_headline() -> None:
    removed = {"name": "shop.old", "change": "removed", "category": None, "kind": "FULL"}
    lost = {**EDITED, "columns": {"removed": ["a"]}}

    assert headline(show_losses(removed, lost)).startswith(
        "### ⚠️ Drops 1 table and 1 column · replaces 1 table of prod · "
    )
    assert headline(show_losses(removed)).startswith("### ⚠️ Drops table `shop.old` · 0 rows")


def test_a_title_says_that_other_projects_read_what_goes() -> None:
    loss = Loss("shop.orders", "column", "drops column `id` of `shop.orders`")
    readers = (ReaderSummary("acme/finance", models=1, takes=True), ReaderSummary(models=2), ReaderSummary(takes=True))

    assert loss_title((loss,), readers) == "Drops column `id` of `shop.orders`, which 2 other projects read"
    assert loss_title((loss,), readers[1:2]) == "Drops column `id` of `shop.orders`"
    assert loss_title((), readers) == ""


def test_readers_without_a_name_are_counted_and_no_text_of_theirs_is_markdown() -> None:
    reading = Reading("fin.`x`", "shop.orders", ("id",), owner="<b>@ann</b>")
    named = ReaderSummary("acme/finance", 1, owners=("<b>@ann</b>",), readings=(reading,))
    (block,) = reader_blocks((named, ReaderSummary(models=2, exposures=1)))

    assert "- Another repository: 2 models and 1 exposure" in block
    assert "**2 other projects read what changes:**" in block
    assert "`<b>@ann</b>`" in block.replace("\u200b", "")
    assert reader_blocks(()) == []


def test_a_reader_has_the_most_severe_category_that_its_columns_allow() -> None:
    """Where any column may be read, it is computed again; an exposure has none."""
    reading = Reading("fin.revenue", "shop.orders", ("id",), owner="fay")
    others = (replace(reading, columns=(), takes=True), replace(reading, takes=True), replace(reading, keeps=True),
              replace(reading, is_exposure=True))  # fmt: skip
    (block,) = reader_blocks((ReaderSummary("acme/finance", 3, readings=(reading, *others)),))

    categories = [line.split(" | ")[3] for line in block.split("\n") if line.startswith("| `acme/finance`")]
    breaking = "🟠 Indirect breaking"
    assert categories == [breaking, breaking, "❌ its query fails", "⚪ Indirect non-breaking", ""]
