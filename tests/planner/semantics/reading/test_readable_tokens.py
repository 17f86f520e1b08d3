"""Spark SQL that sqlglot does not know opens, says the same when it is generated from the tree, and is not mistaken."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.semantics.columns import model_shape
from mergeplan.planner.semantics.parent import Parent
from tests.planner.parsing.test_model_file import model_of

ROWS = """
    (1, 10, 'a', '{"f": {"g": [7, 8]}, "F": 2}', NAMED_STRUCT('x', 1)), (2, 5, 'b', NULL, NAMED_STRUCT('x', NULL)),
    (3, -9, 'a', '{"f": "t"}', NULL)"""
COLUMNS = ("id", "n", "k", "js", "st")
SAME = {  # text: what is generated
    "FROM s.t |> SET n = n + 1, id = n |> SELECT id, n": (
        "WITH __tmp1 AS (FROM s.t |> SET n = n + 1), __tmp2 AS (FROM __tmp1 |> SET id = n), "
        "__tmp3 AS (SELECT id, n FROM __tmp2) SELECT * FROM __tmp3"
    ),
    "FROM s.t |> WHERE n > 1 |> SET n = IF(n > 5, 1, 2) |> DROP js, st": (
        "WITH __tmp1 AS (FROM (SELECT * FROM s.t WHERE n > 1) |> SET n = IF(n > 5, 1, 2)), "
        "__tmp2 AS (SELECT * EXCEPT (js, st) FROM __tmp1) SELECT * FROM __tmp2"
    ),
    "SELECT PERCENTILE(n, 0.5, id) AS v FROM s.t": "SELECT PERCENTILE(n, 0.5, id) AS v FROM s.t",
    "SELECT TRY_PARSE_JSON(js):f.g[1]::INT AS v FROM s.t": (
        "SELECT CAST(VARIANT_GET(TRY_PARSE_JSON(js), '$.f.g[1]') AS INT) AS v FROM s.t"
    ),
    "SELECT TRY_PARSE_JSON(js):F::STRING AS v FROM s.t": (
        "SELECT CAST(VARIANT_GET(TRY_PARSE_JSON(js), '$.F') AS STRING) AS v FROM s.t"
    ),
    "SELECT SUM(n) OVER (CLUSTER BY k) AS v FROM s.t": "SELECT SUM(n) OVER (PARTITION BY k) AS v FROM s.t",
    "SELECT * FROM (SELECT id, n, k FROM s.t) PIVOT (COUNT(n) > 0 FOR k IN ('a', 'b'))": (
        "SELECT * FROM (SELECT id, n, k FROM s.t) PIVOT(COUNT(n) > 0 FOR k IN ('a', 'b'))"
    ),
    "SELECT * FROM (SELECT n, k FROM s.t) PIVOT ((MAX(n)) AS m, SUM(n)::STRING AS t FOR k IN ('a', 'b'))": (
        "SELECT * FROM (SELECT n, k FROM s.t) PIVOT((MAX(n)) AS m, CAST(SUM(n) AS STRING) AS t FOR k IN ('a', 'b'))"
    ),
    "SELECT n >>> 1 AS v FROM s.t": "SELECT SHIFTRIGHTUNSIGNED(n, 1) AS v FROM s.t",
    "SELECT st.x FROM (SELECT st FROM s.t) AS st": "SELECT st.x FROM (SELECT st FROM s.t) AS st",
}


@pytest.mark.parametrize("text", SAME)
def test_what_only_spark_knows_opens_and_runs_as_it_is_written(text: str) -> None:
    model = model_of("kind FULL", text)

    assert (model.written.text.strip(), model.sql, model.depends_on) == (text, SAME[text], ("s.t",))
    assert model_shape(model, {"s.t": Parent(COLUMNS)}).unresolved is None


def test_what_is_generated_returns_what_the_text_returns(shared_engine: SparkEngine) -> None:
    def rows(sql: str) -> list[str]:
        head = f"WITH t AS (SELECT * FROM VALUES {ROWS} AS v({', '.join(COLUMNS)}))"
        return sorted(map(str, shared_engine.fetch(f"{head} SELECT * FROM ({sql.replace('s.t', 't')})").rows))

    different = {text: (rows(text), rows(sql)) for text, sql in SAME.items() if rows(text) != rows(sql)}

    assert different == {}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("FROM s.t |> SET n = n + 1", "FROM s.t |> SET n = n + 2"),
        ("SELECT a FROM s.t PIVOT (SUM(n) > 0 FOR k IN ('a'))", "SELECT a FROM s.t PIVOT (SUM(n) > 1 FOR k IN ('a'))"),
        ("FROM s.t |> SET n = 1, id = n", "FROM s.t |> SET id = n, n = 1"),
        ("SELECT PERCENTILE(n, 0.5, id) AS v FROM s.t", "SELECT PERCENTILE(n, 0.5) AS v FROM s.t"),
        ("SELECT PARSE_JSON(js):f::INT AS v FROM s.t", "SELECT PARSE_JSON(js):F::INT AS v FROM s.t"),
        ("SELECT SUM(n) OVER (CLUSTER BY k) AS v FROM s.t", "SELECT SUM(n) OVER (CLUSTER BY id) AS v FROM s.t"),
        ("SELECT n >>> 1 AS v FROM s.t", "SELECT n >> 1 AS v FROM s.t"),
        ("SELECT st.x FROM (SELECT st FROM s.t) AS st", "SELECT st.x FROM (SELECT st, 7 AS x FROM s.t) AS st"),
    ],
)
def test_none_of_them_is_taken_for_another(one: str, other: str) -> None:
    texts = [model_shape(model_of("kind FULL", sql), {"s.t": Parent(COLUMNS)}).text for sql in (one, other)]

    assert texts[0] != texts[1]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT n >>> 1 AS a, n >> 1 AS b FROM s.t", "`>>` and `>>>` cannot stand in one query"),
        ("FROM s.t |> SET n", "`|> SET` needs the form `column = expression`"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(sql: str, message: str) -> None:
    with pytest.raises(ProjectError) as error:
        model_of("kind FULL", sql)

    assert message in str(error.value)
