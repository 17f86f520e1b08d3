"""What edits do to Spark's physical plans, as a reviewer reads it."""

from __future__ import annotations

from typing import Any

import pytest

from mergeplan.bot.report.physical import physical_blocks
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.contract.physical import PhysicalChangeRow, PhysicalPlanRow


def row(model: str, cost: str = "", note: str = "", **more: Any) -> PhysicalPlanRow:
    change = {"cost": cost, "before": 0, "after": 1, **more}
    return PhysicalPlanRow(model=model, changes=(PhysicalChangeRow(**change),) if cost else (), note=note)


def blocks(*plans: PhysicalPlanRow) -> list[str]:
    return physical_blocks(PlannerOutcome(0, True, physical_plan=plans))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (row("a.b", "pruning", tables=("a.c",), columns=("day",)),
         "⚠️ `a.b`: all partitions of `a.c` are read; before, a filter on `day` chose some."),
        (row("a.b", "pruning", before=1, after=0, tables=("a.c",)),
         "✅ `a.b`: a filter chooses partitions of `a.c`; before, all were read."),
        (row("a.b", "cartesian_product", tables=("a.c", "a.d")),
         "⚠️ `a.b`: a cartesian product over `a.c`, `a.d` is new: every row of one side meets every row of the other."),
        (row("a.b", "shuffle", before=1, after=3, columns=("id",)),
         "⚠️ `a.b`: rows are shuffled 3 times, now also by `id`; before, once."),
        (row("a.b", "shuffle", before=1, after=0), "✅ `a.b`: rows are shuffled less often: never; before, once."),
        (row("a.b", "one_task", before=2, after=0), "✅ `a.b`: a window without PARTITION BY is gone."),
        (row("a.b", "of_a_newer_planner", before=1, after=2), "⚠️ `a.b`: `of_a_newer_planner`: twice; before, once."),
    ],
)  # fmt: skip
def test_a_change_is_one_sentence_of_models_and_columns(change: PhysicalPlanRow, sentence: str) -> None:
    assert blocks(change) == [f"#### Physical plan, before and after\n\n- {sentence}"]


def test_what_is_worse_comes_first_and_more_than_five_are_folded() -> None:
    (block,) = blocks(
        row("a.good", "filter", before=1, after=0, tables=("x",)), *(row(f"a.b{n}", "python") for n in range(6))
    )

    assert block.startswith("<details>\n<summary>⚠️ 7 changes of Spark's physical plans</summary>")
    assert block.splitlines()[-3].startswith("- ✅ `a.good`")


def test_equal_plans_say_nothing_and_those_that_were_not_compared_are_folded() -> None:
    assert blocks() == blocks(row("a.b")) == []
    (block,) = blocks(row("a.b", note="not compared: the plan is not understood (the operator `<b>@x`)"))
    assert "<summary>1 physical plan not compared</summary>" in block
    assert "- `a.b`: not compared: the plan is not understood (the operator `<b>@x`)" in block


def test_names_are_no_markdown() -> None:
    (block,) = blocks(row("a.`b`@ann", "broadcast", tables=("[x](http://y)",)))

    assert "``a.`b`@ann``: the rows of `[x](http://y)` are shuffled for a join" in block
