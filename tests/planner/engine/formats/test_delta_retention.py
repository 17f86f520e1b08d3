"""How long a Delta table keeps old versions, and when a VACUUM may come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeplan.planner.engine.formats.delta_retention import (
    LOG,
    OURS,
    RETENTION,
    Commit,
    is_due,
    is_pinned,
    retention_policy,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
WEEK = 7 * DAY


def commits(*ages: int, operation: str = "WRITE") -> list[Commit]:
    """Commits of so many days ago, the newest of them first."""
    return [Commit(len(ages) - 1 - n, NOW - age * DAY, operation) for n, age in enumerate(ages)]


@pytest.mark.parametrize(
    ("properties", "keep", "hours", "lacks"),
    [
        ({}, WEEK, 168, ()),
        ({}, 10 * DAY, 240, ((RETENTION, "interval 240 hours"), (OURS, "interval 240 hours"))),
        ({RETENTION: "interval 2 weeks"}, WEEK, 336, ()),  # somebody else's: the longer one counts
        ({RETENTION: "interval 2 weeks", OURS: "interval 1 week"}, WEEK, 336, ()),
        ({RETENTION: "interval 240 hours", OURS: "interval 240 hours"}, WEEK, 168,
         ((RETENTION, "interval 168 hours"), (OURS, "interval 168 hours"))),  # ours, and shortened since
        ({}, 60 * DAY, 1440,
         ((RETENTION, "interval 1440 hours"), (OURS, "interval 1440 hours"), (LOG, "interval 1608 hours"))),
        ({}, 30 * DAY, 720,
         ((RETENTION, "interval 720 hours"), (OURS, "interval 720 hours"), (LOG, "interval 888 hours"))),
        ({LOG: "interval 90 days", RETENTION: "interval 9 days"}, 60 * DAY, 1440,
         ((RETENTION, "interval 1440 hours"), (OURS, "interval 1440 hours"))),
    ],
)  # fmt: skip
def test_the_longer_retention_counts_unless_the_tables_own_is_ours(
    properties: dict[str, str], keep: timedelta, hours: int, lacks: tuple[tuple[str, str], ...]
) -> None:
    policy = retention_policy(properties, keep)

    assert policy is not None
    assert (policy.hours, policy.lacks) == (hours, lacks)


def test_a_retention_of_any_length_can_be_reckoned_with() -> None:
    policy = retention_policy({RETENTION: "interval 9999999 weeks"}, WEEK)

    assert policy is not None
    assert not is_due(commits(3, 60), policy.keep, NOW)


@pytest.mark.parametrize("text", ["interval 1 month", "P7D", "", "interval 2 days", "interval -9 days", "0"])
def test_a_retention_that_is_not_understood_or_too_short_means_that_nothing_is_removed(text: str) -> None:
    assert retention_policy({RETENTION: text}, WEEK) is None


def test_a_version_is_pinned_once_what_it_lost_is_about_a_week_old() -> None:
    history = commits(2, 30, 40)

    assert not is_pinned(history, None, NOW)
    assert not is_pinned(history, 1, NOW)  # of thirty days ago, but it lost its files two days ago
    assert is_pinned(history, 0, NOW)
    assert is_pinned(commits(6, 30), 0, NOW)


def test_a_vacuum_is_due_when_a_version_has_expired_since_the_last_one() -> None:
    assert not is_due(commits(30), WEEK, NOW)  # it was created, and that is all
    assert not is_due(commits(3, 30), WEEK, NOW)
    assert is_due(commits(8, 30), WEEK, NOW)
    vacuumed = [Commit(9, NOW - DAY / 2, "VACUUM END")]
    assert not is_due(vacuumed + commits(8, 30), WEEK, NOW)
    assert is_due([*vacuumed, Commit(7, NOW - WEEK - DAY / 4, "WRITE"), *commits(8, 30)], WEEK, NOW)
    assert is_due([Commit(10, NOW, "SET TBLPROPERTIES"), *vacuumed, *commits(8, 30)], WEEK, NOW)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.integers(0, 11), st.integers(7, 60))
def test_a_vacuum_that_may_come_leaves_the_files_of_the_version_that_is_needed(
    ages: list[int], needed: int, keep: int
) -> None:
    """Files of a version go at the earliest with the commit after it; a VACUUM takes those gone for longer than the
    retention, which is a week at least."""
    history = commits(*sorted(ages))
    policy = retention_policy({}, keep * DAY)

    if policy and not is_pinned(history, needed, NOW):
        lost = [commit.at for commit in history if commit.version > needed]
        assert all(at > NOW - policy.keep for at in lost)
