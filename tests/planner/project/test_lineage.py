"""Lineage over a project: values, rows and what cannot be told are followed apart, up and down."""

from __future__ import annotations

from typing import Any

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import History, Seed
from mergeplan.planner.project.lineage import Lineage, lineage_of
from tests.planner.building import external, model, project
from tests.planner.casebook import EDITED, Case, cases

RAW = external("raw.orders", "id amount day status")
CLEAN = model("s.clean", "SELECT id, amount * 2 AS price, day FROM raw.orders WHERE status = 'paid'")
SUMS = model("s.sums", "SELECT day, SUM(price) AS total FROM s.clean GROUP BY day")
ALTERED = [case for case in cases() if case.columns and case.columns[1] and EDITED in case.after]


def edge_lines(lineage: Lineage) -> list[str]:
    """`from -> to` for what is made, `from ~> to` for what decides rows, `from => to` for what is not known."""
    arrows = {"made_from": "->", "decides_rows": "~>", "every_column": "=>"}
    return sorted(
        f"{e.source.model}.{e.source.column or 'ROWS'} {arrows[e.how]} {e.target.model}.{e.target.column or 'ROWS'}"
        for e in lineage.edges
    )


def up(asked: str, *models: Any) -> list[str]:
    return edge_lines(lineage_of(project(*models), asked))


def down(asked: str, *models: Any) -> list[str]:
    return edge_lines(lineage_of(project(*models), asked, downstream=True))


def test_a_column_is_followed_through_models_to_the_outer_table() -> None:
    assert [edge for edge in up("s.sums.total", RAW, CLEAN, SUMS) if "->" in edge] == [
        "raw.orders.amount -> s.clean.price",
        "raw.orders.day -> s.clean.day",
        "s.clean.price -> s.sums.total",
    ]


def test_the_columns_that_a_history_adds_are_followed_too() -> None:
    history = {"unique_key": ("id",), "history": History(columns=("status",))}
    past = model("s.past", "SELECT id, status FROM raw.orders", Kind.SCD_TYPE_2_BY_COLUMN, **history)
    now = model("s.now", "SELECT id, valid_from AS since FROM s.past WHERE valid_to IS NULL")

    assert [edge for edge in up("s.now.since", RAW, past, now) if "->" in edge] == [
        "raw.orders.ROWS -> s.past.valid_from",
        "raw.orders.ROWS -> s.past.valid_to",
        "s.past.valid_from -> s.now.since",
    ]


def test_what_decides_rows_is_told_apart_from_what_makes_values() -> None:
    assert up("s.clean.id", RAW, CLEAN) == [
        "raw.orders.ROWS ~> s.clean.ROWS",
        "raw.orders.id -> s.clean.id",
        "raw.orders.status ~> s.clean.ROWS",
    ]


def test_rows_decide_rows_all_the_way_down() -> None:
    assert [edge for edge in up("s.sums.day", RAW, CLEAN, SUMS) if "~>" in edge] == [
        "raw.orders.ROWS ~> s.clean.ROWS",
        "raw.orders.status ~> s.clean.ROWS",
        "s.clean.ROWS ~> s.sums.ROWS",
        "s.clean.day ~> s.sums.ROWS",
    ]


def test_a_model_is_followed_in_every_column_and_in_its_rows() -> None:
    lineage = lineage_of(project(RAW, CLEAN), "s.clean")

    assert [node.column for node in lineage.starts] == ["id", "price", "day", ""]
    assert lineage.column is None
    assert "raw.orders.day -> s.clean.day" in edge_lines(lineage)


def test_downstream_a_value_goes_into_columns_only() -> None:
    assert down("raw.orders.amount", RAW, CLEAN, SUMS) == [
        "raw.orders.amount -> s.clean.price",
        "s.clean.price -> s.sums.total",
    ]


def test_downstream_a_condition_decides_the_rows_of_all_that_reads_it() -> None:
    assert down("raw.orders.status", RAW, CLEAN, SUMS) == [
        "raw.orders.status ~> s.clean.ROWS",
        "s.clean.ROWS ~> s.sums.ROWS",
    ]


def test_downstream_of_a_model_needs_no_column_of_what_it_leaves_out() -> None:
    other = model("s.other", "SELECT 1 AS one")

    assert down("s.other", RAW, CLEAN, other) == []
    assert down("s.sums", RAW, CLEAN, SUMS) == []


@pytest.mark.parametrize(
    ("sql", "edges"),
    [
        ("WITH c AS (SELECT id AS k, day FROM raw.orders) SELECT k FROM c", ["raw.orders.id -> s.m.k"]),
        ("SELECT id AS k FROM raw.orders UNION ALL SELECT price FROM s.clean",
         ["raw.orders.amount -> s.clean.price", "raw.orders.id -> s.m.k", "s.clean.price -> s.m.k"]),
        ("SELECT q.* FROM (SELECT day AS k FROM raw.orders) AS q", ["raw.orders.day -> s.m.k"]),
        ("SELECT k FROM raw.orders LATERAL VIEW EXPLODE(SPLIT(status, ',')) t AS k", ["raw.orders.status -> s.m.k"]),
    ],
)  # fmt: skip
def test_ctes_unions_subqueries_and_lateral_views_are_seen_through(sql: str, edges: list[str]) -> None:
    upstream = up("s.m.k", RAW, CLEAN, model("s.m", sql))

    assert [edge for edge in upstream if "->" in edge] == edges


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, (SELECT COUNT(*) FROM s.clean) AS n FROM raw.orders",
        "SELECT o.id, c.n FROM raw.orders AS o "
        "LEFT JOIN (SELECT id, COUNT(*) AS n FROM s.clean GROUP BY id) AS c ON c.id = o.id",
    ],
)
def test_what_is_only_looked_up_makes_a_value_and_decides_no_row(sql: str) -> None:
    upstream = up("s.m", RAW, CLEAN, model("s.m", sql))

    assert "s.clean.ROWS -> s.m.n" in upstream
    assert [edge for edge in upstream if edge.endswith("~> s.m.ROWS")] == ["raw.orders.ROWS ~> s.m.ROWS"]


def test_the_time_column_decides_the_rows_of_a_table_that_is_filled_by_time() -> None:
    kind = Kind.INCREMENTAL_BY_TIME_RANGE
    daily = model("s.daily", "SELECT id, day AS at FROM raw.orders", kind=kind, time_column="at")

    assert "raw.orders.day ~> s.daily.ROWS" in up("s.daily.id", RAW, daily)


def test_a_query_that_cannot_be_followed_says_so_and_takes_every_column() -> None:
    loop = model(
        "s.loop", "WITH RECURSIVE c AS (SELECT id FROM s.clean UNION ALL SELECT id + 1 FROM c) SELECT * FROM c"
    )
    last = model("s.last", "SELECT id FROM s.loop")

    lineage = lineage_of(project(RAW, CLEAN, loop, last), "s.last.id")

    assert "s.clean.* => s.loop.ROWS" in edge_lines(lineage)
    assert "raw.orders.amount -> s.clean.*" in edge_lines(lineage)
    assert lineage.unfollowed == (("s.loop", "its query has a recursive CTE that is not followed column by column"),)
    assert "s.clean.price => s.loop.*" in down("raw.orders.amount", RAW, CLEAN, loop, last)
    assert "s.loop.* ~> s.last.ROWS" in down("raw.orders.amount", RAW, CLEAN, loop, last)


def test_a_table_of_unknown_columns_is_named_and_what_follows_it_is_followed() -> None:
    odd = model("s.odd", "SELECT id, amount FROM raw.unknown")
    last = model("s.last", "SELECT amount FROM s.odd")

    lineage = lineage_of(project(odd, last), "s.last.amount")

    assert "s.odd.amount -> s.last.amount" in edge_lines(lineage)
    assert lineage.unfollowed == (("s.odd", "the columns of `raw.unknown` are not known"),)
    assert down("raw.unknown.anything", odd, last)[0] == "raw.unknown.anything => s.odd.*"


def test_a_column_that_no_table_has_is_why_a_query_is_not_followed() -> None:
    lineage = lineage_of(project(RAW, model("s.m", "SELECT nowhere AS id FROM raw.orders")), "s.m.id")

    assert edge_lines(lineage) == ["raw.orders.* => s.m.id"]
    assert lineage.unfollowed == (("s.m", "its query names a column `nowhere` that nothing it reads has"),)


def test_a_seed_is_where_lineage_ends() -> None:
    seed = model("s.items", kind=Kind.SEED, seed=Seed("seeds/items.csv", "x", ("id", "price")))
    dear = model("s.dear", "SELECT id FROM s.items WHERE price > 3")

    assert up("s.items.price", seed, dear) == []
    assert down("s.items.price", seed, dear) == ["s.items.price ~> s.dear.ROWS"]


def test_each_edge_and_node_comes_once_however_many_ways_lead_to_it() -> None:
    left, right = (model(f"s.{side}", "SELECT id, price FROM s.clean") for side in ("left", "right"))
    both = model("s.both", "SELECT l.price + r.price AS x FROM s.left AS l JOIN s.right AS r ON l.id = r.id")

    lineage = lineage_of(project(RAW, CLEAN, left, right, both), "s.both")

    assert len(set(lineage.edges)) == len(lineage.edges)
    assert edge_lines(lineage).count("raw.orders.amount -> s.clean.price") == 1
    assert len(set(lineage.nodes)) == len(lineage.nodes)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("s.claen", "There is no model `s.claen`. Did you mean `s.clean`?"),
        ("s.claen.id", "There is no model `s.claen`. Did you mean `s.clean`?"),
        ("clean", "There is no model `clean`. Did you mean `s.clean`?"),
        ("s.clean.prise", "`s.clean` has no column `prise`. Did you mean `price`?"),
        ("raw.orders.colour", "`raw.orders` has no column `colour`."),
        ("s.clean.", "`s.clean.` ends where a column is expected. Write MODEL or MODEL.COLUMN."),
    ],
)
def test_what_does_not_exist_is_named_with_what_was_meant(asked: str, said: str) -> None:
    with pytest.raises(RequestError) as error:
        lineage_of(project(RAW, CLEAN), asked)

    assert str(error.value).startswith(said)


def test_names_may_be_written_in_capitals() -> None:
    assert up("S.Clean.PRICE", RAW, CLEAN) == up("s.clean.price", RAW, CLEAN)


@pytest.mark.parametrize("case", ALTERED, ids=lambda case: case.name)
def test_what_an_altered_column_has_recomputed_lies_downstream_of_it(case: Case) -> None:
    assert case.columns is not None
    asked = [(models, f"{EDITED}.{column}") for models in (case.before, case.after) for column in case.columns[1]]

    reached = {node.model for models, column in asked for node in lineage_of(models, column, downstream=True).nodes}

    assert case.recomputed <= reached
