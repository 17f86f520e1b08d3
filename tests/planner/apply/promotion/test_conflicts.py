"""A batch that meets the late commit of a killed run is written again, by who may write at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.apply.promotion.conflicts import TRIES, retry_on_conflict
from mergeplan.planner.errors import LeaseHeld, QueryError

CONFLICT = QueryError("Transaction conflict detected.", condition="DELTA_CONCURRENT_APPEND.WITHOUT_HINT")
ICEBERGS = QueryError("Found conflicting files that can contain records matching true: [a.parquet]")


def failing(errors: list[Exception]) -> Callable[[], int]:
    """A write that raises these one after the other, and then returns 7."""

    def write() -> int:
        if errors:
            raise errors.pop(0)
        return 7

    return write


@pytest.mark.parametrize("conflict", [CONFLICT, ICEBERGS], ids=["delta", "iceberg"])
def test_a_conflict_is_tried_again_a_few_times(conflict: QueryError) -> None:
    assert retry_on_conflict(failing([conflict] * (TRIES - 1)), lambda: None) == 7
    with pytest.raises(QueryError, match="conflict"):
        retry_on_conflict(failing([conflict] * TRIES), lambda: None)


def test_who_has_lost_the_lease_writes_no_more() -> None:
    def lose_lease() -> None:
        raise LeaseHeld("taken over")

    with pytest.raises(LeaseHeld):
        retry_on_conflict(failing([CONFLICT]), lose_lease)


def test_other_errors_are_not_repeated() -> None:
    errors: list[Exception] = [QueryError("no such column", condition="UNRESOLVED_COLUMN")]
    with pytest.raises(QueryError, match="no such column"):
        retry_on_conflict(failing(errors), lambda: None)
