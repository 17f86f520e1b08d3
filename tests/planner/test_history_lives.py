"""SCD type 2 over random lives of rows: late, gone, back, changed; each version as docs/reference/kinds.md says.

MERGEPLAN_SEED says which lives.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.planner.daily import Daily

pytestmark = pytest.mark.prove

SEED = int(os.environ.get("MERGEPLAN_SEED", "6"))
EVER = "1970-01-01 00:00:00"
Cells = tuple[int | None, str | None]  # value, time of its update
Rows = Mapping[int, Cells]


@dataclass(frozen=True)
class Version:
    """A row, and from when to when it was in force."""

    key: int
    value: int | None
    at: str | None
    begins: str
    ends: str | None = None


@dataclass(frozen=True)
class Rules:
    """What a kind's settings say."""

    by_time: bool
    deletes: bool = False
    begins_when_seen: bool = False

    def run_versions(self, held: list[Version], rows: Rows, now: str) -> list[Version]:
        """The versions after a run."""
        in_force = {version.key: version for version in held if version.ends is None}
        done = [self._end_version(version, rows, now) if version.ends is None else version for version in held]
        for key, (value, at) in rows.items():
            version = in_force.get(key)
            if version is None or self._is_changed(version, value, at):
                done.append(Version(key, value, at, self._begin(held, version, key, at, now)))
        return done

    def _is_changed(self, version: Version, value: int | None, at: str | None) -> bool:
        return (at or "") > (version.at or "") if self.by_time else value != version.value

    def _end_version(self, version: Version, rows: Rows, now: str) -> Version:
        if version.key not in rows:
            return replace(version, ends=max(now, version.begins)) if self.deletes else version
        value, at = rows[version.key]
        ends = max((at or EVER) if self.by_time else now, version.begins)
        return replace(version, ends=ends) if self._is_changed(version, value, at) else version

    def _begin(self, held: list[Version], in_force: Version | None, key: int, at: str | None, now: str) -> str:
        noticed = (at or EVER) if self.by_time else now
        if in_force is not None:
            return max(noticed, in_force.begins)
        ends = [version.ends for version in held if version.key == key and version.ends]
        if self.by_time and ends:
            return max([noticed, *ends])
        first = self.by_time or not held
        return EVER if first and not self.begins_when_seen else noticed


BY_TIME, BY_COLUMN = "SCD_TYPE_2_BY_TIME (unique_key id, updated_at_name at", "SCD_TYPE_2_BY_COLUMN (unique_key id"
KINDS: dict[str, tuple[str, Rules]] = {
    "by_time": (f"{BY_TIME})", Rules(by_time=True)),
    "deletes": (f"{BY_TIME}, invalidate_hard_deletes true)", Rules(by_time=True, deletes=True)),
    "since_update": (
        f"{BY_TIME}, invalidate_hard_deletes true, updated_at_as_valid_from true)",
        Rules(by_time=True, deletes=True, begins_when_seen=True),
    ),
    "by_column": (f"{BY_COLUMN}, columns [v], invalidate_hard_deletes true)", Rules(by_time=False, deletes=True)),
    "since_run": (
        f"{BY_COLUMN}, columns [v], execution_time_as_valid_from true)", Rules(by_time=False, begins_when_seen=True),
    ),
}  # fmt: skip


@pytest.fixture
def daily(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Iterator[Daily]:
    folder = tmp_path_factory.mktemp("histories")
    store = StateStore(f"sqlite:///{folder}/state.db")
    yield Daily(folder / "shop", engine, store, "id int, v int, at timestamp")
    store.close()


def next_day(chance: random.Random, day: int, rows: Rows) -> dict[int, Cells]:
    """The rows of a day: some of those of before gone, some changed, some back, with updates of up to four days ago or
    of no known time."""

    def row() -> Cells:
        at = f"2026-01-{chance.randint(max(1, day - 4), day):02} {chance.choice((0, 3)):02}:00:00"
        return chance.choice((1, 2, None)), chance.choice((at, at, at, None))

    alive = {key: value for key, value in rows.items() if chance.random() > 0.4}
    return alive | {key: row() for key in range(1, 41) if chance.random() < 0.4}


def test_every_version_is_the_one_that_the_rules_say(daily: Daily) -> None:
    chance, rows = random.Random(SEED), dict[int, Cells]()  # noqa: S311  # no secret
    models = [
        f"MODEL (name shop.{name}, kind {kind});\nSELECT id, v, at FROM raw.items" for name, (kind, _) in KINDS.items()
    ]
    wanted: dict[str, list[Version]] = {name: [] for name in KINDS}
    for day in range(4, 10):
        rows = next_day(chance, day, rows)
        daily.has(*(f"{key}, {_sql(v)}, {_sql(at)}" for key, (v, at) in rows.items()))
        assert not daily.run(f"2026-01-{day:02}", *models).failures
        for name, (_, rules) in KINDS.items():
            wanted[name] = rules.run_versions(wanted[name], rows, f"2026-01-{day:02} 05:00:00")

    cells = "id, v, string(at), string(valid_from), string(valid_to)"
    for name, versions in wanted.items():
        held = daily.engine.fetch(f"SELECT {cells} FROM shop.{name} ORDER BY ALL").rows
        says = [(version.key, version.value, version.at, version.begins, version.ends) for version in versions]
        assert sorted(held, key=repr) == sorted(says, key=repr), name


def _sql(value: object) -> str:
    return "NULL" if value is None else repr(value)
