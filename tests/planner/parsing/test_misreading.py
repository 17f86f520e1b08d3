"""Joins and types that the parser writes otherwise than they stand: read as what they are to Spark."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.semantics.columns import model_shape
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.shape import Shape
from tests.planner.test_written_and_run import NOW

TABLES = {"s.t": ("a", "x", "arr"), "s.u": ("b", "y"), "s.v": ("c", "z")}
ROWS = """t AS (SELECT * FROM VALUES (1, 'p', ARRAY(1, 2)), (2, 'q', ARRAY(3)) AS r (a, x, arr)),
    u AS (SELECT * FROM VALUES (1, 'p'), (3, 'r') AS r (b, y)),
    v AS (SELECT * FROM VALUES (1, 'm'), (4, 'n') AS r (c, z))"""
# FROM with commas, and the same with each join in brackets of its own
JOINS = [
    ("s.t, s.u", "s.t CROSS JOIN s.u"),
    ("s.t, (SELECT * FROM s.u) u", "s.t CROSS JOIN s.u"),
    ("s.t, s.u JOIN s.v ON a = c", "(SELECT * FROM s.t CROSS JOIN s.u) q JOIN s.v ON q.a = v.c"),
    ("s.t, s.u LEFT JOIN s.v ON a = c", "(SELECT * FROM s.t CROSS JOIN s.u) q LEFT JOIN s.v ON q.a = v.c"),
    ("s.t, s.u RIGHT JOIN s.v ON b = c", "(SELECT * FROM s.t CROSS JOIN s.u) q RIGHT JOIN s.v ON q.b = v.c"),
    ("s.t, s.u FULL JOIN s.v ON b = c", "(SELECT * FROM s.t CROSS JOIN s.u) q FULL JOIN s.v ON q.b = v.c"),
    ("s.t LEFT JOIN s.v ON a = c, s.u", "(SELECT * FROM s.t LEFT JOIN s.v ON a = c) q CROSS JOIN s.u"),
    ("s.t, s.u, s.v", "s.t CROSS JOIN (SELECT * FROM s.u CROSS JOIN s.v) q"),
    (
        "s.t, s.u LATERAL VIEW EXPLODE(arr) e AS c",
        "(SELECT * FROM s.t LATERAL VIEW EXPLODE(arr) e AS c) q CROSS JOIN s.u",
    ),
    ("s.t, LATERAL (SELECT a + 1 AS c), s.u", "s.t CROSS JOIN LATERAL (SELECT a + 1 AS c) CROSS JOIN s.u"),
    ("s.t JOIN s.u", "s.t JOIN s.u ON TRUE"),
    ("s.t LEFT JOIN s.u", "s.t LEFT JOIN s.u ON TRUE"),
]
# a join that would bind closer than the comma before it
CLOSER = ("s.t, s.u RIGHT JOIN s.v ON b = c", "s.t CROSS JOIN (SELECT * FROM s.u RIGHT JOIN s.v ON b = c) q")
TYPES = [
    ("CAST(x AS VARCHAR(1))", "CAST(x AS STRING)"),
    ("CAST(x AS CHAR(9))", "CAST(x AS STRING)"),
    ("x::varchar(20)", "x::string"),
    ("DATE '2024-01-01' - INTERVAL '30 days'", "DATE '2024-01-01' - INTERVAL '30' DAYS"),
    ("TIMESTAMP '2024-01-01' + INTERVAL '-1 hour'", "TIMESTAMP '2024-01-01' + INTERVAL '-1' HOUR"),
    ("DATE '2024-01-01' + INTERVAL '2 month'", "DATE '2024-01-01' + INTERVAL '2' MONTH"),
    ("CHAR(65)", "CHR(65)"),
    ("TO_JSON(STRUCT(MAP('k', a)['k'], ARRAY(a)[0]))", "TO_JSON(STRUCT(MAP('k', a)['k'] AS k, ARRAY(a)[0] AS col2))"),
    (
        "PARSE_JSON('{\"f\": {\"g h\": [7]}}'):f['g h'][0]::INT",
        "VARIANT_GET(PARSE_JSON('{\"f\": {\"g h\": [7]}}'), '$.f[\\'g h\\'][0]')::INT",
    ),
]


def select(joins: str) -> str:
    return f"SELECT a, b{', c' if ' c' in joins or 's.v' in joins else ''} FROM {joins}"


def shape(query: str) -> Shape:
    model, _ = parse_model(f"MODEL (name s.m, kind FULL);\n{query}", "m.sql", Defaults(NOW))
    assert model is not None
    assert model.written.text and not model.written.misread
    return model_shape(model, {name: Parent(TABLES[name]) for name in model.depends_on})


def rows(engine: SparkEngine, query: str) -> list[str]:
    return sorted(map(repr, engine.fetch(f"WITH {ROWS} {query.replace('s.', '')}").rows))


@pytest.mark.parametrize(("written", "same"), [(select(one), select(other)) for one, other in JOINS])
def test_a_comma_is_a_join_that_binds_as_any_other(written: str, same: str) -> None:
    assert shape(written).text == shape(same).text
    assert shape(written).relation


@pytest.mark.parametrize("lateral", ["EXPLODE(arr) AS e(c)", "(SELECT EXPLODE(arr) AS c) e"])
def test_a_left_lateral_join_without_a_condition_is_not_one_on_true(lateral: str) -> None:
    queries = [f"SELECT a, b, c FROM s.t LEFT JOIN LATERAL {lateral}{on}" for on in ("", " ON TRUE")]
    without, on_true = [parse_model(f"MODEL (name s.m);\n{query}", "m.sql", Defaults(NOW))[0] for query in queries]

    assert without and without.written.misread
    assert on_true and not on_true.written.misread


def test_a_path_of_several_colons_is_one_path() -> None:
    assert shape("SELECT x:f:g::INT AS c FROM s.t").text == shape("SELECT x:f.g::INT AS c FROM s.t").text
    assert shape("SELECT x:f:g::INT AS c FROM s.t").text != shape("SELECT x:f:G::INT AS c FROM s.t").text


@pytest.mark.parametrize(("written", "same"), TYPES)
def test_a_type_or_an_interval_that_is_spelled_otherwise_is_the_same(written: str, same: str) -> None:
    assert shape(f"SELECT {written} AS c FROM s.t").text == shape(f"SELECT {same} AS c FROM s.t").text


def test_spark_reads_types_and_intervals_alike(engine: SparkEngine) -> None:
    pairs = (f"({one}) <=> ({other}), TYPEOF({one}) = TYPEOF({other})" for one, other in TYPES)

    assert set(engine.fetch(f"WITH {ROWS} SELECT {', '.join(pairs)} FROM t").rows) == {(True,) * len(TYPES) * 2}


def test_spark_reads_joins_alike(engine: SparkEngine) -> None:
    pairs = [(select(one), select(other)) for one, other in JOINS[::3]]  # all of them are among the spellings

    more = [f"({one} EXCEPT ALL {other})" for pair in pairs for one, other in (pair, pair[::-1])]
    counts = ", ".join(f"(SELECT COUNT(*) FROM {rest})" for rest in more)
    assert set(engine.fetch(f"WITH {ROWS} SELECT {counts}".replace("s.", "")).rows[0]) == {0}


def test_a_join_behind_a_comma_does_not_bind_closer(engine: SparkEngine) -> None:
    written, closer = map(select, CLOSER)

    assert shape(written).text != shape(closer).text
    assert rows(engine, written) != rows(engine, closer)


@pytest.mark.parametrize("joins", ["s.t, s.u", "s.t JOIN s.u ON a = b"])
def test_a_pivot_behind_a_join_is_not_followed(engine: SparkEngine, joins: str) -> None:
    pivot = "PIVOT (MAX(y) FOR b IN (1 AS one, 3 AS three))"
    unused = "SELECT x, one, three FROM {} " + pivot

    assert shape(unused.format(joins)).relation is None
    assert shape(f"SELECT * FROM {joins} {pivot}").columns is None
    whole = f"(SELECT * FROM {joins}) q"  # what stands before it is what it pivots, tables of both sides
    assert rows(engine, unused.format(joins)) == rows(engine, unused.format(whole))
