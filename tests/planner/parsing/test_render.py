"""From names to physical tables, from `@start_ds` to a date."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.render import inline_views, render_model

NOW = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
DAY = Interval(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC))
TABLES = {
    "shop.orders": "p.orders__1",
    "lake.shop.orders": "lake.p.orders__1",
    "crm.orders": "p.crm__1",
    "shop.items": "p.items__1",
    "shop.full": "p.full__1",
}


def model_of(query: str, name: str = "shop.a", kind: Kind = Kind.FULL) -> Model:
    model, _ = parse_model(f"MODEL (name {name}, kind {kind});\n{query}", "models/a.sql", Defaults(NOW))
    assert model is not None
    return model


def spark(query: str, interval: Interval | None = DAY, **embedded: str) -> str:
    inlined = {f"shop.{name}": model_of(sql, f"shop.{name}", Kind.EMBEDDED) for name, sql in embedded.items()}
    return render_model(model_of(query), TABLES, inlined, interval, NOW)


@pytest.mark.parametrize(
    ("query", "rendered"),
    [
        ("SELECT id FROM shop.orders", "SELECT id FROM p.orders__1 AS orders"),
        ("SELECT o.id FROM Shop.Orders o", "SELECT o.id FROM p.orders__1 o"),
        ("SELECT orders.id FROM shop.orders", "SELECT orders.id FROM p.orders__1 AS orders"),
        ("SELECT shop.orders.id FROM shop.orders", "SELECT orders.id FROM p.orders__1 AS orders"),
        (
            "SELECT shop.orders.item.name FROM shop.orders",
            "SELECT orders.item.name FROM p.orders__1 AS orders",
        ),
        (
            "SELECT lake.shop.orders.id, Shop.Orders.id FROM lake.shop.orders, shop.orders",
            "SELECT lake__shop__orders.id, shop__orders.id"
            " FROM lake.p.orders__1 AS lake__shop__orders, p.orders__1 AS shop__orders",
        ),
        ("SELECT shop.full.id FROM shop.full", "SELECT `full`.id FROM p.full__1 AS `full`"),
        ("SELECT shop.orders.* FROM shop.orders", "SELECT orders.* FROM p.orders__1 AS orders"),
        (
            "SELECT shop.orders.id, crm.orders.id AS c FROM shop.orders"
            " JOIN crm.orders ON shop.orders.id = crm.orders.id",
            "SELECT shop__orders.id, crm__orders.id AS c FROM p.orders__1 AS shop__orders"
            " JOIN p.crm__1 AS crm__orders ON shop__orders.id = crm__orders.id",
        ),
        (
            "SELECT id FROM shop.orders WHERE EXISTS (SELECT 1 FROM shop.items i WHERE i.id = shop.orders.id)",
            "SELECT id FROM p.orders__1 AS orders WHERE EXISTS (SELECT 1 FROM p.items__1 i WHERE i.id = orders.id)",
        ),
        (
            "WITH orders AS (SELECT * FROM shop.orders) SELECT * FROM orders",
            "WITH orders AS (SELECT * FROM p.orders__1 AS orders) SELECT * FROM orders",
        ),
        ("SELECT id FROM raw.unknown", "SELECT id FROM raw.unknown"),
        (
            "SELECT id FROM shop.orders TABLESAMPLE (10 PERCENT)",
            "SELECT id FROM p.orders__1 TABLESAMPLE (10 PERCENT) AS orders",
        ),
    ],
)
def test_names_become_physical_tables_under_their_old_name(query: str, rendered: str) -> None:
    assert spark(query) == rendered


def test_dates_are_filled_in() -> None:
    assert spark("SELECT id FROM raw.b WHERE d BETWEEN @start_ds AND @end_date") == (
        "SELECT id FROM raw.b WHERE d BETWEEN '2020-01-01' AND CAST('2020-01-01' AS DATE)"
    )


def test_without_an_interval_the_query_is_still_whole() -> None:
    assert spark("SELECT @execution_ds AS d, @end_hour AS h", None) == "SELECT '2024-05-06' AS d, 23 AS h"


def test_an_embedded_model_stands_inside_its_reader() -> None:
    sql = spark(
        "SELECT big.id, b.id AS other FROM shop.big JOIN shop.big AS b USING (id)",
        big="SELECT shop.some.id FROM shop.some WHERE n > 3",
        some="SELECT id, n FROM shop.orders WHERE d = @start_ds",
    )
    some = "(SELECT id, n FROM p.orders__1 AS orders WHERE d = '2020-01-01') AS some"
    big = f"(SELECT some.id FROM {some} WHERE n > 3)"

    assert sql == f"SELECT big.id, b.id AS other FROM {big} AS big JOIN {big} AS b USING (id)"


def test_rendering_twice_gives_the_same_text() -> None:
    query = "SELECT shop.orders.id FROM shop.orders WHERE d = @start_ds"

    assert spark(query) == spark(query)


def test_a_query_can_be_run_without_the_temporary_views_of_its_statements() -> None:
    views = "CREATE TEMP VIEW t AS SELECT x FROM s.a;\nCREATE TEMP VIEW u AS SELECT x FROM t;\n"
    text = f"{views}SELECT u.x FROM u LEFT JOIN t AS v USING (x)"
    model, _ = parse_model(f"MODEL (name s.m, kind FULL);\n{text}", "m.sql", Defaults(NOW))
    assert model is not None

    tree = inline_views(spark_tree(model.sql).copy(), model, {"s.a": "p.a1"}, {}, {})

    assert tree.sql("spark") == (
        "SELECT u.x FROM (SELECT x FROM (SELECT x FROM p.a1 AS a) AS t) AS u "
        "LEFT JOIN (SELECT x FROM p.a1 AS a) AS v USING (x)"
    )
