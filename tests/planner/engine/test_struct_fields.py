"""Fields of structs on their way into a table go by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.struct_fields import place_fields
from mergeplan.planner.model.model import Column
from mergeplan.planner.state.store import StateStore
from tests.planner.daily import Daily

KINDS = {"a": "INCREMENTAL_BY_TIME_RANGE (time_column at", "b": "INCREMENTAL_BY_UNIQUE_KEY (unique_key id"}
WHERE = "FROM raw.items WHERE at BETWEEN @start_date AND @end_date"


def models(fields: str) -> list[str]:
    policy = ", forward_only true, on_destructive_change ignore"
    heads = (f"MODEL (name shop.{name}, kind {kind}{policy}));\n" for name, kind in KINDS.items())
    return [f"{head}SELECT id, at, named_struct({fields}) AS s {WHERE}" for head in heads]


def test_a_struct_in_another_order_is_written_by_the_names_of_its_fields(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    daily = Daily(tmp_path / "shop", engine, store)
    daily.has("1, 'a', date'2026-01-01'", "2, 'b', date'2026-01-02'")
    daily.run("2026-01-02", *models("'n', 1, 'bc', array(named_struct('x', 2, 'y', 3)), 'gone', 4"))
    moved = models("'bc', array(named_struct('new', 0, 'y', 6, 'x', 5), NULL), 'N', 4, 'new', 9")
    assert daily.run("2026-01-02", *moved).filled.batches == 0

    assert not daily.run("2026-01-03", *moved).failures

    for name in KINDS:
        assert daily.rows(f"shop.{name}", "id, s.n, s.bc[0].x, s.bc[0].y, s.gone, size(s.bc)") == [
            (1, 1, 2, 3, 4, 1),
            (2, 4, 5, 6, None, 2),
        ]


def test_structs_that_are_keys_of_a_map_go_by_their_names_too(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    daily = Daily(tmp_path / "shop", engine, store)
    daily.has("1, 'a', date'2026-01-01'")
    model = (
        "MODEL (name shop.a, kind INCREMENTAL_BY_TIME_RANGE (time_column at, forward_only true, "
        f"on_destructive_change ignore));\nSELECT id, at, map(named_struct(%s), map(named_struct(%s), id)) AS m {WHERE}"
    )
    daily.run("2026-01-02", model % ("'x', 1, 'y', 2", "'u', 3, 'v', 4"))
    daily.has("1, 'a', date'2026-01-01'", "2, 'b', date'2026-01-02'")
    moved = model % ("'y', 2, 'x', 1", "'v', 4, 'u', 3")
    daily.run("2026-01-02", moved)

    assert not daily.run("2026-01-03", moved).failures

    keys = "id, map_keys(m)[0].x, map_keys(map_values(m)[0])[0].u"
    assert daily.rows("shop.a", keys) == [(1, 1, 3), (2, 1, 3)]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("struct<a:int,b:int>", "struct<A:int,b:bigint>"),
        ("struct<x:int,y:int>", "struct<a:int,b:int>"),
        ("struct<b:void,a:int>", "struct<a:int,b:int>"),
        ("struct<b:int,a:int>", "string"),
    ],
)
def test_a_query_stays_as_it_is_where_fields_have_their_places_or_other_names(source: str, target: str) -> None:
    query = "SELECT s FROM shop.t"

    assert place_fields(query, [Column("s", source)], [Column("s", target)], ignores=False) == query
