"""Snapshots of dbt, run as SELECTs on a real Spark; `test_real_snapshots.py` compares them with what dbt makes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import md5

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column, DbtVersions, History
from mergeplan.planner.tables.merge.dbt_snapshot import dbt_versions
from mergeplan.planner.tables.merge.relations import MergeBatch

COLUMNS = (Column("id", "int"), Column("name", "string"), Column("at", "timestamp"))
BY_TIME = History("dbt_valid_from", "dbt_valid_to", updated_at="at", dbt=DbtVersions("at", is_deleted="dbt_is_deleted"))
BY_CHECK = History("dbt_valid_from", "dbt_valid_to", columns=("name",), invalidates_deleted=True, dbt=DbtVersions())


def versions_after(engine: SparkEngine, history: History, *days: str) -> list[tuple[object, ...]]:
    """The versions in the order of their begin, when the query returned these rows at 11 o'clock on days from the
    1st on: name, the days of begin and end, and whether it is a deleted key's."""
    held = ""
    for day, listed in enumerate(days, start=1):
        query = f"SELECT id, name, CAST(at AS timestamp) AS at FROM VALUES {listed} AS t(id, name, at)"
        batch = MergeBatch("s.people", query, held, COLUMNS, ("id",))
        assert history.dbt
        sql = dbt_versions(batch, history, history.dbt, datetime(2026, 1, day, 11, tzinfo=UTC))
        held = f"people_{day}"
        engine.fetch(f"CREATE OR REPLACE TEMP VIEW {held} AS {sql}")
    marks = "dbt_is_deleted" if history.dbt and history.dbt.is_deleted else "''"
    return list(
        engine.fetch(
            f"SELECT name, day(dbt_valid_from), day(dbt_valid_to), {marks} FROM {held} ORDER BY id, dbt_valid_from"
        ).rows
    )


@pytest.mark.prove
def test_a_deleted_key_has_a_version_without_values_as_in_dbt_spark(shared_engine: SparkEngine) -> None:
    one, other = "(1, 'a', '2026-01-01')", "(2, 'b', '2026-01-01')"

    assert versions_after(shared_engine, BY_TIME, f"{one}, {other}", one, f"{one}, (2, 'c', '2026-01-03')") == [
        (None, 2, None, "True"),
        ("a", 1, None, "False"),
        ("b", 1, 2, "False"),
        ("c", 3, None, "False"),
    ]


@pytest.mark.prove
def test_a_key_that_is_back_as_it_was_begins_no_version(shared_engine: SparkEngine) -> None:
    history = replace(BY_TIME, invalidates_deleted=True, dbt=DbtVersions("at"))
    one, other = "(1, 'a', '2026-01-01')", "(2, 'b', '2026-01-01')"

    assert versions_after(shared_engine, history, f"{one}, {other}", one, f"{one}, {other}")[1:] == [("b", 1, 2, "")]


def test_a_checked_row_changes_at_the_time_of_the_run_and_its_id_says_so(shared_engine: SparkEngine) -> None:
    assert versions_after(shared_engine, BY_CHECK, "(1, 'a', NULL)", "(1, NULL, NULL)") == [
        ("a", 1, 2, ""),
        (None, 2, None, ""),
    ]
    ids = shared_engine.fetch("SELECT dbt_scd_id FROM people_2 ORDER BY dbt_valid_from").rows
    assert ids[1] == (md5(b"1|2026-01-02 11:00:00", usedforsecurity=False).hexdigest(),)


@pytest.mark.prove
def test_a_change_without_a_newer_time_is_an_error_as_in_dbt(shared_engine: SparkEngine) -> None:
    history = replace(BY_CHECK, dbt=DbtVersions("at"))

    with pytest.raises(QueryError, match="`at` is not another one"):
        versions_after(shared_engine, history, "(1, 'a', '2026-01-01')", "(1, 'b', '2026-01-01')")
