"""Early cut-off in words: what may be cut off, what was, what that saved, and no wrong word at the merge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from mergeplan.bot.records import PullState
from mergeplan.bot.report.checks.table import checks
from mergeplan.bot.report.comment import plan_comment
from mergeplan.bot.report.words import drift_sentence, open_words, promise_sentence, refusal_words, skip_summary
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.contract.plan import CostEstimate, LeftOutRow, ModelChange, PlanView, RefusedRow, TableComparison
from tests.bot.changing import change_record
from tests.bot.report.test_comment import show

T = TypeVar("T", bound=BaseModel)


def copy_with(data: T, **fields: object) -> T:
    return data.model_copy(update=fields)


SAME = "Computed again, `shop.orders` holds the same rows as before in `id`, `amount`."
ORDERS = ModelChange(
    name="shop.orders", change="direct", category="breaking", kind="FULL", intervals=(("2026-01-01", "2026-01-02"),)
)
KEPT = ModelChange(
    name="shop.items", change="indirect", category="indirect_non_breaking", rule="same-data", reason=SAME, kind="FULL",
    skipped=True,
)  # fmt: skip
BELOW = copy_with(KEPT, name="shop.most", rule="parents-unchanged", reason="Its inputs hold the same rows.")
PLAN = PlanView(id="p1", digest="later", environment="pr_7", models=(ORDERS, KEPT, BELOW), planned_digest="first")
MODELS: list[dict[str, Any]] = [
    {"name": "shop.orders", "change": "direct", "category": "breaking", "kind": "FULL", "estimate": {"seconds": 8}},
    {
        "name": "shop.items", "change": "indirect", "category": "indirect_non_breaking", "rule": "same-data",
        "reason": SAME, "kind": "FULL", "skipped": True, "shares": "prod",
        "estimate": {"seconds": 120, "bytes": 2_000_000_000},
    },
]  # fmt: skip


def comparing(*asked: tuple[str, str]) -> PlanView:
    comparisons = (TableComparison(reader=reader, model=model, columns=("id",)) for reader, model in asked)
    return copy_with(PLAN, comparisons=tuple(comparisons))


def test_a_cut_off_says_what_it_spared_why_and_what_that_saved() -> None:
    plan = copy_with(
        PLAN, models=(ORDERS, copy_with(KEPT, estimate=CostEstimate(seconds=120, bytes=1_200_000_000)), BELOW)
    )

    assert skip_summary(plan) == f"**2 models were not computed.** {SAME} That saved about 2 min, 1.1 GiB read."
    assert skip_summary(copy_with(PLAN, models=(ORDERS, KEPT))) == f"**1 model was not computed.** {SAME}"
    assert skip_summary(copy_with(PLAN, models=(ORDERS,))) == ""


def test_many_reasons_are_counted() -> None:
    many = tuple(copy_with(KEPT, name=f"shop.m{index}", reason=f"Reason {index}.") for index in range(9))

    assert skip_summary(copy_with(PLAN, models=many)).endswith("Reason 3. And 5 more like that.")


def test_what_is_open_is_told_by_the_table_that_decides_it() -> None:
    plan = comparing(
        ("shop.items", "shop.orders"), ("shop.takings", "shop.orders"), ("shop.most", "shop.items")
    )  # fmt: skip

    assert open_words(plan) == (
        "**May still be skipped**, with what reads it: `shop.items`, `shop.takings` if `shop.orders` holds the same "
        "rows as before in `id`."
    )
    assert open_words(PLAN) == ""
    assert "computes up to 1 table (skips those whose inputs are unchanged), then" in promise_sentence(plan, None)


def test_of_many_conditions_one_is_an_example() -> None:
    plan = comparing(*((f"shop.m{index}", f"shop.p{index}") for index in range(9)))

    assert open_words(plan) == (
        "**9 models may still be skipped**, with what reads them: `shop.m0` if `shop.p0` holds the same rows as before "
        "in `id`, and so on."
    )


def test_the_comment_and_the_checks_tell_the_cut_off_and_count_its_cost_apart() -> None:
    """Behaviour 32: what it cost is what was computed."""
    view = show(models=MODELS)
    text = plan_comment(view)
    told = {check.name.removeprefix("mergeplan / "): check for check in checks(view)}

    assert text is not None
    assert f"\n\n✂️ **1 model was not computed.** {SAME} That saved about 2 min, 1.9 GiB read.\n\n" in text
    assert "| nothing: inputs unchanged<br>table shared with `prod` |" in text
    assert "<br/>skipped" in text
    assert " · about 8 s\n" in text
    assert "**1 model was not computed.**" in told["environment"].summary
    assert "**1 model was not computed.**" in told["plan"].summary
    assert "not computed" not in told["environment"].title


def test_while_it_is_built_the_comment_says_what_may_be_cut_off() -> None:
    view = show(PullState.PLANNING, models=MODELS[:1], fresh=True)
    compared = '"comparisons":[{"reader":"a.b","model":"a.c","columns":[]}]'
    lines = view.record.run.lines.replace('"comparisons":[]', compared)

    text = plan_comment(replace(view, record=change_record(view.record, run_lines=lines)))

    assert text is not None
    assert "✂️ **May still be skipped**, with what reads it: `a.b` if `a.c` holds the same rows as before.\n" in text


def test_a_merge_that_only_cut_off_more_does_not_say_that_prod_had_moved() -> None:
    outcome = PlannerOutcome(0, True, plan=PLAN)

    assert [drift_sentence(promised, outcome) for promised in ("first", "later", "")] == ["", "", ""]
    assert drift_sentence("another", outcome).startswith("Prod had moved since the plan, so `shop.orders`")


def test_what_is_not_planned_is_named_with_its_reason_and_its_readers() -> None:
    row = RefusedRow(models=("shop.own",), path="models/own.sql", line=3, message="No <b>.", deployed=True)
    plan = copy_with(PLAN, refused=(row,), left_out=(LeftOutRow(model="shop.below", reason="It reads `shop.own`."),))

    twice = copy_with(plan, refused=(row, copy_with(row, line=4, message="No `y`.")))

    assert refusal_words(PLAN) == ""
    assert "1 file of models" in refusal_words(twice)
    assert "- `shop.own` (`models/own.sql:4`): No `y`." in refusal_words(twice)
    assert refusal_words(plan).splitlines() == [
        "🚫 **Not planned:** 1 file of models cannot be opened.",
        "",
        "- `shop.own` (`models/own.sql:3`): No &lt;b&gt;. It stays in prod as it is.",
        "- Left out, because they read one of these: `shop.below`.",
    ]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (("direct",), "Merging points 1 view of prod at the tables already built here. Nothing is computed again."),
        (
            ("added",) * 2,
            "Merging adds 2 views to prod over the tables already built here. Nothing is computed again.",
        ),
        (("removed",), "Merging drops 1 view of prod. Nothing is computed."),
        (
            ("direct", "added", "removed"),
            "Merging points 1 view of prod at the tables already built here, adds 1 view and drops 1 view. "
            "Nothing is computed again.",
        ),
    ],
)
def test_views_that_are_new_or_go_are_not_said_to_point_elsewhere(changes: tuple[str, ...], sentence: str) -> None:
    models = tuple(copy_with(ORDERS, name=f"s.m{n}", change=change) for n, change in enumerate(changes))

    assert promise_sentence(copy_with(PLAN, models=models), PlannerOutcome(0, True, applied=True)) == sentence


def test_a_plan_that_only_chooses_a_category_is_not_said_to_compute_nothing_first() -> None:
    """All of its tables stand, so it is not applied: what a merge does is the same."""
    built = copy_with(PLAN, models=(copy_with(ORDERS, intervals=()),))

    assert promise_sentence(built, PlannerOutcome(0, True)) == (
        "Merging points 1 view of prod at the tables already built here. Nothing is computed again."
    )
