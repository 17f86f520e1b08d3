"""Each rule by which two plans of Spark's are called one: both texts are run, and the nearest text that is another."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from mergeplan.planner.engine.analysis import SCHEMA, Analysis, EmptyTable, PairResult, QueryPair
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.spark.plans.terms import RULES
from mergeplan.planner.model.model import Column
from tests.sampling import prove_repeats, prove_rest

TABLES = (
    EmptyTable("m", (Column("id", "int"), Column("a", "string"), Column("n", "int"))),
    EmptyTable("k", (Column("id", "int"), Column("c", "string"))),
)
ROWS = {
    "m": "VALUES (1, 'a', 1), (1, 'a', 1), (2, 'b', NULL), (NULL, 'a', 3), (4, NULL, 4) AS v(id, a, n)",
    "k": "VALUES (1, 'x'), (1, 'y'), (NULL, 'x'), (5, NULL) AS v(id, c)",
}
NAMES = re.compile(r"(FROM|JOIN|,) ([mk])\b(?! [xy]\b)")
Compare = Callable[[str, str], PairResult]
RANKED = "row_number() OVER (PARTITION BY a ORDER BY id, n) AS r"
# rule, a text, a text that is the same by it, and one that is not
PROVED = [
    ("projection", "SELECT a, sum(n) AS s FROM (SELECT n, a FROM m) GROUP BY a",
     "SELECT a, sum(n) AS s FROM (SELECT a, n FROM m) GROUP BY a",
     "SELECT a, sum(id) AS s FROM (SELECT a, id FROM m) GROUP BY a"),
    ("projection", "SELECT a, sum(z) AS s FROM (SELECT CAST(n AS BIGINT) AS z, a FROM m) GROUP BY a",
     "SELECT a, sum(z) AS s FROM (SELECT a, CAST(n AS BIGINT) AS z FROM m) GROUP BY a",
     "SELECT a, sum(z) AS s FROM (SELECT a, CAST(id AS BIGINT) AS z FROM m) GROUP BY a"),
    ("join-order", "SELECT m.id, c FROM m JOIN k ON m.id = k.id", "SELECT m.id, c FROM k JOIN m ON m.id = k.id",
     "SELECT m.id, c FROM k LEFT JOIN m ON m.id = k.id"),
    ("outer-join-sides", "SELECT m.id, c FROM m LEFT JOIN k ON m.id = k.id",
     "SELECT m.id, c FROM k RIGHT JOIN m ON m.id = k.id", "SELECT m.id, c FROM m RIGHT JOIN k ON m.id = k.id"),
    ("outer-join-sides", "SELECT m.id, c FROM m FULL JOIN k ON m.id = k.id",
     "SELECT m.id, c FROM k FULL JOIN m ON m.id = k.id", "SELECT m.id, c FROM k LEFT JOIN m ON m.id = k.id"),
    ("group-order", "SELECT id, a, count(1) AS z FROM m GROUP BY id, a",
     "SELECT id, a, count(1) AS z FROM m GROUP BY a, id", "SELECT id, a, count(n) AS z FROM m GROUP BY id, a"),
    ("group-order", "SELECT id, sum(n) OVER (PARTITION BY id, a) AS s FROM m",
     "SELECT id, sum(n) OVER (PARTITION BY a, id) AS s FROM m", "SELECT id, sum(n) OVER (PARTITION BY a) AS s FROM m"),
    ("union-order", "SELECT id FROM m UNION ALL SELECT id FROM k", "SELECT id FROM k UNION ALL SELECT id FROM m",
     "SELECT id FROM k UNION ALL SELECT n AS id FROM m"),
    ("in-as-ors", "SELECT id FROM m WHERE a IN ('a', 'b')", "SELECT id FROM m WHERE a = 'a' OR a = 'b'",
     "SELECT id FROM m WHERE a = 'a' OR a = 'c'"),
    ("if-as-case", "SELECT id, IF(n > 1, id, n) AS z FROM m",
     "SELECT id, CASE WHEN n > 1 THEN id ELSE n END AS z FROM m",
     "SELECT id, CASE WHEN n > 1 THEN n ELSE id END AS z FROM m"),
    ("if-as-case", "SELECT IF(n > 1, id, NULL) AS z FROM m", "SELECT CASE WHEN n > 1 THEN id END AS z FROM m",
     "SELECT CASE WHEN n > 0 THEN id END AS z FROM m"),
    ("null-filters", "SELECT m.id FROM m LEFT SEMI JOIN k ON m.id = k.id",
     "SELECT m.id FROM m WHERE EXISTS (SELECT 1 FROM k WHERE k.id = m.id)",
     "SELECT m.id FROM m WHERE EXISTS (SELECT 1 FROM k WHERE k.id <=> m.id)"),
    ("null-filters", "SELECT m.id FROM m LEFT ANTI JOIN k ON m.id = k.id",
     "SELECT m.id FROM m WHERE NOT EXISTS (SELECT 1 FROM k WHERE k.id = m.id)",
     "SELECT m.id FROM m WHERE m.id NOT IN (SELECT k.id FROM k)"),
    ("constant-keys", "SELECT DISTINCT id, 'z' AS z FROM m", "SELECT id, 'z' AS z FROM (SELECT DISTINCT id FROM m)",
     "SELECT id, 'z' AS z FROM m"),
    ("projection", "SELECT id, explode(array(n, id)) AS e FROM m",
     "SELECT id, e FROM m LATERAL VIEW explode(array(n, id)) v AS e",
     "SELECT id, e FROM m LATERAL VIEW explode(array(n, n)) v AS e"),
    ("distinct-twice", "SELECT id FROM m WHERE id IN (SELECT id FROM k)",
     "SELECT id FROM m WHERE id IN (SELECT DISTINCT id FROM k)",
     "SELECT id FROM m WHERE id IN (SELECT max(id) FROM k)"),
    ("distinct-twice", "SELECT id FROM m WHERE NOT EXISTS (SELECT 1 FROM k WHERE k.id = m.id)",
     "SELECT id FROM m WHERE NOT EXISTS (SELECT DISTINCT c FROM k WHERE k.id = m.id)",
     "SELECT id FROM m WHERE NOT EXISTS (SELECT max(c) FROM k WHERE k.id = m.id)"),
    ("distinct-twice", "SELECT id FROM m UNION SELECT id FROM k",
     "SELECT DISTINCT id FROM m UNION SELECT DISTINCT id FROM k",
     "SELECT DISTINCT id FROM m UNION ALL SELECT DISTINCT id FROM k"),
    ("distribution", f"SELECT id FROM (SELECT *, {RANKED} FROM m) WHERE r = 1",
     f"SELECT id FROM (SELECT *, {RANKED} FROM (SELECT * FROM m DISTRIBUTE BY n)) WHERE r = 1",
     f"SELECT id FROM (SELECT *, {RANKED} FROM m) WHERE r = 2"),
    ("no-rows", "SELECT c, x.id FROM k LEFT JOIN (SELECT id FROM m WHERE 1 = 2) x ON x.id = k.id",
     "SELECT c, x.id FROM (SELECT id FROM m WHERE 1 = 2) x RIGHT JOIN k ON x.id = k.id",
     "SELECT c, x.id FROM k LEFT JOIN m x ON x.id = k.id"),
    ("distribution", "SELECT id FROM m DISTRIBUTE BY a", "SELECT id FROM m", "SELECT id FROM m WHERE a = 'a'"),
]  # fmt: skip


@pytest.fixture
def compare(engine: SparkEngine) -> Compare:
    """What Spark and the rules say of two queries over empty tables."""

    def compare_texts(first: str, second: str) -> PairResult:
        named = [NAMES.sub(rf"\1 {SCHEMA}.\2 AS \2", text) for text in (first, second)]
        answers = engine.compare_queries(Analysis(TABLES, (), (QueryPair(*named),)))
        assert answers is not None
        return answers[0]

    return compare_texts


def run(engine: SparkEngine, text: str) -> list[str]:
    ctes = ", ".join(f"{name} AS (SELECT * FROM {rows})" for name, rows in ROWS.items())
    return sorted(map(repr, engine.fetch(f"WITH {ctes} SELECT * FROM ({text})").rows))


def test_every_rule_is_proved() -> None:
    assert {rule for rule, *_ in PROVED} == set(RULES)


@pytest.mark.parametrize(("rule", "first", "second", "other"), prove_repeats(PROVED))
def test_what_a_rule_calls_one_returns_the_same_rows(
    engine: SparkEngine, compare: Compare, rule: str, first: str, second: str, other: str
) -> None:
    comparison = compare(first, second)

    assert comparison.same, comparison
    assert rule in comparison.rules
    assert run(engine, first) == run(engine, second)


@pytest.mark.parametrize(("rule", "first", "second", "other"), prove_rest(PROVED, 4))
def test_the_nearest_other_text_is_another_one(
    engine: SparkEngine, compare: Compare, rule: str, first: str, second: str, other: str
) -> None:
    assert not compare(first, other).same
    assert run(engine, first) != run(engine, other)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SELECT sum(n) AS s FROM m", "SELECT try_sum(n) AS s FROM m"),
        ("SELECT a, max(z) AS s FROM (SELECT CAST(a AS INT) AS z, a FROM m) GROUP BY a",
         "SELECT a, max(z) AS s FROM (SELECT a, TRY_CAST(a AS INT) AS z FROM m) GROUP BY a"),
        ("SELECT x.id FROM (SELECT * FROM m) x JOIN (SELECT * FROM m) y ON x.id = y.n",
         "SELECT y.id FROM (SELECT * FROM m) x JOIN (SELECT * FROM m) y ON x.id = y.n"),
        ("SELECT collect_list(id) AS l FROM (SELECT m.id FROM m, k)",
         "SELECT collect_list(id) AS l FROM (SELECT m.id FROM k, m)"),
        ("SELECT id FROM m ORDER BY id LIMIT 1", "SELECT id FROM m ORDER BY id DESC LIMIT 1"),
        ("SELECT a.s, b.s AS t FROM (SELECT sum(n) s FROM m) a, (SELECT sum(n) s FROM m) b",
         "SELECT a.s, a.s AS t FROM (SELECT sum(n) s FROM m) a, (SELECT sum(n) s FROM m) b"),
        ("SELECT CAST(id AS STRING) AS z FROM m", "SELECT id AS z FROM m"),
        ("SELECT '1' AS z, id FROM m", "SELECT '2' AS z, id FROM m"),
        ("SELECT id FROM m WHERE a IN (SELECT CAST(f AS STRING) FROM (SELECT DOUBLE(c) AS f FROM k))",
         "SELECT id FROM m WHERE a IN (SELECT CAST(f AS STRING) FROM (SELECT DISTINCT DOUBLE(c) AS f FROM k))"),
        ("SELECT id FROM m WHERE a IN (SELECT CAST(f AS STRING) FROM (SELECT COLLATE(c, 'UTF8_LCASE') AS f FROM k))",
         "SELECT id FROM m WHERE a IN (SELECT CAST(f AS STRING) FROM "
         "(SELECT DISTINCT COLLATE(c, 'UTF8_LCASE') AS f FROM k))"),
        ("SELECT count(1) AS z FROM (SELECT DISTINCT a FROM m)", "SELECT count(1) AS z FROM (SELECT a FROM m)"),
        ("SELECT DISTINCT z FROM (SELECT a, count(1) AS z FROM (SELECT DISTINCT a, id FROM m) GROUP BY a)",
         "SELECT DISTINCT z FROM (SELECT a, count(1) AS z FROM m GROUP BY a)"),
        ("SELECT c, x.id FROM k, (VALUES (1, 2)) AS x(id, y)", "SELECT c, x.id FROM (VALUES (2, 1)) AS x(id, y), k"),
        ("SELECT x.n FROM k LEFT JOIN (SELECT count(1) AS n FROM m WHERE 1 = 2) x",
         "SELECT x.n FROM k LEFT JOIN (SELECT sum(id) AS n FROM m WHERE 1 = 2) x"),
    ],
)  # fmt: skip
def test_no_rule_calls_these_one(compare: Compare, first: str, second: str) -> None:
    assert not compare(first, second).same
