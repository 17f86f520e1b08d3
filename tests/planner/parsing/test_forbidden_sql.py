"""SQL of a pull request reaches no further than the tables that it names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.catalog import session_conf
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError, RequestError
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from tests.safety.listener import Listener

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JAVA = "`reflect` runs arbitrary Java code and is not allowed."
OUTSIDE = (
    "reads something other than tables and is not allowed. Read a table; or the operator can allow it in `functions`"
    " of the gateway's `connection`."
)
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
        ("SELECT secret('scope', 'key') AS x", f"`secret` {OUTSIDE}"),
        ("SELECT * FROM read_files('/etc')", f"`read_files` {OUTSIDE}"),
        ("SELECT * FROM table_changes_by_path('/x', 0)", f"`table_changes_by_path` {OUTSIDE}"),
        ("SELECT * FROM text.`/etc/passwd`", "`text./etc/passwd` may hold only letters, digits and underscores."),
    ],
)  # fmt: skip
def test_a_query_that_reaches_past_its_tables_is_refused(query: str, told: str) -> None:
    with pytest.raises(ProjectError) as refused:
        parse_model(f"MODEL (name s.m, kind FULL);\n{query};", "models/m.sql", Defaults(NOW, "spark"))

    assert str(refused.value) == f"models/m.sql:2: {told}"


XPATH = "xpath_string(concat('<!DOCTYPE a SYSTEM \"http://127.0.0.1/', id, '\"><a/>'), '/a')"
FULL, TABLE = "MODEL (name s.m, kind FULL);\n", "FROM s.t;\n"
EVERYWHERE = {
    "query": f"{FULL}SELECT CALL AS x {TABLE}",
    "filter": f"{FULL}SELECT id FROM s.t WHERE CALL = 'x';",
    "pipe": f"{FULL}FROM s.t |> SELECT CALL AS x;",
    "lateral view": f"{FULL}SELECT x FROM s.t LATERAL VIEW explode(array(CALL)) e AS x;",
    "hint": f"{FULL}SELECT /*+ REPARTITION(2, CALL) */ id {TABLE}",
    "another dialect": f"MODEL (name s.m, kind FULL, dialect duckdb);\nSELECT CALL AS x {TABLE}",
    "macro": f"{FULL}@DEF(f, CALL);\nSELECT @f AS x {TABLE}",
    "Jinja": f"{FULL}JINJA_QUERY_BEGIN;\nSELECT {{{{ 'xpath' }}}}_string(id, '/a') AS x;\nJINJA_END;",
    "key": f"MODEL (name s.m, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (CALL)));\nSELECT id {TABLE}",
    "partition": f"MODEL (name s.m, kind FULL, partitioned_by (CALL));\nSELECT id {TABLE}",
    "audit's argument": f"MODEL (name s.m, kind FULL, audits (forall(criteria := (CALL = 'x'))));\nSELECT id {TABLE}",
    "audit": f"{FULL}SELECT id {TABLE}AUDIT (name a);\nSELECT * FROM @this_model WHERE CALL = 'x';",
    "variable": f"{FULL}DECLARE VARIABLE v STRING DEFAULT xpath_string('<a/>', '/a');\nSELECT id {TABLE}",
    "function": f"{FULL}CREATE TEMPORARY FUNCTION f(id STRING) RETURN CALL;\nSELECT f(id) AS x {TABLE}",
    "function of its name": f"{FULL}CREATE TEMPORARY FUNCTION xpath_string(a STRING, b STRING) RETURN a;\n"
    f"SELECT CALL AS x {TABLE}",
    "view": f"{FULL}CREATE TEMPORARY VIEW v AS SELECT CALL AS x {TABLE}SELECT x FROM v;",
    "merge": "MODEL (name s.m, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id, when_matched (WHEN MATCHED AND "
    f"CALL = 'x' THEN UPDATE SET target.x = source.x)));\nSELECT id, x {TABLE}",
}


@pytest.mark.parametrize("place", EVERYWHERE)
def test_a_closed_function_is_refused_wherever_sql_of_a_project_stands(place: str) -> None:
    text = EVERYWHERE[place].replace("CALL", XPATH)

    with pytest.raises(ProjectError, match="xpath_string"):
        parse_model(text, "models/m.sql", Defaults(NOW, "spark"))


def test_a_text_that_reaches_spark_by_another_way_is_judged_once_more(engine: SparkEngine) -> None:
    for sql in (f"SELECT {XPATH} FROM VALUES ('1') AS t(id)", "SELECT `Xpath`\u2028/* */ ('<a/>', '/a') AS x"):
        for ask in (engine.fetch, engine.schema, engine.explain, engine.scan_bytes, engine.reads):
            with pytest.raises(RequestError, match="xpath"):
                ask(sql)


def test_an_xml_text_reaches_no_address(engine: SparkEngine) -> None:
    """Spark itself sends the rows there: the attack is a real one. What is allowed of XML reads no address."""
    rows = "FROM VALUES ('1'), ('2') AS t(id)"
    with Listener() as listener:
        text = f"concat('<!DOCTYPE a SYSTEM \"{listener.address}', id, '\"><a><b>1</b></a>')"
        allowed = f"SELECT from_xml({text}, 'b INT'), from_xml({text}, 'VARIANT') {rows}"
        spark = engine._sessions.current.spark

        read = engine.fetch(allowed).rows
        engine.fetch(f"SELECT schema_of_xml('<!DOCTYPE a SYSTEM \"{listener.address}\"><a><b>1</b></a>') AS x")
        silent = listener.received
        spark.sql(f"SELECT xpath_string({text}, '/a') {rows}").collect()

        assert len(read) == 2
        assert (silent, listener.received > 0) == (0, True)


def test_a_function_of_the_catalog_is_the_operators_to_allow() -> None:
    text = "MODEL (name s.m, kind FULL);\nSELECT shop.mask(id) AS x, st_area(p) AS y FROM s.t;"
    allowed = Defaults(NOW, "spark", allowed={"": frozenset({"shop.mask", "st_*"})})

    model, _ = parse_model(text, "models/m.sql", allowed)
    with pytest.raises(ProjectError, match=r"`shop.mask` is not a function of Spark.* `functions: \[shop.mask\]`"):
        parse_model(text, "models/m.sql", Defaults(NOW, "spark"))

    assert model is not None


def test_a_temporary_function_may_be_called_where_it_is_there() -> None:
    made, gone = "CREATE TEMPORARY FUNCTION f(x INT) RETURN x + 1;", "DROP TEMPORARY FUNCTION f;"
    text = "MODEL (name s.m, kind FULL);\n{}SELECT f(id) AS x FROM s.t;"

    parse_model(text.format(made), "models/m.sql", Defaults(NOW, "spark"))

    for before in ("", made + gone, f"@IF(@runtime_stage = 'creating', {made[:-1]});"):
        with pytest.raises(ProjectError, match="`f` is not a function of Spark"):
            parse_model(text.format(before), "models/m.sql", Defaults(NOW, "spark"))


def test_a_text_is_not_filled_in_from_the_environment_or_sparks_settings(engine: SparkEngine) -> None:
    """Spark would put its process's variables, and its settings with their passwords, in place of these."""
    sql = "SELECT '${env:PATH}' AS a, '${spark.driver.host}' AS b, '${system:user.home}' AS c"

    assert engine.fetch(sql).rows == (("${env:PATH}", "${spark.driver.host}", "${system:user.home}"),)


def test_a_connection_cannot_open_what_is_closed() -> None:
    open_again = (("spark.sql.runSQLOnFiles", "true"), ("spark.sql.variable.substitute", "true"))
    conf = session_conf(Connection(conf=open_again))

    assert {conf[name] for name, _ in open_again} == {"false"}
