"""SQL of a pull request reaches no further than the tables that it names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from planner.engine.protocol import Connection
from planner.engine.spark.catalog import session_conf
from planner.engine.spark.engine import SparkEngine
from planner.errors import ProjectError
from planner.parsing.files.model_file import Defaults, parse_model

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JAVA = "`reflect` runs arbitrary Java code and is not allowed."
PROGRAM = "`TRANSFORM ... USING` runs a program on the machine and is not allowed."


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT reflect('java.lang.System', 'getenv') AS x", JAVA),
        ("SELECT system.builtin.`REFLECT`('java.lang.System', 'getenv') AS x", JAVA),
        ("SELECT x FROM shop.b WHERE EXISTS (SELECT 1 FROM (VALUES (reflect('a', 'b'))))", JAVA),
        ("SELECT x FROM shop.b PIVOT (max(reflect('a', 'b')) FOR y IN (1))", JAVA),
        ("SELECT TRANSFORM(a) USING 'env' AS (x) FROM shop.b", PROGRAM),
        ("WITH q AS (INSERT INTO shop.b SELECT 1) SELECT 1 AS x",
         "`q` is not a query: a CTE must be a SELECT."),
        ("SELECT IDENTIFIER('a' || 'b') AS x FROM shop.b",
         "`IDENTIFIER(...)` hides which column is read: name the column."),
        ("SELECT x FROM IDENTIFIER('shop.b')", "`IDENTIFIER(...)` hides which table is read: name the table."),
        ("SELECT secret('scope', 'key') AS x", "`secret` reads something other than tables and is not allowed."),
        ("SELECT * FROM read_files('/etc')", "`read_files` reads something other than tables and is not allowed."),
        (
            "SELECT * FROM table_changes_by_path('/x', 0)",
            "`table_changes_by_path` reads something other than tables and is not allowed.",
        ),
        ("SELECT * FROM text.`/etc/passwd`", "`text./etc/passwd` may hold only letters, digits and underscores."),
    ],
)  # fmt: skip
def test_a_query_that_reaches_past_its_tables_is_refused(query: str, told: str) -> None:
    with pytest.raises(ProjectError) as refused:
        parse_model(f"MODEL (name s.m, kind FULL);\n{query};", "models/m.sql", Defaults(NOW, "spark"))

    assert str(refused.value) == f"models/m.sql:2: {told}"


def test_a_text_is_not_filled_in_from_the_environment_or_sparks_settings(engine: SparkEngine) -> None:
    """Spark would put its process's variables, and its settings with their passwords, in place of these."""
    sql = "SELECT '${env:PATH}' AS a, '${spark.driver.host}' AS b, '${system:user.home}' AS c"

    assert engine.fetch(sql).rows == (("${env:PATH}", "${spark.driver.host}", "${system:user.home}"),)


def test_a_connection_cannot_open_what_is_closed() -> None:
    open_again = (("spark.sql.runSQLOnFiles", "true"), ("spark.sql.variable.substitute", "true"))
    conf = session_conf(Connection(conf=open_again))

    assert {conf[name] for name, _ in open_again} == {"false"}
