"""Two texts that the parser could take for one query: what the plan says of such an edit, and Spark's rows.

The texts come as files do, through the reader of models, and Spark runs what the model would run.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.change import Category

from .building import change_of
from .sample import contents

pytestmark = pytest.mark.sampled

NOW = datetime(2026, 5, 6, tzinfo=UTC)
ROWS = """SELECT 1 AS id, 1 AS a, ARRAY(2, 3) AS arr, MAP('k', 3) AS m, NAMED_STRUCT('a', 5) AS s,
    DATE '2020-01-01' AS current_date, 'one' AS current_timestamp, 'two' AS current_user, 'three' AS session_user,
    'four' AS localtimestamp, 'five' AS current_catalog, 'six' AS user, 'seven' AS current_time
    UNION ALL SELECT 2, NULL, ARRAY(1), MAP(), NULL, DATE '2020-01-02', '', '', '', '', '', '', ''"""
COLUMNS = """id int; a int; arr array<int>; m map<string,int>; s struct<a:int>; current_date date;
    current_timestamp string; current_user string; session_user string; localtimestamp string; current_catalog string;
    user string; current_time string"""
KEPT = (None, Category.EQUIVALENT, Category.METADATA)


def external() -> Model:
    columns = tuple(Column(*pair.split()) for pair in COLUMNS.split(";"))
    return Model("src.k", Kind.EXTERNAL, "external_models.yaml", 1, "", columns=columns)


def read(query: str) -> Model:
    return parse_model(f"MODEL (name m.base, kind FULL);\n{query}", "base.sql", Defaults(NOW))[0]


def verdict(before: str, after: str) -> Category | None:
    """What the plan says of the edit; None if it does not see one."""
    changes = change_of({"src.k": external(), "m.base": read(before)}, {"src.k": external(), "m.base": read(after)})
    change = changes.get("m.base")
    return change.category if change else None


def run_text(query: str) -> str:
    model = read(query)
    assert model.written.text, f"{query} is not run as it is written"
    return f"WITH k AS ({ROWS}) SELECT * FROM ({model.written.text.replace('src.k', 'k')})"


OTHERS = [
    ("TO_JSON((a, id))", "TO_JSON((a AS, id))"),  # `AS` is the name of the field
    # a variable of a lambda takes precedence over a column, in any case
    ("TRANSFORM(arr, x -> a + 1)", "TRANSFORM(arr, A -> a + 1)"),
    ("TRANSFORM(arr, x -> a + 1)", "TRANSFORM(arr, `A` -> `a` + 1)"),
    ("FILTER(arr, x -> a > 1)", "FILTER(arr, A -> a > 1)"),
    ("EXISTS(arr, x -> a > 1)", "EXISTS(arr, A -> a > 1)"),
    ("FORALL(arr, x -> a > 1)", "FORALL(arr, A -> a > 1)"),
    ("AGGREGATE(arr, 0, (q, e) -> q + a)", "AGGREGATE(arr, 0, (q, A) -> q + a)"),
    ("REDUCE(arr, 0, (q, e) -> q + e, z -> a)", "REDUCE(arr, 0, (q, e) -> q + e, A -> a)"),
    ("ZIP_WITH(arr, arr, (p, q) -> p + a)", "ZIP_WITH(arr, arr, (p, A) -> p + a)"),
    ("MAP_FILTER(m, (p, q) -> a > 1)", "MAP_FILTER(m, (p, A) -> a > 1)"),
    ("MAP_ZIP_WITH(m, m, (k, p, q) -> a)", "MAP_ZIP_WITH(m, m, (k, p, A) -> a)"),
    ("TRANSFORM_KEYS(m, (k, v) -> COALESCE(a, 0))", "TRANSFORM_KEYS(m, (k, A) -> COALESCE(a, 0))"),
    ("TRANSFORM_VALUES(m, (k, v) -> a)", "TRANSFORM_VALUES(m, (k, A) -> a)"),
    ("ARRAY_SORT(arr, (p, q) -> IF(id = 1, -1, 1))", "ARRAY_SORT(arr, (p, ID) -> IF(id = 1, -1, 1))"),
    ("TRANSFORM(ARRAY(NAMED_STRUCT('a', 9)), q -> s.a)", "TRANSFORM(ARRAY(NAMED_STRUCT('a', 9)), S -> s.a)"),
    ("TRANSFORM(ARRAY(NAMED_STRUCT('a', 9)), q -> k.a)", "TRANSFORM(ARRAY(NAMED_STRUCT('a', 9)), K -> k.a)"),
    ("TRANSFORM(ARRAY(MAP('k', 4)), y -> m['k'])", "TRANSFORM(ARRAY(MAP('k', 4)), M -> m['k'])"),
    ("TRANSFORM(arr, x -> TRANSFORM(arr, y -> x + y))", "TRANSFORM(arr, x -> TRANSFORM(arr, X -> x + X))"),
    ("TRANSFORM(arr, Current_Date -> current_date)", "TRANSFORM(arr, x -> current_date)"),
    # without brackets a column takes precedence over the function, and only over some functions
    ("current_date", "current_date()"),
    ("current_timestamp = 'one'", "current_timestamp() IS NULL"),
    ("current_user", "current_user()"),
    ("session_user", "session_user()"),
    ("user", "user()"),
    ("localtimestamp || ''", "localtimestamp() || ''"),
    ("current_catalog", "current_catalog()"),
    ("TYPEOF(current_time)", "TYPEOF(current_time())"),
    ("id, 6 AS user, k.user AS z", "id, 6 AS user, user() AS z"),
    ("EXISTS (SELECT 1 FROM VALUES (1) WHERE user = 'six')", "EXISTS (SELECT 1 FROM VALUES (1) WHERE k.user = 'six')"),
    ("(SELECT MAX(user) FROM VALUES (1))", "(SELECT MAX(k.user) FROM src.k)"),
    # in brackets of its own a subquery is one value
    ("id NOT IN (SELECT a FROM src.k WHERE id = 5)", "id NOT IN ((SELECT a FROM src.k WHERE id = 5))"),
    ("id IN (SELECT a FROM src.k WHERE id = 5)", "id IN ( -- one value\n(SELECT a FROM src.k WHERE id = 5))"),
    # a field of a struct is named as its column is written
    ("TO_JSON(STRUCT(id, a))", "TO_JSON(STRUCT(id, A))"),
    ("TO_JSON(STRUCT(id, a))", "TO_JSON(STRUCT(id, a AS A))"),
]
SAME = [
    ("TRANSFORM(arr, x -> x + id)", "TRANSFORM(arr, X -> x + ID)"),
    ("TRANSFORM(arr, (x, i) -> x + i)", "TRANSFORM(arr, (X, I) -> x + i)"),
    ("TRANSFORM(arr, x -> TRANSFORM(arr, y -> y + y))", "TRANSFORM(arr, x -> TRANSFORM(arr, X -> x + X))"),
    ("TRANSFORM(arr, current_date -> current_date)", "TRANSFORM(arr, x -> x)"),
    ("TRANSFORM(ARRAY(NAMED_STRUCT('a', 9)), k -> k.a)", "TRANSFORM(ARRAY(NAMED_STRUCT('a', 9)), K -> k.a)"),
    ("current_date", "k.current_date"),
    ("id, 6 AS user, k.user AS z", "id, 6 AS user, user AS z"),
    ("id, 6 AS localtimestamp, k.localtimestamp AS z", "id, 6 AS localtimestamp, localtimestamp AS z"),
    ("id IN ((SELECT MAX(a) FROM src.k))", "id IN ((SELECT MAX(a) FROM (SELECT a FROM src.k)))"),
    ("id IN ((SELECT 1) UNION (SELECT 2))", "id IN (SELECT 1 UNION SELECT 2)"),
    ("EXISTS ((SELECT 1 FROM src.k WHERE id = 5))", "EXISTS (SELECT 1 FROM src.k WHERE id = 5)"),
    ("id IN ((1), (2))", "id IN (1, 2)"),
    ("MAX(STRUCT(id, k.a)) OVER ()", "MAX(STRUCT(id AS id, a AS a)) OVER ()"),
]
# All of them are judged each time; a few are run, and the rest by `make prove`.
RUN = [*OTHERS, *SAME] if "MERGEPLAN_CASES" in os.environ else [*OTHERS, *SAME][::6]


def select(outputs: str) -> str:
    return f"SELECT {outputs}{'' if ' AS z' in outputs else ' AS z'} FROM src.k"


@pytest.mark.parametrize(("before", "after"), OTHERS)
def test_an_edit_that_only_looks_like_the_same_is_not_kept(before: str, after: str) -> None:
    assert verdict(select(before), select(after)) not in KEPT


@pytest.mark.parametrize(("before", "after"), SAME)
def test_an_edit_that_only_looks_like_another_is_kept(before: str, after: str) -> None:
    assert verdict(select(before), select(after)) in KEPT


def test_spark_agrees(engine: SparkEngine) -> None:
    pairs = {pair: tuple(run_text(select(text)) for text in pair) for pair in RUN}

    rows = contents([query for queries in pairs.values() for query in queries], lambda sql: engine.fetch(sql).rows)

    alike = [pair for pair, (before, after) in pairs.items() if rows[before].same(rows[after])]
    assert alike == [pair for pair in RUN if pair in SAME]


def test_a_name_without_brackets_is_the_function_where_no_column_has_it() -> None:
    before = "SELECT current_date AS d, user AS u FROM {}"
    after = "SELECT current_date() AS d, CURRENT_USER() AS u FROM {}"

    assert verdict(before.format("VALUES (1)"), after.format("VALUES (1)")) in KEPT
    assert verdict(before.format("src.k"), after.format("src.k")) not in KEPT


def test_a_field_in_having_is_that_of_the_output_or_that_of_the_column() -> None:
    query = "SELECT {} AS s FROM src.k GROUP BY k.s HAVING s.a > 0"

    assert verdict(query.format("NAMED_STRUCT('a', 1)"), query.format("STRUCT(1 AS a)")) not in KEPT
    assert verdict(query.format("STRUCT(1 AS a)"), query.format("struct(1 as a)")) in KEPT


def test_a_struct_of_columns_reads_these_columns_only() -> None:
    assert read("SELECT MAX_BY(a, STRUCT(id, k.a)) AS z FROM src.k").written.misread == ""
    assert read("SELECT TO_JSON(STRUCT(s.a, id + 1)) AS z FROM src.k").written.misread == ""


def test_a_call_keeps_its_brackets_in_what_spark_is_given() -> None:
    model = parse_model(
        "MODEL (name m.a, kind FULL, dialect duckdb);\nSELECT current_date AS d, localtimestamp AS t FROM src.k",
        "a.sql",
        Defaults(NOW),
    )[0]

    assert model.sql == "SELECT CURRENT_DATE() AS d, LOCALTIMESTAMP() AS t FROM src.k"


def test_a_subquery_in_two_pairs_of_brackets_is_a_set_in_other_dialects() -> None:
    model = parse_model(
        "MODEL (name m.a, kind FULL, dialect postgres);\nSELECT a NOT IN ((SELECT b FROM src.j)) AS d FROM src.k",
        "a.sql",
        Defaults(NOW),
    )[0]

    assert model.sql == "SELECT NOT a IN (SELECT b FROM src.j) AS d FROM src.k"
