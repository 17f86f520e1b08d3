"""How long a Delta table keeps its old versions, and whether a VACUUM may remove any of them now.

Delta 4.3 ignores `VACUUM ... RETAIN`: what counts is `delta.deletedFileRetentionDuration` of the table. Files
that were removed longer ago are forgotten by the log's checkpoints, whatever the property says later: a version that is
still needed is safe only while the files that it lost were removed within the last week, Delta's own minimum.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

RETENTION, LOG, OURS = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration", "mergeplan.retention"
WEEK = timedelta(days=7)  # Delta's default, and the shortest that it calls safe
LOG_DEFAULT = timedelta(days=30)
LONGEST = timedelta(days=36_500)
MARGIN = timedelta(days=1)  # between the clocks of writers, of the storage and ours
HOUR = timedelta(hours=1)
_UNITS = {"minute": timedelta(minutes=1), "hour": HOUR, "day": timedelta(days=1), "week": WEEK}
_INTERVAL = re.compile(r"(?:interval\s+)?(\d{1,7})\s+(minute|hour|day|week)s?")


@dataclass(frozen=True)
class Commit:
    version: int
    at: datetime
    operation: str


@dataclass(frozen=True)
class Retention:
    """The time for which a table keeps what its versions lost, and the properties that it lacks for that."""

    keep: timedelta
    lacks: tuple[tuple[str, str], ...] = ()

    @property
    def hours(self) -> int:
        return -(-self.keep // HOUR)


def retention_policy(properties: Mapping[str, str], keep: timedelta) -> Retention | None:
    """Return the longer of `keep` and the table's own retention; `keep` if we set the table's properties.

    Return None if the properties cannot be read or name less than a week: the log may have forgotten too much.
    """
    table_age, log_age = (
        parse_duration(properties.get(RETENTION), WEEK),
        parse_duration(properties.get(LOG), LOG_DEFAULT),
    )
    if table_age is None or log_age is None or table_age < WEEK:
        return None
    is_ours = RETENTION not in properties or properties[RETENTION] == properties.get(OURS)
    new_age = keep if is_ours else max(table_age, keep)
    lacks = ((RETENTION, _format_interval(new_age)), (OURS, _format_interval(new_age))) if new_age != table_age else ()
    if log_age < new_age + WEEK:  # what is over must still be in the log when the janitor comes
        lacks = (*lacks, (LOG, _format_interval(new_age + WEEK)))
    return Retention(new_age, lacks)


def parse_duration(text: str | None, default: timedelta) -> timedelta | None:
    """Return the duration of a text like `interval 7 days`, at most a hundred years; None for any other text."""
    if text is None:
        return default
    match = _INTERVAL.fullmatch(" ".join(text.lower().split()))
    return min(int(match[1]) * _UNITS[match[2]], LONGEST) if match else None


def _format_interval(length: timedelta) -> str:
    return f"interval {-(-length // HOUR)} hours"


def is_pinned(history: Iterable[Commit], needed_version: int | None, now: datetime) -> bool:
    """Return True if a needed version lost files longer ago than a VACUUM is sure to respect."""
    return needed_version is not None and any(
        commit.version > needed_version and commit.at <= now - WEEK + MARGIN for commit in history
    )


def is_due(history: Iterable[Commit], keep: timedelta, now: datetime) -> bool:
    """Return True if a version was replaced longer than `keep` ago, and no VACUUM ran since with these properties."""
    history = tuple(history)
    written = [commit for commit in history if not commit.operation.startswith("VACUUM")]
    ended = max((commit.at for commit in history if commit.operation == "VACUUM END"), default=None)
    over = [commit.at + keep for commit in written if commit.version > 0 and commit.at + keep <= now]
    if ended is None or not over:
        return bool(over)
    return max(over) >= ended or any(
        commit.at >= ended for commit in written if commit.operation == "SET TBLPROPERTIES"
    )
