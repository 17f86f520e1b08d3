"""Names in texts of dbt as Spark spells them: functions that Databricks alone has, and tables without a schema."""

from __future__ import annotations

import pytest

from mergeplan.planner.parsing.files.dbt.spelling import quote_words, spark_words
from mergeplan.planner.project.dbt.compile import DbtTarget, name_schema

from .test_texts import node


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select IFF(a > 1, 'iff(', b) as iff", "select if(a > 1, 'iff(', b) as iff"),
        ("select getdate ()", "select current_timestamp ()"),
        ("select charindex('a', b, 2), timediff(hour, a, b)", "select locate('a', b, 2), timestampdiff(hour, a, b)"),
        ("select tools.iff(a, b, c) -- iff(1, 2, 3)", "select tools.iff(a, b, c) -- iff(1, 2, 3)"),
        ("select iff(a, 'open", "select iff(a, 'open"),
        ("with getdate as (select 1) select * from getdate", "with getdate as (select 1) select * from getdate"),
    ],
)
def test_a_function_of_databricks_is_the_one_of_spark_that_does_the_same(text: str, expected: str) -> None:
    assert spark_words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from diamonds", "select * from x.diamonds"),
        ("with a as (select * from b) select * from A join `c d` d", None),
        ("select * from s.t, u where a in (select b from w)", "select * from s.t, x.u where a in (select b from x.w)"),
        ("select * from s.t lateral view explode(a) as u join range(3) join values (1) as v", None),
        ("select extract(year from day), trim(both from name), ' from me ' from s.t -- from there", None),
        ("with recursive r as (select 1 union all select * from r) select * from r", None),
        ("select from from from", None),
    ],
)
def test_a_table_without_a_schema_is_one_of_the_schema_where_the_connection_begins(
    text: str, expected: str | None
) -> None:
    filled = text.replace("from b)", "from x.b)").replace("`c d`", "x.`c d`") if expected is None else expected

    assert name_schema(text, "x") == filled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select from as a from s.t where FROM in (1)", "select `from` as a from s.t where `FROM` in (1)"),
        ("select explode(values), `values` from s.t", "select explode(`values`), `values` from s.t"),
        ("select * from values (1), (2) as t -- from )", "select * from values (1), (2) as t -- from )"),
        (
            "select ' from ) ', extract(day from d) from (select 1)",
            "select ' from ) ', extract(day from d) from (select 1)",
        ),
        ("select from as 'open", "select from as 'open"),
    ],
)
def test_a_column_that_is_called_as_a_word_of_sql_is_quoted(text: str, expected: str) -> None:
    assert quote_words(text) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (DbtTarget("spark", "live"), "select iff(a, b, c) from default.t"),
        (DbtTarget("databricks", "live"), "select if(a, b, c) from `live`.t"),
        (DbtTarget("databricks", "live", "main"), "select if(a, b, c) from `main`.`live`.t"),
    ],
)
def test_a_connection_begins_where_its_adapter_lets_it(target: DbtTarget, expected: str) -> None:
    respelled = node(text="select iff(a, b, c) from t", later="").change_texts(target.spell)

    assert (respelled.text, respelled.later) == (expected, "")
