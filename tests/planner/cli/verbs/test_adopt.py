"""Tables that plain Spark wrote become the first versions of models: nothing is computed, none of theirs is touched."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.janitor import sweep_tables
from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import CommandLine
from tests.planner.engines import Double
from tests.sampling import prove_rest

Shop = Callable[..., CommandLine]
EVENTS = """
MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day));
SELECT id, price, day FROM raw.events WHERE day BETWEEN @start_date AND @end_date
"""
TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT sum(price) AS total FROM shop.daily"
EXTERNAL = "- name: raw.events\n  columns: {id: int, price: int, day: date}\n"
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05")
AT = ("--execution-time", "2026-01-06 05:00:00")
BOTH = ("--table", "shop.daily=legacy.daily", "--table", "shop.total=legacy.total")


@pytest.fixture
def legacy(shop: Shop, engine: SparkEngine) -> CommandLine:
    """A shop of two tables with rows, and the same two as plain Spark once wrote them; prices show who computed."""
    run(engine, "CREATE SCHEMA IF NOT EXISTS raw", "CREATE SCHEMA IF NOT EXISTS legacy")
    rows = ", ".join(f"({n}, {n}, date'{day}')" for n, day in enumerate(DAYS, start=1))
    run(engine, f"CREATE TABLE raw.events USING parquet AS SELECT * FROM VALUES {rows} AS t(id, price, day)")
    old = "CREATE TABLE legacy.{} USING parquet {} AS SELECT {}"
    run(engine, old.format("daily", "PARTITIONED BY (day)", "id, 100 * price AS price, day FROM raw.events"))
    run(engine, old.format("total", "", "1500L AS total"))
    project = shop(
        items="",
        daily=EVENTS,
        total=TOTAL,
        shown="MODEL (name shop.shown, kind VIEW);\nSELECT total FROM shop.total",
        apart="",
    )
    project.write("external_models.yaml", EXTERNAL)
    return project


def run(engine: SparkEngine, *statements: str) -> None:
    for statement in statements:
        engine._sessions.run(statement)


def rows(engine: SparkEngine, sql: str) -> list[tuple[object, ...]]:
    return list(engine.fetch(sql).rows)


def adopt_all(project: CommandLine, *tables: str) -> None:
    done = project("adopt", *tables, "--auto-apply", *AT)
    assert done.code == 0, done.out + done.err


def test_after_an_adoption_the_first_plan_and_run_have_nothing_to_do(legacy: CommandLine, engine: SparkEngine) -> None:
    adopt_all(legacy, *BOTH)
    plan, ran = legacy("plan", "-o", "json", *AT).result["plan"], legacy("run", "-o", "json", *AT).result

    assert (plan["empty"], plan["models"], ran["plan"]["models"]) == (True, [], [])
    assert rows(engine, "SELECT sum(price), count(*) FROM shop.daily") == [(1500, 5)]
    assert rows(engine, "SELECT total FROM shop.shown") == [(1500,)]


@pytest.mark.prove
def test_what_costs_nothing_comes_into_prod_with_the_tables(legacy: CommandLine, engine: SparkEngine) -> None:
    legacy.write("seeds/names.csv", "id,name\n1,tea\n2\n")
    legacy.write("models/names.sql", "MODEL (name shop.names, kind SEED (path '../seeds/names.csv'))")
    sold = "SELECT id, name FROM shop.names JOIN shop.daily USING (id)"
    legacy.write("models/sold.sql", f"MODEL (name shop.sold, kind VIEW);\n{sold}")
    legacy.write("models/count.sql", "MODEL (name shop.count, kind FULL);\nSELECT count(name) AS n FROM shop.sold")
    run(engine, "CREATE TABLE legacy.count USING parquet AS SELECT 5L AS n")
    alone = legacy("adopt", "--table", "shop.count=legacy.count", *AT)
    adopt_all(legacy, *BOTH, "--table", "shop.count=legacy.count")

    assert (alone.code, "reads `shop.daily`, which is neither adopted nor in prod." in alone.err) == (1, True)
    assert legacy("plan", "-o", "json", *AT).result["plan"]["empty"]
    assert rows(engine, "SELECT id, name FROM shop.sold ORDER BY id") == [(1, "tea"), (2, None)]
    assert rows(engine, "SELECT n FROM shop.count") == [(5,)]


@pytest.mark.prove
def test_an_edit_computes_only_what_it_must_and_a_rollback_shows_the_adopted_rows(
    legacy: CommandLine, engine: SparkEngine
) -> None:
    adopt_all(legacy, *BOTH)
    legacy.edit("models/total.sql", "sum(price)", "sum(price) + 1")
    done = legacy("plan", "--auto-apply", "-o", "json", *AT).result

    computed = [model["name"] for model in done["plan"]["models"] if model["intervals"]]
    assert (computed, rows(engine, "SELECT total FROM shop.shown")) == (["shop.total"], [(1501,)])
    assert legacy("rollback", "prod").code == 0
    assert rows(engine, "SELECT total FROM shop.total") == [(1500,)]


@pytest.mark.prove
def test_neither_a_rebuilt_model_nor_the_janitor_touches_a_table_of_others(
    legacy: CommandLine, engine: SparkEngine
) -> None:
    adopt_all(legacy, *BOTH)
    legacy.edit("models/daily.sql", "SELECT id, price", "SELECT id, price + 0.0 AS price")
    assert legacy("plan", "--auto-apply", *AT).code == 0
    gone = sweep_tables(legacy.state, engine, datetime.now(UTC) + timedelta(days=2), timedelta(), emit=ignore_event)

    assert any(name.startswith("mergeplan__shop.shop__daily__") for name in gone)
    assert rows(engine, "SELECT sum(price) FROM legacy.daily") == [(1500,)]
    assert rows(engine, "SELECT total FROM legacy.total") == [(1500,)]


@pytest.mark.prove
def test_a_table_that_stands_where_the_view_will_makes_room_for_it(legacy: CommandLine, engine: SparkEngine) -> None:
    run(engine, "CREATE SCHEMA IF NOT EXISTS shop", "CREATE TABLE shop.total USING parquet AS SELECT 1500L AS total")
    refused = legacy("adopt", *BOTH, "--dry-run", *AT)
    adopt_all(legacy, "--table", "shop.daily=legacy.daily", "--table", "shop.total=shop.total")

    assert (refused.code, "`shop.total` is a table, but the view of `shop.total`" in refused.err) == (4, True)
    assert rows(engine, "SELECT total FROM shop.total") == rows(engine, "SELECT total FROM shop.total__adopted")
    assert engine.catalog.standing("shop.total").is_view  # type: ignore[union-attr]


class Dying(Double):
    """A Spark that dies when it is to make a table over files that are not its own."""

    dead = False

    def close(self) -> None:
        """It is lent."""

    def take_over(self, *_: object) -> None:
        """It does not live to do so."""
        type(self).dead = True
        raise KeyboardInterrupt

    def standing(self, name: str) -> object:
        """As long as it lives."""
        if self.dead:
            raise KeyboardInterrupt
        return self._engine.catalog.standing(name)


@pytest.mark.prove
def test_what_a_crash_had_moved_is_back_with_the_next_command(legacy: CommandLine, engine: SparkEngine) -> None:
    run(engine, "CREATE SCHEMA IF NOT EXISTS shop", "CREATE TABLE shop.total USING parquet AS SELECT 1500L AS total")
    legacy.engine = Dying(engine)
    tables = ("--table", "shop.daily=legacy.daily", "--table", "shop.total=shop.total")
    assert legacy("adopt", *tables, "--auto-apply", *AT).code == 130
    assert rows(engine, "SELECT total FROM shop.total") == [(1500,)]  # readers notice nothing
    assert engine.catalog.standing("shop.total__adopted") is not None

    legacy.engine = engine
    assert legacy("plan", "dev", "--no-prompts", "-o", "json", *AT).code == 0
    assert engine.catalog.standing("shop.total__adopted") is None
    adopt_all(legacy, *tables)
    assert legacy("plan", "-o", "json", *AT).result["plan"]["empty"]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    prove_rest(
        [
            (
                "id, 100 * price AS price",
                "models/daily.sql:2: `shop.daily` returns `day` date, which `legacy.odd` lacks.",
            ),
            ("id, price, day, 1 AS more", "has the column `more` int, which `shop.daily` does not return"),
            ("id, price * 1.5 AS price, day", "`price` is decimal(13,1) in `legacy.odd` and int in `shop.daily`."),
            (
                "id, price, if(id = 3, null, day) AS day",
                "`legacy.odd`: 1 of its rows have no `day`: they are of no day.",
            ),
            ("id, price, day - 9 AS day", "5 of its rows are older than 2026-01-01, where `shop.daily` begins"),
        ],
        2,
    ),
)
def test_a_table_that_is_not_the_models_is_refused_with_a_sentence(
    legacy: CommandLine, engine: SparkEngine, columns: str, sentence: str
) -> None:
    cut = "PARTITIONED BY (day)" if " day" in columns else ""
    run(engine, f"CREATE TABLE legacy.odd USING parquet {cut} AS SELECT {columns} FROM raw.events")
    refused = legacy("adopt", "--table", "shop.daily=legacy.odd", "-o", "json", *AT)

    assert refused.code == 1
    assert sentence in refused.result["adoption"]["tables"][0]["problems"][0]


@pytest.mark.prove
def test_rows_that_lie_otherwise_are_copied_when_somebody_says_so(legacy: CommandLine, engine: SparkEngine) -> None:
    run(engine, "CREATE TABLE legacy.flat USING orc AS SELECT * FROM legacy.daily WHERE id <> 3")
    tables = ("--table", "shop.daily=legacy.flat", "--table", "shop.total=legacy.total")
    refused = legacy("adopt", *tables, *AT)
    legacy.write("adopt.yaml", "tables:\n  shop.daily: {table: legacy.flat, copy: true}\n  shop.total: legacy.total\n")
    done = legacy("adopt", "--file", "adopt.yaml", "--auto-apply", "-o", "json", *AT).result["adoption"]["tables"][0]

    assert (refused.code, "its files are orc, the model's parquet" in refused.out) == (1, True)
    assert (done["copies"], done["left"]) == (True, [["2026-01-03", "2026-01-04"]])
    assert rows(engine, "SELECT sum(price) FROM shop.daily") == [(1200,)]


def test_a_project_is_looked_over_and_the_tables_that_fit_are_written(legacy: CommandLine) -> None:
    legacy.write("models/bad.sql", "MODEL (name shop.bad, kind MANAGED);\nSELECT 1 AS one")
    seen = legacy("adopt", "--look-in", "legacy", "--write", "adopt.yaml", *AT)

    assert "models/bad.sql:1: The kind MANAGED is not supported" in seen.out
    assert (legacy.root / "adopt.yaml").read_text() == (
        "tables:\n  shop.daily: legacy.daily\n  shop.total: legacy.total\n"
    )


@pytest.mark.prove
def test_a_merged_table_is_adopted_up_to_the_day_that_is_declared(legacy: CommandLine, engine: SparkEngine) -> None:
    legacy.write(
        "models/last.sql",
        "MODEL (name shop.last, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id));\n"
        "SELECT id, price FROM raw.events WHERE day BETWEEN @start_date AND @end_date",
    )
    run(engine, "CREATE TABLE legacy.last USING parquet AS SELECT id, 7 AS price FROM raw.events")
    refused = legacy("adopt", "--table", "shop.last=legacy.last", *AT)
    adopt_all(legacy, "--table", "shop.last=legacy.last", "--end", "2026-01-04")
    assert legacy("run", *AT).code == 0

    assert (refused.code, "do not say up to which day" in refused.out) == (1, True)
    assert rows(engine, "SELECT id, price FROM shop.last ORDER BY id")[3:] == [(4, 7), (5, 5)]
    assert rows(engine, "SELECT sum(price) FROM legacy.last") == [(35,)]
