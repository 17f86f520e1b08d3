"""After an edit that moves columns in a table, prod holds what a build of the edited project from nothing holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.plan.change import REBUILT
from mergeplan.planner.state.store import StateStore
from tests.conftest import FORMAT, empty
from tests.planner.daily import Daily

ROWS = ("1, 5, 10, date'2026-01-01'", "2, 6, 20, date'2026-01-01'", "10, 5, 1, date'2026-01-01'")
COLUMNS = "id int, name int, n int, at date"
BY_PLACE = {
    "unioned": "SELECT id, n FROM (SELECT * EXCEPT (name, at) FROM shop.m UNION ALL SELECT 7, 8)",
    "renamed": "SELECT x FROM (SELECT * FROM shop.m) AS q(x, y, z, w)",
    "aliased": "SELECT x, w FROM shop.m AS q(x, y, z, w)",
    "distinct_rows": "SELECT DISTINCT * FROM shop.m",
    "natural": "SELECT * FROM shop.m NATURAL JOIN (SELECT id, n FROM shop.m)",
    "grouped": "SELECT x, MAX(z) AS z FROM shop.m AS q(x, y, z, w) GROUP BY 1",
    "first": "SELECT * FROM shop.m ORDER BY 1 DESC, 2 DESC LIMIT 1",
    "excepted": "SELECT * EXCEPT (at) FROM shop.m EXCEPT SELECT id, name, n FROM shop.m WHERE id = 2",
    "below": "SELECT y FROM (SELECT * FROM shop.distinct_rows) AS q(x, y, z, w)",
    "lower_still": "SELECT CAST(y AS STRING) AS y FROM shop.below UNION ALL SELECT CAST(x AS STRING) FROM shop.renamed",
}
BY_NAME = {
    "by_name": "SELECT id, n FROM shop.m WHERE name = 5",
    "counted": "SELECT COUNT(*) AS c FROM shop.m",
}


def models(kind: str, queries: Mapping[str, str] = BY_PLACE | BY_NAME, rest: str = "") -> list[str]:
    first = f"MODEL (name shop.m, kind {kind});\nSELECT id, name, n, at{rest} FROM raw.items"
    return [first, *(f"MODEL (name shop.{name}, kind FULL);\n{query}" for name, query in queries.items())]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[StateStore]]:
    opened = [StateStore(f"sqlite:///{tmp_path}/state{number}.db") for number in range(2)]
    yield opened
    for store in opened:
        store.close()


def contents(daily: Daily, names: list[str]) -> dict[str, tuple[list[str], list[tuple[object, ...]]]]:
    """What prod holds of each model: its columns in order, and its rows."""
    return {
        name: (
            [column.name for column in daily.engine.schema(f"SELECT * FROM shop.{name}")],
            daily.rows(f"shop.{name}"),
        )
        for name in names
    }


def apply_and_compare(tmp_path: Path, engine: SparkEngine, stores: list[StateStore], *projects: list[str]) -> set[str]:
    """Apply projects one after the other, and compare prod with a build of the last one; the models that the last edit
    recomputed."""
    daily = Daily(tmp_path / "shop", engine, stores[0], COLUMNS)
    daily.has(*ROWS)
    for project in projects:
        outcome = daily.run("2026-01-02", *project)
        assert not outcome.failures
    names = [text.partition(",")[0].rpartition(".")[2] for text in projects[-1]]
    prod = contents(daily, names)
    empty(engine)

    fresh = Daily(tmp_path / "fresh", engine, stores[1], COLUMNS)
    fresh.has(*ROWS)
    assert not fresh.run("2026-01-02", *projects[-1]).failures
    assert contents(fresh, names) == prod
    assert outcome.plan
    return {change.name.rpartition(".")[2] for change in outcome.plan.changes if change.category in REBUILT}


@pytest.mark.prove
@pytest.mark.parametrize("forth", [True, pytest.param(False, marks=pytest.mark.prove)])
def test_a_partition_that_comes_or_goes_moves_columns_for_readers_by_place_alone(
    tmp_path: Path, engine: SparkEngine, stores: list[StateStore], forth: bool
) -> None:
    plain, cut = models("FULL"), models("FULL, partitioned_by (id)")

    rebuilt = apply_and_compare(tmp_path, engine, stores, *((plain, cut) if forth else (cut, plain)))

    assert not rebuilt & BY_NAME.keys()
    moved = {"renamed", "aliased", "unioned", "below", "lower_still"}
    assert moved <= rebuilt if not FORMAT else rebuilt == {"m"}  # Delta and Iceberg leave columns in their places


@pytest.mark.prove
def test_without_an_edit_of_the_layout_a_column_is_judged_by_its_place_in_the_table(
    tmp_path: Path, engine: SparkEngine, stores: list[StateStore]
) -> None:
    before = models("FULL, partitioned_by (id)")
    after = [before[0].replace("id, name", "id + 100 AS id, name"), *before[1:]]

    rebuilt = apply_and_compare(tmp_path, engine, stores, before, after)

    assert "aliased" in rebuilt  # its last column is `id`
    assert not rebuilt & {"renamed", "counted"}  # the first one is `name`


@pytest.mark.prove
def test_hidden_columns_are_nobodys(tmp_path: Path, engine: SparkEngine, stores: list[StateStore]) -> None:
    hidden = models("FULL, partitioned_by (bucket(2, id))")

    rebuilt = apply_and_compare(tmp_path, engine, stores, models("FULL"), hidden)

    assert rebuilt == {"m"}


@pytest.mark.parametrize("kind", ["INCREMENTAL_UNMANAGED", "FULL, partitioned_by (truncate(id, 2))"])
def test_hidden_columns_are_in_no_star_over_a_query_of_unknown_columns(
    tmp_path: Path, engine: SparkEngine, stores: list[StateStore], kind: str
) -> None:
    readers = {"everything": "SELECT * FROM shop.m", "through": "SELECT * FROM shop.seen"}
    texts = [f"MODEL (name shop.m, kind {kind});\nSELECT *, 1 AS one FROM RANGE(3)", *models("", readers)[1:]]
    daily = Daily(tmp_path / "shop", engine, stores[0], COLUMNS)

    outcome = daily.run("2026-01-02", *texts, "MODEL (name shop.seen, kind VIEW);\nSELECT * FROM shop.m")

    assert not outcome.failures
    shown = [engine.schema(f"SELECT * FROM shop.{name}") for name in ("m", "everything", "through")]
    assert [[column.name for column in columns] for columns in shown] == [["id", "one"]] * 3


def test_a_forward_only_column_stands_where_a_rebuilt_table_has_it(
    tmp_path: Path, engine: SparkEngine, stores: list[StateStore]
) -> None:
    kind = "INCREMENTAL_BY_UNIQUE_KEY (unique_key id, forward_only true), partitioned_by (name)"
    first = models(kind, {"distinct_rows": BY_PLACE["distinct_rows"]})
    wider = [first[0].replace("id, name", "id, n * 2 AS twice, name"), *first[1:]]
    daily = Daily(tmp_path / "shop", engine, stores[0], COLUMNS)
    daily.has(*ROWS)
    daily.run("2026-01-02", *first)

    outcome = daily.run("2026-01-02", *wider, "MODEL (name shop.r, kind FULL);\nSELECT * FROM shop.m")

    assert not outcome.failures
    assert [column.name for column in engine.schema("SELECT * FROM shop.r")] == ["id", "twice", "n", "at", "name"]
