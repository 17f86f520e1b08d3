"""SCD type 2, run as SELECTs on a real Spark: the versions of rows after each run, as SQLMesh's documents show them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.model import Column, History
from mergeplan.planner.tables.merge.relations import MergeBatch
from mergeplan.planner.tables.merge.scd_type_2 import versions
from tests.sampling import prove_rest

COLUMNS = (Column("id", "int"), Column("name", "string"), Column("at", "timestamp"))
MENU = (
    "(1, 'Sandwich', '2020-01-01'), (2, 'Burger', '2020-01-01'), (3, 'Fries', '2020-01-01')",
    "(1, 'Club', '2020-01-02'), (3, 'Fries', '2020-01-01'), (4, 'Milkshake', '2020-01-02')",
    "(1, 'Club', '2020-01-02'), (2, 'Burger', '{back}'), (3, 'Chips', '2020-01-01'), (4, 'Milkshake', '2020-01-02')",
)
BY_TIME = History(updated_at="at", invalidates_deleted=True)
BY_COLUMN = History(columns=("name",), invalidates_deleted=True)


def versions_after(engine: SparkEngine, history: History, *menus: str) -> dict[str, list[tuple[str, str]]]:
    """Name -> the times in which it was in force, when these menus were seen on the days from 2020-01-01 on."""
    held = ""
    for day, menu in enumerate(menus, start=1):
        query = f"SELECT id, name, CAST(at AS timestamp) AS at FROM VALUES {menu} AS t(id, name, at)"
        sql = versions(
            MergeBatch("s.menu", query, held, COLUMNS, ("id",)), history, datetime(2020, 1, day, 11, tzinfo=UTC)
        )
        held = f"menu_{day}"
        engine.fetch(f"CREATE OR REPLACE TEMP VIEW {held} AS {sql}")
    periods: dict[str, list[tuple[str, str]]] = {}
    for name, start, end in engine.fetch(f"SELECT name, valid_from, valid_to FROM {held} ORDER BY id, 2").rows:
        periods.setdefault(str(name), []).append((day_text(start), day_text(end)))
    return periods


def day_text(moment: object) -> str:
    """`2 11h`: a day of January 2020 and an hour."""
    if not isinstance(moment, datetime):
        return "-"
    return "ever" if moment.year == 1970 else f"{moment.day} {moment.hour}h"


@pytest.mark.parametrize(("back", "begins"), prove_rest([("2020-01-01", "2 11h"), ("2020-01-03", "3 0h")]))
def test_by_time_a_version_lasts_from_update_to_update(back: str, begins: str, shared_engine: SparkEngine) -> None:
    periods = versions_after(shared_engine, BY_TIME, *(menu.format(back=back) for menu in MENU))

    assert periods == {
        "Sandwich": [("ever", "2 0h")],
        "Club": [("2 0h", "-")],
        "Burger": [("ever", "2 11h"), (begins, "-")],
        "Fries": [("ever", "-")],  # changed without a new time: it is not looked at
        "Milkshake": [("ever", "-")],
    }


@pytest.mark.prove
def test_a_version_never_ends_before_it_began(shared_engine: SparkEngine) -> None:
    """A row that came back is valid since it went, and then says that it was updated before that."""
    menus = ["(1, 'Club', '2020-01-01')", "(2, 'Fries', '2020-01-09')", "(1, 'Club', '2020-01-01')"]
    periods = versions_after(shared_engine, BY_TIME, *menus, "(1, 'Toast', '2020-01-02')")

    assert periods == {
        "Club": [("ever", "2 11h"), ("2 11h", "2 11h")],
        "Toast": [("2 11h", "-")],
        "Fries": [("ever", "3 11h")],
    }


def test_by_column_a_version_lasts_from_run_to_run(shared_engine: SparkEngine) -> None:
    periods = versions_after(shared_engine, BY_COLUMN, *(menu.format(back="2020-01-01") for menu in MENU))

    assert periods == {
        "Sandwich": [("ever", "2 11h")],
        "Club": [("2 11h", "-")],
        "Burger": [("ever", "2 11h"), ("3 11h", "-")],
        "Fries": [("ever", "3 11h")],
        "Chips": [("3 11h", "-")],
        "Milkshake": [("2 11h", "-")],
    }


def test_a_deleted_row_stays_in_force_unless_deletes_count(shared_engine: SparkEngine) -> None:
    periods = versions_after(
        shared_engine, History(updated_at="at"), *(menu.format(back="2020-01-03") for menu in MENU)
    )

    assert periods["Burger"] == [("ever", "3 0h"), ("3 0h", "-")]


@pytest.mark.prove
def test_new_rows_may_be_valid_since_they_were_seen(shared_engine: SparkEngine) -> None:
    by_time = versions_after(shared_engine, History(updated_at="at", begins_when_seen=True), *MENU[:2])
    by_column = versions_after(shared_engine, History(begins_when_seen=True), *MENU[:2])

    assert (by_time["Burger"], by_time["Milkshake"]) == ([("1 0h", "-")], [("2 0h", "-")])
    assert (by_column["Burger"], by_column["Milkshake"]) == ([("1 11h", "-")], [("2 11h", "-")])


@pytest.mark.prove
def test_null_is_before_every_time(shared_engine: SparkEngine) -> None:
    """A row that is first updated after it was loaded had no time until then."""
    menus = (
        "(1, 'a', NULL), (2, 'b', NULL), (3, 'c', '2020-01-01')",
        "(1, 'A', '2020-01-02'), (2, 'B', NULL), (3, 'C', NULL), (4, 'd', NULL)",
    )
    held = {"a": [("ever", "2 0h")], "A": [("2 0h", "-")], "b": [("ever", "-")], "d": [("ever", "-")]}

    assert versions_after(shared_engine, History(updated_at="at"), *menus) == held | {"c": [("ever", "-")]}
    since_update = versions_after(shared_engine, History(updated_at="at", begins_when_seen=True), *menus)
    assert since_update == held | {"c": [("1 0h", "-")]}


@pytest.mark.prove
def test_every_column_may_be_compared_and_null_is_a_value(shared_engine: SparkEngine) -> None:
    periods = versions_after(
        shared_engine, History(), "(1, 'a', NULL), (2, NULL, NULL)", "(1, 'a', '2020-01-01'), (2, NULL, NULL)"
    )

    assert periods == {"a": [("ever", "2 11h"), ("2 11h", "-")], "None": [("ever", "-")]}
