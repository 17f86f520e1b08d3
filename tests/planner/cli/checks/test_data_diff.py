"""mergeplan data_diff, and plan --data-diff: what an environment's changes do to rows, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.planner.cli.conftest import TODAY, CommandLine
from tests.planner.shop import ALONE

TOTAL = "MODEL (name shop.total, kind FULL, grain id, owner ann);\nSELECT a AS id, b AS name FROM VALUES {} AS t(a, b)"
PLAN = ("--auto-apply", "--execution-time", TODAY, "--output", "json", "--data-diff", "counts")


def test_a_plan_tells_what_it_does_to_rows_and_so_does_its_environment(shop: Callable[..., CommandLine]) -> None:
    mergeplan = shop(**ALONE | {"total": TOTAL.format("(1, 'x'), (2, 'y'), (3, 'z')")})
    first = mergeplan("plan", *PLAN)
    mergeplan.write("models/total.sql", TOTAL.format("(1, 'x'), (2, 'w'), (4, 'z')"))
    planned, again = mergeplan("plan", "dev", *PLAN), mergeplan("plan", "dev", *PLAN)
    text = mergeplan("data-diff", "dev", "shop.total", "--detail", "sample", "--unmasked", "id", "--where", "id < 4")
    wrong = mergeplan("data_diff", "dev", "--detail", "all")

    (row,) = planned.result["data_diff"]
    assert (first.code, first.result["data_diff"], planned.result["plan"]["models"][0]["owner"]) == (0, [], "ann")
    assert (row["model"], row["before"], row["after"], row["key"], row["rows"]["changed"]) == (
        "shop.total", 3, 3, ["id"], 1,
    )  # fmt: skip
    assert {**again.result["data_diff"][0], "seconds": row["seconds"]} == row
    assert "Rows: 3 in prod, 2 in dev" in text.out
    assert "y*** (1)" not in text.out
    assert "*** (1)" in text.out
    assert (text.code, wrong.code) == (0, 1)
    assert "`all` is no detail of a data diff. Write `counts`, or `tag:pii=off`." in wrong.err


def test_an_environment_is_compared_with_another_one_than_prod(shop: Callable[..., CommandLine]) -> None:
    mergeplan = shop(**ALONE | {"total": TOTAL.format("(1, 'x'), (2, 'y')")})
    mergeplan("plan", *PLAN)
    for environment, values in (("lower", "(1, 'w'), (2, 'y')"), ("upper", "(1, 'w'), (2, 'v')")):
        mergeplan.write("models/total.sql", TOTAL.format(values))
        mergeplan("plan", environment, *PLAN)
    diffs = [
        mergeplan("data_diff", "upper", *option, "--output", "json").result["data_diff"]
        for option in ((), ("--against", "lower"))
    ]

    assert [diff[0]["rows"]["changed"] for diff in diffs] == [2, 1]


@pytest.mark.prove
def test_a_plan_over_its_limit_is_shown_and_computes_nothing(shop: Callable[..., CommandLine]) -> None:
    mergeplan = shop(**ALONE | {"total": "MODEL (name shop.total, kind FULL);\nSELECT 1 AS id"})
    mergeplan("plan", *PLAN)
    mergeplan.write("models/total.sql", "MODEL (name shop.total, kind FULL);\nSELECT 2 AS id")
    refused = mergeplan("plan", "dev", *PLAN, "--max-seconds", "0")
    allowed = mergeplan("plan", "dev", *PLAN, "--max-seconds", "1000")

    (error,) = [line for line in refused.lines if line["event"] == "error"]
    assert (refused.code, error["kind"], refused.result["ok"]) == (4, "TooCostly", False)
    assert [line["event"] for line in refused.lines].count("batch") == 0
    (model,) = next(line for line in refused.lines if line["event"] == "plan")["plan"]["models"]
    assert model["estimate"]["basis"] == ["statistics", "batches"]
    backfill = allowed.result["backfill"]
    assert (allowed.code, backfill["batches"], backfill["seconds"] > 0) == (0, 1, True)
