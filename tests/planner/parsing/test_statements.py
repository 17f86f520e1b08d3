"""Statements beside a query: which there may be, what they count as, and that they run in the model's own session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import ViewSwapped
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.change import Category
from mergeplan.planner.state.store import StateStore
from tests.planner.building import change_of, external, project
from tests.planner.shop import ALONE, plan_and_apply, rows, write_shop

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateStore]:
    opened = StateStore(f"sqlite:///{tmp_path}/state.db")
    yield opened
    opened.close()


def read(body: str, header: str = "name s.m, kind FULL", dialect: str = "spark") -> Model:
    model, _ = parse_model(f"MODEL ({header});\n{body}", "models/m.sql", Defaults(NOW, dialect))
    assert model is not None
    return model


@pytest.mark.parametrize(
    "statement",
    [
        "SET spark.sql.ansi.enabled = false",
        "SET TIME ZONE 'UTC'",
        "CREATE OR REPLACE TEMP VIEW t AS SELECT 1 AS x",
        "CACHE LAZY TABLE t OPTIONS ('storageLevel' = 'DISK_ONLY') AS SELECT 1 AS x",
        "CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x + 1",
        "DECLARE OR REPLACE VARIABLE v INT DEFAULT 3",
        "SET VAR v = EXTRACT(YEAR FROM DATE '2026-01-01') + length('SELECT reflect(1)')",
        "ANALYZE TABLE @this_model COMPUTE STATISTICS FOR ALL COLUMNS",
        "ALTER TABLE s.m SET TBLPROPERTIES ('a' = 'b')",
    ],
)
def test_a_statement_that_stays_with_the_model_is_read(statement: str) -> None:
    model = read(f"{statement};\nSELECT 1 AS x")

    assert len(model.statements.pre_statements) == 1
    assert "s.m" not in model.statements.pre_statements[0].head


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO s.other SELECT 1",
        "DROP TABLE s.other",
        "DELETE FROM @this_model",
        "CREATE TABLE s.other AS SELECT 1 AS x",
        "CREATE VIEW s.other AS SELECT 1 AS x",
        "CREATE GLOBAL TEMP VIEW t AS SELECT 1 AS x",
        "CREATE TEMP VIEW t USING csv OPTIONS (path '/etc/passwd')",
        "CREATE TEMPORARY FUNCTION f(x INT) RETURN (SELECT max(y) FROM s.b)",
        "ALTER TABLE s.other SET TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE @this_model RENAME TO s.other",
        "ADD JAR 'x.jar'",
        "SET spark.sql.catalog.x = y",
        "SET spark.executor.memory = 1",
        "USE s",
        "TRUNCATE TABLE s.other",
        "CACHE TABLE t AS SELECT reflect('java.lang.System', 'exit', 1)",
        "CREATE TEMP VIEW t AS SELECT * FROM parquet.`/tmp/x`",
        "CREATE TEMP VIEW t AS SELECT TRANSFORM(a) USING 'env' AS x FROM s.b",
        "CREATE TEMP VIEW t USING csv OPTIONS (path '/etc/passwd') AS SELECT 1",
        "CREATE TEMPORARY FUNCTION f(x INT) RETURNS STRING LANGUAGE PYTHON AS $$ import os $$",
        "CREATE TEMPORARY FUNCTION f() RETURNS TABLE (x INT) RETURN TABLE s.b",
        "CREATE TEMPORARY FUNCTION f() RETURN IDENTIFIER('ref' || 'lect')('java.lang.System', 'getenv')",
        "DECLARE VARIABLE v STRING DEFAULT reflect('java.lang.System', 'getenv')",
        "DECLARE VARIABLE v INT DEFAULT (SELECT max(y) FROM s.b)",
        "SET VAR v = (FROM s.b)",
        "SET spark.sql.runSQLOnFiles = true",
        "RESET spark.sql.runSQLOnFiles",
        "SET spark.sql.variable.substitute = true",
        "SET spark.sql.defaultCatalog = other",
        "SET -v",
    ],
)
def test_a_statement_that_reaches_further_is_refused(statement: str) -> None:
    with pytest.raises(ProjectError, match=r"^models/m.sql:2: "):
        read(f"{statement};\nSELECT 1 AS x")


def test_what_a_temporary_view_reads_the_model_reads() -> None:
    model = read("CREATE TEMP VIEW t AS SELECT * FROM s.a;\nSELECT x FROM t")

    assert model.depends_on == ("s.a",)
    assert model.sql == "SELECT x FROM t"


QUERIES = [  # of which `TABLE s.a` runs as `SELECT * FROM s.a`, in which the name can be replaced
    "FROM s.a SELECT x",
    "FROM s.a",
    "FROM s.a |> SELECT x",
    "TABLE s.a",
    "WITH c AS (SELECT 1 AS k) FROM c, s.a SELECT x",
    "(FROM s.a SELECT x)",
    "((TABLE s.a))",
    "VALUES (1) UNION ALL FROM s.a SELECT x",
    "SELECT 1 AS x UNION ALL TABLE s.a",
]
HEADS = ["CREATE TEMP VIEW t AS", "CACHE TABLE t AS", "CACHE TABLE t", "CACHE TABLE t OPTIONS ('a' = 'b') AS"]


def written_out(query: str) -> list[str]:
    return query.replace("TABLE", "SELECT * FROM").replace("VALUES", "SELECT * FROM VALUES").split()


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("head", HEADS)
def test_the_query_of_a_statement_is_read_from_its_first_word(head: str, query: str) -> None:
    model = read(f"{head} {query};\nSELECT x FROM t")

    (statement,) = model.statements.pre_statements
    assert model.depends_on == ("s.a",)
    assert statement.text.split() == written_out(query)
    assert statement.head == head.removesuffix(" AS") + " AS"


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_may_begin_with_any_word_of_sparks(query: str) -> None:
    model = read(query)

    assert model.depends_on == ("s.a",)
    assert model.written.text.split() == written_out(query)


def test_a_view_that_begins_with_from_has_the_rows_of_its_table(
    tmp_path: Path, engine: SparkEngine, state: StateStore
) -> None:
    model = """MODEL (name shop.total, kind FULL);
CREATE TEMPORARY VIEW v AS FROM shop.items SELECT COUNT(*) AS n;
CREATE TEMPORARY VIEW w AS TABLE shop.items;
SELECT v.n, (SELECT COUNT(*) FROM w) AS k FROM v"""
    shop = write_shop(tmp_path, **{name: text for name, text in ALONE.items() if name != "items"}, total=model)
    plan_and_apply(shop, engine, state)

    (items,) = rows(engine, "SELECT COUNT(*) FROM shop.items")
    assert items[0] > 1
    assert rows(engine, "SELECT n, k FROM shop.total") == [(items[0], items[0])]


def test_a_statement_for_one_stage_runs_at_that_stage() -> None:
    model = read("@IF(@runtime_stage = 'creating', SET spark.sql.x = 1, SET spark.sql.y = 2);\nSELECT 1 AS x")

    assert [(statement.stages, statement.head) for statement in model.statements.pre_statements] == [
        (("creating",), "SET spark.sql.x = 1"),
        (("evaluating",), "SET spark.sql.y = 2"),
    ]


def statements_changed(before: str, after: str) -> Category | None:
    text = "{};\nSELECT x FROM s.a"
    sides = [project(external("s.a", "x"), read(text.format(statement))) for statement in (before, after)]
    return change_of(*sides)["s.m"].category


def test_an_edit_of_a_statement_that_may_change_rows_is_breaking() -> None:
    ansi = "SET spark.sql.ansi.enabled = {}"

    assert statements_changed(ansi.format("true"), ansi.format("false")) is Category.BREAKING


def test_an_edit_of_a_harmless_statement_is_metadata() -> None:
    said = "ALTER TABLE @this_model SET TBLPROPERTIES ('a' = '{}')"

    assert statements_changed(said.format(1), said.format(2)) is Category.METADATA


@pytest.mark.prove
def test_statements_run_around_batches_in_a_session_of_their_own(
    tmp_path: Path, engine: SparkEngine, state: StateStore
) -> None:
    model = """
MODEL (name shop.total, kind FULL);
CREATE TEMP VIEW seen AS SELECT day, price FROM shop.items WHERE day > @start_ds;
CREATE TEMPORARY FUNCTION plus(x INT) RETURN x + 1;
SET spark.sql.session.timeZone = Asia/Tokyo;
SELECT sum(plus(price)) AS total, current_timezone() AS zone FROM seen;
ALTER TABLE @this_model SET TBLPROPERTIES ('told' = @gateway);
ON_VIRTUAL_UPDATE_BEGIN;
ALTER VIEW @this_model SET TBLPROPERTIES ('team' = 'ann');
ON_VIRTUAL_UPDATE_END;
"""
    left = {name: text for name, text in ALONE.items() if name != "items"}
    shop = write_shop(tmp_path, **left, total=model)
    views = rows(engine, "SHOW VIEWS")
    plan_and_apply(shop, engine, state)
    (table,) = (name for name in state.tables.all() if "total" in name)

    assert rows(engine, "SELECT * FROM shop.total") == [(63, "Asia/Tokyo")]
    assert ("told", "local") in rows(engine, f"SHOW TBLPROPERTIES {table}")
    assert ("team", "ann") in rows(engine, "SHOW TBLPROPERTIES shop.total")
    assert rows(engine, "SHOW VIEWS") == views
    assert rows(engine, "SELECT current_timezone()") != [("Asia/Tokyo",)]


def test_an_edit_of_what_is_said_of_a_view_is_said_at_the_next_promotion(
    tmp_path: Path, engine: SparkEngine, state: StateStore
) -> None:
    text = (
        "MODEL (name shop.apart, kind FULL);\nSELECT 7 AS seven;\nON_VIRTUAL_UPDATE_BEGIN;\n"
        "ALTER VIEW @this_model SET TBLPROPERTIES ('team' = '{}');\nON_VIRTUAL_UPDATE_END;"
    )
    none = dict.fromkeys(("items", "daily", "total", "shown"), "")
    plan_and_apply(write_shop(tmp_path, **none, apart=text.format("one")), engine, state)
    events: list[object] = []

    outcome = plan_and_apply(write_shop(tmp_path, **none, apart=text.format("two")), engine, state, emit=events.append)

    assert outcome.filled.batches == 0
    assert [event.view for event in events if isinstance(event, ViewSwapped)] == ["shop.apart"]
    assert ("team", "two") in rows(engine, "SHOW TBLPROPERTIES shop.apart")
