"""What a plan costs, in a few words: nothing is said of what nobody knows."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from mergeplan.planner.apply.backfill.work import Failure, Filled
from mergeplan.planner.apply.events import BatchDone
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.cli.terminal import closing_text
from mergeplan.planner.cli.texts.plan_text import batch_text
from mergeplan.planner.errors import QueryError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.session.wording import cost_text


@pytest.mark.parametrize(
    ("estimates", "expected"),
    [
        ([Estimate(1_288_490_189, 7, 3.2)], "~1.2 GiB read, ~3 s"),
        ([Estimate(900, None, None)], "~900 B read"),
        ([Estimate(None, 5, 0.01)], "~1 s"),
        ([Estimate()], ""),
        ([Estimate(0, None, None), Estimate()], ""),
        ([Estimate(2048, 1, 200), Estimate(1024, 1, None)], "~3.0 KiB read, at least 3 min"),
        ([Estimate(2048, 1, 9900), Estimate(None, 1, 100)], "at least 2.0 KiB read, ~2.8 h"),
    ],
)  # fmt: skip
def test_a_cost_is_told_as_far_as_it_is_known(estimates: list[Estimate], expected: str) -> None:
    assert cost_text(estimates) == expected


MAY = Interval(datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))
LONG = "analytics__mergeplan_pr_12.incremental_model_of_orders_by_day"


@pytest.mark.parametrize("name", ["shop.a", "sqlmesh_example.incremental_model", LONG])
def test_a_batch_fits_in_the_columns_of_the_terminal(name: str) -> None:
    batch = BatchDone(name, 12, 30, MAY, rows=5, seconds=12.345, audits=2)

    narrow, wide = (str(batch_text(batch, None, 30, columns)) for columns in (80, 200))

    assert len(narrow) <= 80
    assert re.search(r"\[insert 2026-05-01 - 2026-05-31, audits ✔2\] +12.35s$", narrow)
    assert name in wide
    assert name[-12:] in narrow


FAILED = Filled(5, 2, failures=(Failure("b", QueryError("no")),), skipped=("c", "d"))


@pytest.mark.parametrize(
    ("filled", "computed", "text"),
    [
        (Filled(1200, 4), ["a", "b"], "Computed 2 models in 4 batches: 1,200 rows, 11 s."),
        (Filled(1, 1), ["a"], "Computed 1 model in 1 batch: 1 row, 11 s."),
        (Filled(), [], "Done in 11 s: no table was computed."),
        (FAILED, ["a"], "Computed 1 model in 2 batches: 5 rows, 11 s; 1 model failed; 2 models not computed."),
        (Filled(failures=FAILED.failures), [], "Done in 11 s: 1 model failed."),
    ],
)
def test_the_last_line_says_what_was_computed_and_how_long_it_took(
    filled: Filled, computed: list[str], text: str
) -> None:
    assert closing_text(Outcome((), filled, None), computed, 11.2) == text
