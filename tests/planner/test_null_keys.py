"""NULL in a key, kind by kind: what a table holds after each of several loads of the same rows, and of others.

`make prove-lakehouse` runs it on each table format.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.conftest import empty
from tests.planner.daily import Daily

COLUMNS = "id int, region string, name string, at date"
SAME = ("1, 'eu', 'a', date'2026-01-01'", "2, NULL, 'x', date'2026-01-01'", "NULL, NULL, 'n', date'2026-01-01'")
BY_TIME = "SCD_TYPE_2_BY_TIME (unique_key (id, region), updated_at_name at, invalidate_hard_deletes {deletes})"
BY_COLUMN = "SCD_TYPE_2_BY_COLUMN (unique_key (id, region), columns [name], invalidate_hard_deletes {deletes})"
HISTORIES = pytest.mark.parametrize("kind", [BY_TIME, pytest.param(BY_COLUMN, marks=pytest.mark.prove)])


@pytest.fixture
def daily(tmp_path: Path, shared_engine: SparkEngine, store: StateStore) -> Iterator[Daily]:
    """An empty project over a table of regions."""
    yield Daily(tmp_path / "shop", shared_engine, store, COLUMNS)
    empty(shared_engine)


def history(kind: str, deletes: str = "false") -> str:
    return f"MODEL (name shop.t, kind {kind.format(deletes=deletes)});\nSELECT id, region, name, at FROM raw.items"


def load(daily: Daily, day: int, model: str, *rows: str) -> list[tuple[object, ...]]:
    """Load these rows on a day of January; what the table then holds."""
    daily.has(*rows)
    assert not daily.run(f"2026-01-{day:02}", model).failures
    return daily.rows()


@HISTORIES
@pytest.mark.parametrize("deletes", [pytest.param("false", marks=pytest.mark.prove), "true"])
def test_a_row_without_a_region_has_one_history(kind: str, deletes: str, daily: Daily) -> None:
    first = load(daily, 2, history(kind, deletes), *SAME)
    later = [load(daily, day, history(kind, deletes), *SAME) for day in (3, 4, 5)]

    assert (len(first), later) == (3, [first] * 3)


@pytest.mark.prove
@HISTORIES
def test_a_null_key_changes_goes_and_comes_back_as_any_other(kind: str, daily: Daily) -> None:
    model = history(kind, "true")
    load(daily, 2, model, "1, 'eu', 'a', date'2026-01-01'", "2, NULL, 'a', date'2026-01-01'")
    load(daily, 3, model, "1, 'eu', 'b', date'2026-01-03'", "2, NULL, 'b', date'2026-01-03'")
    load(daily, 4, model, "9, 'eu', 'z', date'2026-01-04'")
    held = load(daily, 5, model, "1, 'eu', 'c', date'2026-01-05'", "2, NULL, 'c', date'2026-01-05'")

    of_key, of_null = ([row[2:] for row in held if row[0] == key] for key in (1, 2))
    assert (len(of_key), of_null) == (3, of_key)


@pytest.mark.prove
@HISTORIES
def test_versions_that_an_earlier_release_repeated_end_where_the_next_begins(kind: str, daily: Daily) -> None:
    load(daily, 2, history(kind), *SAME)
    table = daily.store.environments.get("prod").snapshots["shop.t"].table
    for day in ("02", "03"):
        row = f"2, NULL, 'x', date'2026-01-01', timestamp'2026-01-{day} 05:00:00', CAST(NULL AS timestamp)"
        daily.engine.fetch(f"INSERT INTO {table} VALUES ({row})")
    held = load(daily, 4, history(kind), *SAME)

    assert [row[4:] for row in held if row[0] == 2] == [
        ("ever", "01-02 05"),
        ("01-02 05", "01-03 05"),
        ("01-03 05", None),
    ]
    assert load(daily, 5, history(kind), *SAME) == held


@HISTORIES
def test_two_rows_of_one_null_key_are_an_error(kind: str, daily: Daily) -> None:
    daily.has(*SAME, "2, NULL, 'y', date'2026-01-01'")
    (failure,) = daily.run("2026-01-02", history(kind)).failures

    assert "more than one row for the key (id = 2, region = NULL)" in str(failure)


def test_by_unique_key_null_matches_nothing_unless_the_model_says_so(daily: Daily) -> None:
    query = "SELECT id, region, name, at FROM raw.items"
    for day in (2, 3):
        daily.has(*SAME)
        models = (
            f"MODEL (name shop.{name}, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (id, region){more}));\n{query}"
            for name, more in (("t", ""), ("safe", ", null_safe_key true"))
        )
        assert not daily.run(f"2026-01-{day:02}", *models).failures

    assert [len(daily.rows(f"shop.{name}")) for name in ("t", "safe")] == [5, 3]
