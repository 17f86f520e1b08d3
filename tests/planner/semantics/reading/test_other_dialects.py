"""Subscripts, slices, maps and casts of other dialects return on Spark what they return there.

`duckdb_answers.json` has what DuckDB 2.0 returned for each expression over the rows below, as texts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError
from tests.planner.parsing.test_model_file import query_of

ANSWERS: dict[str, list[str]] = json.loads(Path(__file__).with_name("duckdb_answers.json").read_text())
ROWS = """
    (1, 1, 1L, 'a,b,c', ARRAY(10, 20, 30), MAP('a', 1, '0', 7), MAP(0, 'z', 1, 'o', 2, 't'), 'a', 2.5D,
        CAST(2.5 AS DECIMAL(10, 2)), '12', true, ARRAY(ARRAY(1, 2), ARRAY(3)), NAMED_STRUCT('q', 5)),
    (2, 0, 0L, 'a', ARRAY(10), MAP('a', 1), MAP(0, 'z'), '0', 3.5D, 3.5, '-7', false, ARRAY(ARRAY(1)),
        NAMED_STRUCT('q', 6)),
    (3, -1, -1L, '', ARRAY(), MAP(), MAP(-1, 'n'), 'x', -2.5D, -2.5, '0', NULL, ARRAY(), NAMED_STRUCT('q', NULL)),
    (4, 3, 3L, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL, NULL),
    (5, -3, -3L, 'x,y', ARRAY(1, NULL, 3), MAP('b', NULL), MAP(3, NULL), 'b', 0.5D, 0.5, '99', true,
        ARRAY(NULL, ARRAY(4, 5)), NAMED_STRUCT('q', 1)),
    (6, NULL, NULL, 'p,q,r,s', ARRAY(1, 2, 3, 4, 5), MAP('c', 3), MAP(7, '7'), 'c', 2.4999D, 1.49, '2147483647', true,
        ARRAY(ARRAY(9)), NAMED_STRUCT('q', 2)),
    (7, 9, 9L, 'p.q', ARRAY(7, 8), MAP('9', 9), MAP(9, 'n'), '9', 7.0D, -0.5, '5', true,
        ARRAY(ARRAY(9, 8), ARRAY(7, 6)), NAMED_STRUCT('q', 3))"""
COLUMNS = "id, n, big, x, arr, m, mi, k, d, dec, s, b, aa, st"


def test_what_duckdb_reads_of_arrays_and_maps_and_casts_spark_returns(shared_engine: SparkEngine) -> None:
    listed = ", ".join(f"{expression} AS c{number}" for number, expression in enumerate(ANSWERS))
    sql = query_of(f"SELECT {listed} FROM a.t ORDER BY id", "duckdb")

    rows = shared_engine.fetch(
        f"WITH t AS (SELECT * FROM VALUES {ROWS} AS v({COLUMNS})) {sql.replace('FROM a.t', 'FROM t')}"
    ).rows

    answers = {expression: [str(row[number]) for row in rows] for number, expression in enumerate(ANSWERS)}
    assert {key: value for key, value in answers.items() if value != ANSWERS[key]} == {}


@pytest.mark.parametrize(
    ("dialect", "written", "spark"),
    [
        ("duckdb", "[1, 2][n]", "TRY_ELEMENT_AT(ARRAY(1, 2), TRY_CAST(NULLIF(n, 0) AS INT))"),
        ("duckdb", "x[1]", "TRY_ELEMENT_AT(x, 1)"),
        ("duckdb", "x['k']", "x['k']"),
        ("duckdb", "MAP {'a': 1, k: v}", "MAP('a', 1, k, v)"),
        ("duckdb", "COUNT(*)::INT", "CAST(COUNT(*) AS INT)"),
        ("duckdb", "FLOOR(x)::INT", "CAST(FLOOR(x) AS INT)"),
        ("postgres", "x[n]", "GET(x, n - 1)"),
        ("postgres", "x[2:3]", "SLICE(x, 2, 2)"),
        ("trino", "x[2]", "ELEMENT_AT(x, 2)"),
        ("trino", "x[n]", "x[IF(TYPEOF(x) LIKE 'array<%', STRING(n - 1), n)]"),
        ("trino", "CAST(x AS INT)", "CAST(CAST(x AS DECIMAL(38, 0)) AS INT)"),
        ("bigquery", "x[OFFSET(n)]", "x[n]"),
        ("bigquery", "x[SAFE_ORDINAL(n)]", "GET(x, n - 1)"),
        ("snowflake", "ARRAY_SLICE(x, 1, 3)", "SLICE(x, 2, 2)"),
        ("tsql", "CAST(x AS INT)", "CAST(x AS INT)"),
        ("spark", "x[n]", "x[n]"),
    ],
)  # fmt: skip
def test_each_dialect_counts_and_rounds_in_its_own_way(dialect: str, written: str, spark: str) -> None:
    assert query_of(f"SELECT {written} AS v FROM a.b", dialect) == f"SELECT {spark} AS v FROM a.b"


@pytest.mark.parametrize(("dialect", "written"), [("duckdb", "x[n:2]"), ("duckdb", "x[1:4:2]"), ("trino", "x[1:2]")])
def test_a_slice_that_spark_cannot_take_is_refused(dialect: str, written: str) -> None:
    with pytest.raises(
        ProjectError, match=r"models/a.sql:2.*bounds of a slice `x\[a:b\]` must be numbers; Spark has SLICE"
    ):
        query_of(f"SELECT {written} AS v FROM a.b", dialect)
