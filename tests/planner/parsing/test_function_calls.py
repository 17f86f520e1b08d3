"""Calls are found among the tokens that Spark reads, and other names before a bracket are none."""

from __future__ import annotations

import pytest
from sqlglot.dialects.dialect import Dialect

from mergeplan.planner.parsing.sql.function_calls import find_closed_call, find_refused_call, function_calls
from mergeplan.planner.semantics.spark.spark_sql import parse_statements


def calls(sql: str) -> list[str]:
    return [call.name for call in function_calls(Dialect.get_or_raise("spark").tokenize(sql))]


def refusal(sql: str) -> str:
    tokens = Dialect.get_or_raise("spark").tokenize(sql)
    problem = find_refused_call(tokens, parse_statements(tokens, sql)[0], ())
    return problem.message if problem else ""


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT Upper(a), `reflect` /* */ ('a'), builtin . xpath(b)", ["upper", "reflect", "builtin.xpath"]),
        ("SELECT a FROM t WHERE a IN (1) AND (b OR NOT (c)) GROUP BY (a) HAVING (b)", []),
        ("SELECT sum(a) OVER (PARTITION BY (b)), CAST(a AS DECIMAL(3, 2)), a::VARCHAR(3)", ["sum", "cast", "decimal"]),
        ("SELECT /*+ BROADCAST(t), REPARTITION(3, f(a)) */ 1", ["f"]),
        ("SELECT @each(a, x -> g(x)), 'f(1)', \"h(1)\" -- i(1)", ["g"]),
        ("SELECT 'xpath'('<a/>')", ["xpath"]),
    ],
)  # fmt: skip
def test_a_name_before_a_bracket_is_a_call_unless_it_is_a_word_of_the_grammar(sql: str, names: list[str]) -> None:
    assert calls(sql) == names


@pytest.mark.parametrize(
    "sql",
    [
        "WITH q(a, b) AS (SELECT 1, 2), r (c) AS (SELECT 3) SELECT * FROM q JOIN r",
        "SELECT * FROM VALUES (1, 2) AS t(a, b) JOIN range(3) s(c)",
        "SELECT x FROM t LATERAL VIEW OUTER explode(array(1)) e AS x",
        "SELECT * FROM t PIVOT (sum(a) AS s FOR (b, c) IN ((1, 2)))",
        "SELECT a FROM t GROUP BY GROUPING SETS ((a), ()) , CUBE (b), ROLLUP (c)",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FILTER (WHERE b) FROM t TABLESAMPLE (10 PERCENT)",
        "SELECT ice.system.bucket(8, id), try_cast(a AS INT), timestampadd(DAY, 1, d), named_struct('a', 1)",
        "FROM t |> WHERE (a) |> AGGREGATE count(*) GROUP BY b |> ORDER BY (b)",
        "SELECT transform(a, (x, i) -> x + i), aggregate(a, 0, (x, y) -> (x + y)) FROM t",
        "SELECT from_xml(a, 'b INT', map('rowTag', 'x')), from_csv(a, 'b INT', map('sep', ';')), to_xml(s) FROM t",
    ],
)
def test_ordinary_queries_call_only_functions_of_spark(sql: str) -> None:
    assert refusal(sql) == ""


@pytest.mark.parametrize(
    "sql",
    [
        "WITH q(a) AS (SELECT 1) SELECT q(a), q(a) FROM q",
        "SELECT offset(1) FROM t",
        "SELECT * FROM my_rows(1) AS t(a)",
        "SELECT from_xml(a, 'b INT', map('rowValidationXSDPath', '/x')) FROM t",
        "SELECT from_xml(a, 'b INT', map('mode', 'x', 'RowValidationXsdPath', '/x')) FROM t",
        "SELECT from_xml(a, 'b INT', map(concat('row', 'tag'), '/x')) FROM t",
        "SELECT from_xml(a, 'b INT', map_from_arrays(array('mode'), array('x'))) FROM t",
        "SELECT from_xml(a, 'b INT', o) FROM t",
        "SELECT schema_of_xml('<a/>', options => map('mode', 'x')) FROM t",
        "SELECT from_csv(a, 'b INT', map('compression', 'java.lang.Runtime')) FROM t",
    ],
)
def test_what_is_not_known_to_be_harmless_is_refused(sql: str) -> None:
    assert refusal(sql) != ""


def test_statements_of_our_own_may_name_what_they_like() -> None:
    assert find_closed_call("CREATE TABLE xpath (reflect INT) TBLPROPERTIES ('from_avro' = 'xml(')") is not None
    assert find_closed_call("CREATE TABLE t (xpath INT) TBLPROPERTIES ('from_avro' = 'xml(')") is None
    assert find_closed_call("INSERT INTO t VALUES ('xpath(1)', 'secret'), ('read_files', 'reflect (')") is None
