"""A query of project code: which tables it reads, and that two readers read it alike."""

from __future__ import annotations

import pytest

from mergeplan.planner.model.schedule import SignalCall
from mergeplan.planner.parsing.sql.queried_tables import NotAdmitted, parse_expression, parse_query, table_name
from mergeplan.planner.python.running import _tables_named


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT a FROM s.t", {"s.t"}),
        ("SELECT * FROM `S`.`T` x JOIN spark_catalog.s.u USING (k)", {"S.T", "spark_catalog.s.u"}),
        ("WITH q AS (SELECT * FROM q) SELECT * FROM q", {"q"}),
        ("WITH q AS (SELECT 1), r AS (SELECT * FROM q) SELECT * FROM r", set()),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM b", {"b"}),
        ("(WITH x AS (SELECT 1) SELECT * FROM x) UNION ALL SELECT * FROM x", {"x"}),
        ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r", set()),
        ("SELECT /*+ BROADCAST(t) */ 1 FROM range(3) t", set()),
        ("SELECT '-- FROM x', \"/*\" FROM s.t -- FROM y", {"s.t"}),
        ("VALUES (1)", set()),
        ("SELECT 1e-5, 1E5D, 1.5BD, -.5e-1, 2.*a, t.1a, '1e-5FROM', `1.5a` FROM s.t", {"s.t"}),
        ("SELECT x1.2, a[1].b, 1.0/3, 7L FROM s.t", {"s.t"}),
        ("SELECT /*+ BROADCAST((SELECT 1 FROM x)) */ 1 FROM s.t", {"x", "s.t"}),
        ("SELECT * FROM s.t WHERE a IN (SELECT b FROM s.u) OR EXISTS (FROM s.v)", {"s.t", "s.u", "s.v"}),
    ],
)
def test_a_query_says_which_tables_it_reads(text: str, tables: set[str]) -> None:
    assert parse_query(text).tables == tables


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 -- \\\n'\nFROM x -- '",
        "SELECT 1e-5FROM q, s.t",
        "SELECT 1E+5FROM q, s.t",
        "SELECT 1.5FROM q, s.t",
        "SELECT 1.FROM q, s.t",
        "SELECT .5e-1FROM q, s.t",
        "SELECT 1.5e-3DFROM q, s.t",
        "SELECT 2.5BD_FROM q, s.t",
        "SELECT q.1e-5FROM q, s.t",
        "SELECT 'a', 1e-5'b', 1e-5FROM q, s.t",
        "SELECT /* /* */ ' */ 1",
        "SELECT r'\\', 'x'",
        "SELECT $a$ ' $a$ FROM x -- '",
        "SELECT /*+ H('*/ FROM x --') */ 1",
        "\u017felect 1",
        "SELECT\u00a01",
        "SELECT {# ' #} 1 -- '",
        "SELECT 'a",
        "SELECT 1; SELECT 2",
        "SELECT 1) UNION (SELECT 2",
        "FROM t |> SELECT a",
        "SELECT * FROM STREAM t",
        "SELECT * FROM t WITH ('path' = 'x')",
        "SELECT * FROM f(TABLE(t))",
        "SELECT * INTO x FROM t",
        "",
    ],
)
def test_what_can_be_read_in_two_ways_or_does_more_than_read_is_refused(text: str) -> None:
    with pytest.raises(NotAdmitted):
        parse_query(text)


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("a + 1 AS b", set()),
        ("trim(BOTH 'x' FROM y)", set()),
        ("(SELECT max(b) FROM s.t)", {"s.t"}),
        ("a >>> 1", set()),
        ("reduce(a, 0, (x, y) -> x + y)", set()),
    ],
)
def test_an_expression_says_which_tables_its_subqueries_read(text: str, tables: set[str]) -> None:
    assert parse_expression(text).tables == tables


@pytest.mark.parametrize("text", ["a FROM x", "1 UNION SELECT a FROM x", "(TABLE x)", "reflect('a', 'b')", "a; FROM x"])
def test_an_expression_that_is_more_is_refused(text: str) -> None:
    with pytest.raises(NotAdmitted):
        parse_expression(text)


def test_a_tables_name_is_read_as_spark_reads_it() -> None:
    assert table_name("`Spark_Catalog`.A.`b`") == "Spark_Catalog.A.b"
    for text in ("a.`b.c`", "a..b", "a.b.", "a b", "`a`b", ""):
        with pytest.raises(NotAdmitted):
            table_name(text)


def test_a_signal_may_read_the_tables_that_its_arguments_name() -> None:
    call = SignalCall("landed", (("table", '"raw.orders"'), ("more", '["a.b.c", "text", "no table; x.y"]'), ("n", "3")))

    assert list(_tables_named(call)) == ["raw.orders", "a.b.c"]
