"""What a plan costs, in a few words: nothing is said of what nobody knows."""

from __future__ import annotations

import pytest

from planner.plan.costs import Estimate
from planner.session.wording import cost_text


@pytest.mark.parametrize(
    ("estimates", "expected"),
    [
        ([Estimate(1_288_490_189, 7, 3.2)], "~1.2 GiB read, ~3 s"),
        ([Estimate(900, None, None)], "~900 B read"),
        ([Estimate(None, 5, 0.01)], "~1 s"),
        ([Estimate()], ""),
        ([Estimate(0, None, None), Estimate()], ""),
        ([Estimate(2048, 1, 200), Estimate(1024, 1, None)], "~3.0 KiB read, at least 3 min"),
        ([Estimate(2048, 1, 9900), Estimate(None, 1, 100)], "at least 2.0 KiB read, ~3 h"),
    ],
)  # fmt: skip
def test_a_cost_is_told_as_far_as_it_is_known(estimates: list[Estimate], expected: str) -> None:
    assert cost_text(estimates) == expected
