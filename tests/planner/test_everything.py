"""A project that uses everything, planned and run: every table that is shown is compared with the
rows that Spark SQL written by hand finds in what others wrote."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import CommandLine, Ran
from tests.planner.shop import rows

pytestmark = pytest.mark.prove

PROJECT = Path(__file__).parent.parent / "projects" / "everything"
RAW = (
    "CREATE SCHEMA raw",
    """CREATE TABLE raw.orders USING parquet AS SELECT * FROM VALUES
    (1, DATE '2026-01-01', 1, 1, 2), (2, DATE '2026-01-02', 2, 2, 1), (3, DATE '2026-01-04', 1, 3, 1),
    (4, DATE '2026-01-05', 1, 1, 3), (5, DATE '2026-01-06', 2, 3, 2), (6, DATE '2026-01-08', 1, 2, 1)
    AS o(order_id, order_date, customer_id, item_id, quantity)""",
    """CREATE TABLE raw.customers USING parquet AS SELECT * FROM VALUES
    (1, 'ann', 'Bern', TIMESTAMP '2026-01-01 08:00:00'), (2, 'bob', 'Rome', TIMESTAMP '2026-01-01 09:00:00')
    AS c(customer_id, name, city, updated_at)""",
    "CREATE TABLE raw.prices USING parquet AS SELECT * FROM VALUES (1, 700), (2, 1500), (3, 3000) AS p(item_id, paid)",
)
MOVED = """INSERT OVERWRITE raw.customers VALUES (1, 'ann', 'Rome', TIMESTAMP '2026-01-06 10:00:00'),
    (2, 'bob', 'Rome', TIMESTAMP '2026-01-01 09:00:00')"""
HISTORY = """SELECT * FROM VALUES
    (1, 'ann', 'Bern', TIMESTAMP '2026-01-01 08:00:00', TIMESTAMP '1970-01-01', TIMESTAMP '2026-01-06 10:00:00'),
    (1, 'ann', 'Rome', TIMESTAMP '2026-01-06 10:00:00', TIMESTAMP '2026-01-06 10:00:00', NULL),
    (2, 'bob', 'Rome', TIMESTAMP '2026-01-01 09:00:00', TIMESTAMP '1970-01-01', NULL)"""
ORDERS = "SELECT * FROM raw.orders WHERE order_date < DATE '{end}'"
VALUES = f"""SELECT o.*, o.quantity * i.cents AS cents FROM ({ORDERS}) AS o
JOIN VALUES (1, 1000), (2, 2500), (3, 4000) AS i(item_id, cents) ON i.item_id = o.item_id"""
DAILY = f"SELECT date_format(order_date, 'yyyyMMdd') AS day, count(*), sum(cents) FROM ({VALUES}) GROUP BY 1"
BY_HAND = {
    "items": "SELECT * FROM VALUES (1, 'bell', 1000), (2, 'lamp', 2500), (3, 'lock', 4000)",
    "orders": ORDERS,
    "daily_sales": DAILY,
    "sales_summary": f"""SELECT day, CAST(c / 100 AS DECIMAL(10, 2)), n >= 1, n >= 2 FROM ({DAILY}) AS d(day, n, c)""",
    "buyers": f"SELECT customer_id, sum(quantity), max(order_date) FROM ({ORDERS}) GROUP BY 1",
    "monthly_items": f"SELECT '2026-01', item_id, sum(quantity) FROM ({ORDERS}) GROUP BY item_id",
    "best_items": f"SELECT item_id, sum(quantity) AS n FROM ({ORDERS}) GROUP BY 1 ORDER BY n DESC, 1 LIMIT 1",
    "basket_sizes": f"SELECT quantity, count(*) FROM ({ORDERS}) GROUP BY 1",
    "forecast": f"SELECT max(day), CAST(avg(c) AS BIGINT) FROM ({DAILY}) AS d(day, n, c)",
    "sales_bern": f"SELECT item_id, sum(cents) FROM ({VALUES}) WHERE customer_id IN ({{bern}}) GROUP BY 1",
    "sales_rome": f"SELECT item_id, sum(cents) FROM ({VALUES}) WHERE customer_id IN ({{rome}}) GROUP BY 1",
    "order_log": f"SELECT order_id, IF(order_date < DATE '2026-01-06', '2026-01-05', '{{log}}') FROM ({ORDERS})",
    "purchase_prices": """SELECT item_id, paid, TIMESTAMP '1970-01-01 00:00:00', CAST(NULL AS TIMESTAMP)
    FROM raw.prices""",
    "customers": "SELECT *, TIMESTAMP '1970-01-01', CAST(NULL AS TIMESTAMP) FROM raw.customers",
}
PARTITIONED = {"orders": 1, "monthly_items": 0}  # by which column; a Parquet table has it last


def move_last(row: tuple[object, ...], place: int | None) -> tuple[object, ...]:
    return row if place is None else (*row[:place], *row[place + 1 :], row[place])


@dataclass
class Journey:
    """The shop, and by-hand queries that are other ones since the project was edited."""

    mergeplan: CommandLine
    engine: SparkEngine
    by_hand: dict[str, str]
    facts: dict[str, str]

    def does(self, *arguments: str, at: str = "", code: int = 0) -> Ran:
        when = ("--execution-time", f"{at} 05:00:00") if at else ()
        ran = self.mergeplan(*arguments, "--output", "json", *when)
        assert ran.code == code, ran.out + ran.err
        return ran

    def shows(self, schema: str = "shop", **otherwise: str) -> None:
        """Every view that the schema has shows the rows computed by hand; `otherwise` are other queries of today."""
        for name in sorted(self.engine.catalog.objects(schema)):
            sql = (self.by_hand | otherwise)[name].format(**self.facts)
            shown = sorted(rows(self.engine, f"SELECT * FROM {schema}.{name}"), key=repr)
            by_hand = [move_last(row, PARTITIONED.get(name)) for row in rows(self.engine, sql)]
            assert shown == sorted(by_hand, key=repr), f"{schema}.{name}"


@pytest.fixture
def journey(tmp_path: Path, engine: SparkEngine) -> Journey:
    shutil.copytree(PROJECT, tmp_path, dirs_exist_ok=True)
    for sql in RAW:
        engine.fetch(sql)
    facts = {"end": "2026-01-06", "bern": "1", "rome": "2", "log": "2026-01-07"}
    return Journey(CommandLine(tmp_path, engine), engine, dict(BY_HAND), facts)


def test_a_shop_goes_from_its_first_plan_to_the_janitor(journey: Journey) -> None:
    _first_plan(journey)
    _days_pass(journey)
    _a_change_is_reviewed_and_merged(journey)
    _prod_goes_back_and_forth(journey)
    _a_rule_changes_from_now_on(journey)
    _an_outer_table_is_mended(journey)
    _what_nobody_shows_is_swept(journey)


def _first_plan(shop: Journey) -> None:
    shop.does("lint")
    assert shop.does("plan", "--auto-apply", at="2026-01-06").result["tests"]["passed"] == 2
    assert shop.engine.catalog.objects("shop") == BY_HAND.keys()
    shop.shows()
    shop.does("audit")


def _days_pass(shop: Journey) -> None:
    shop.engine.fetch(MOVED)
    shop.does("run", at="2026-01-08")
    shop.facts |= {"end": "2026-01-08", "bern": "NULL", "rome": "1, 2"}
    shop.by_hand["customers"] = HISTORY
    shop.shows()


def _a_change_is_reviewed_and_merged(shop: Journey) -> None:
    """What reads only the columns that stay keeps its table; code may read any; the merge computes nothing."""
    shop.mergeplan.edit("models/daily_sales.sql", "SUM(cents) AS cents", "SUM(cents) AS cents, MAX(cents) AS most")
    shop.mergeplan.edit("models/monthly_items.sql", "SUM(quantity) AS sold", "SUM(quantity) AS sold -- pieces")
    (shop.mergeplan.root / "tests" / "test_daily_sales.yaml").unlink()
    shop.by_hand["daily_sales"] = DAILY.replace("sum(cents)", "sum(cents), max(cents)")
    plan = shop.does("plan", "dev", "--auto-apply", at="2026-01-08").result["plan"]
    assert [m["name"] for m in plan["models"] if m["recomputed"]] == ["shop.daily_sales", "shop.forecast"]
    shop.shows("shop__dev")
    shop.shows(daily_sales=DAILY)
    shop.does("table_diff", "prod:dev", "shop.daily_sales", code=5)
    _merge_pull(shop)
    shop.shows()


def _merge_pull(shop: Journey) -> None:
    merged = shop.does("plan", "--auto-apply", at="2026-01-08").result
    assert (merged["plan"]["virtual"], merged["promotion"]["spark_jobs"]) == (True, 0)


def _prod_goes_back_and_forth(shop: Journey) -> None:
    shop.does("rollback", "prod")
    shop.shows(daily_sales=DAILY)
    shop.does("rollback", "prod")
    shop.shows()


def _a_rule_changes_from_now_on(shop: Journey) -> None:
    """The rows that are there stay; the next day is computed by the new rule."""
    shop.mergeplan.edit("models/daily_sales.sql", "SUM(cents) AS cents", "SUM(cents) * 2 AS cents")
    looked = ("--forward-only", "--start", "2026-01-04")
    plan = shop.does("plan", "dev", *looked, "--auto-apply", at="2026-01-08").result["plan"]
    (daily,) = (m for m in plan["models"] if m["name"] == "shop.daily_sales")
    assert (daily["category"], daily["preview"]) == ("forward_only", True)
    shop.shows()
    merged = shop.does("plan", "--forward-only", "--auto-apply", at="2026-01-08").result
    assert (merged["plan"]["virtual"], merged["promotion"]["spark_jobs"]) == (True, 0)
    shop.shows()
    shop.does("run", at="2026-01-09")
    shop.facts["end"] = "2026-01-09"
    doubled = DAILY.replace("sum(cents)", "sum(cents * IF(order_date < DATE '2026-01-08', 1, 2)), max(cents)")
    shop.by_hand |= {
        "daily_sales": doubled,
        "sales_summary": BY_HAND["sales_summary"].replace(
            f"({DAILY}) AS d(day, n, c)", f"({doubled}) AS d(day, n, c, m)"
        ),
        "forecast": BY_HAND["forecast"].replace(f"({DAILY}) AS d(day, n, c)", f"({doubled}) AS d(day, n, c, m)"),
        "order_log": f"""SELECT order_id, CASE WHEN order_date < DATE '2026-01-06' THEN '2026-01-05'
            WHEN order_date < DATE '2026-01-08' THEN '2026-01-07' ELSE '2026-01-08' END FROM ({ORDERS})""",
    }
    shop.shows()


def _an_outer_table_is_mended(shop: Journey) -> None:
    """Restated days are computed by today's rule, and what reads them follows; a log keeps what it said."""
    shop.engine.fetch("INSERT INTO raw.orders VALUES (7, DATE '2026-01-02', 2, 1, 5)")
    days = ("--start", "2026-01-02", "--end", "2026-01-08")
    shop.does("plan", "--restate-model", "raw.orders", *days, "--auto-apply", at="2026-01-09")
    for name in ("daily_sales", "sales_summary", "forecast"):
        shop.by_hand[name] = shop.by_hand[name].replace("DATE '2026-01-08', 1, 2", "DATE '2026-01-02', 1, 2")
    shop.by_hand["order_log"] += " WHERE order_id < 7"
    shop.shows()


def _what_nobody_shows_is_swept(shop: Journey) -> None:
    shop.does("invalidate", "dev")
    shop.does("janitor")
    assert not shop.engine.catalog.objects("shop__dev")
    shop.shows()
