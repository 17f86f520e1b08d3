"""Small models, snapshots and environments made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mergeplan.planner.fingerprint import Fingerprint, digest
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot

DAY = timedelta(days=1)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def days(first: int, last: int) -> Interval:
    """January 2026 from one day up to and with another."""
    return Interval(FIRST + (first - 1) * DAY, FIRST + last * DAY)


def snapshot(model: Model | str, version: str = "v1", columns: tuple[str, ...] | None = ("id",)) -> Snapshot:
    """A snapshot of a model, or of a full table of that name."""
    if isinstance(model, str):
        model = Model(model, Kind.FULL, f"models/{model}.sql", 1, "", "SELECT 1 AS id")
    return Snapshot(model, Fingerprint(digest(model.sql), "m", version), version, columns)


def environment(name: str, *snapshots: Snapshot, revision: int = 0) -> Environment:
    """An environment that shows all of these."""
    models = {snapshot.name: snapshot for snapshot in snapshots}
    return Environment(name, models, frozenset(models), revision)
