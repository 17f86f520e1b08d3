"""What a table that is shown again lacks, as a terminal shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mergeplan.planner.apply.promotion.rollback import Behind
from mergeplan.planner.cli.texts.rollback_text import behind_text
from mergeplan.planner.model.incremental import TimeRange
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from tests.planner.builders import days, snapshot

BY_DAY = snapshot(
    Model(
        "s.a", Kind.INCREMENTAL_BY_TIME_RANGE, "m.sql", 1, "", "SELECT d FROM raw.t", by_time=TimeRange(time_column="d")
    )
)
LATE = Behind(BY_DAY, (days(1, 4),), (days(5, 8),), (days(5, 9),))
WHOLE = Behind(snapshot("s.f"), (days(1, 4),), (days(5, 8),), (days(1, 9),))


@pytest.mark.parametrize(
    ("behind", "text"),
    [
        (
            LATE,
            "lacks up-to-date rows of [2026-01-05 - 2026-01-08], which the later table holds; "
            "`mergeplan run prod` computes [2026-01-05 - 2026-01-09].",
        ),
        (
            replace(LATE, due=(days(7, 9),)),
            "lacks up-to-date rows of [2026-01-05 - 2026-01-08], which the later table holds; "
            "`mergeplan run prod` computes [2026-01-07 - 2026-01-09]; no run is due for [2026-01-05 - 2026-01-06].",
        ),
        (replace(LATE, lacks=()), "lacks time; `mergeplan run prod` computes [2026-01-05 - 2026-01-09]."),
        (WHOLE, "is as of 2026-01-04, the later table as of 2026-01-08; `mergeplan run prod` computes it again."),
        (replace(WHOLE, held=(), due=()), "has no rows that are up to date; no run is due."),
        (replace(WHOLE, lacks=()), "is late; `mergeplan run prod` computes it again."),
    ],
)
def test_what_is_lacking_and_what_a_run_computes(behind: Behind, text: str) -> None:
    assert behind_text("prod", behind) == text
