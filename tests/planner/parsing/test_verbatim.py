"""What runs is what was written: the person's words, with names and dates put in by position, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mergeplan.planner.apply.backfill.table_columns import check_table_reads
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import Place, ProjectError, QueryError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.parsing.render import locate_error, render_model
from mergeplan.planner.plan.category.categorize import is_edited
from mergeplan.planner.semantics.columns import model_shape
from mergeplan.planner.serial import decode_json, encode_json

NOW = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
TABLES = {"shop.items": "p.items__1", "shop.full": "p.full__1", "crm.items": "p.crm__1"}


def model_of(query: str, head: str = "name shop.a, kind FULL") -> Model:
    defaults = Defaults(NOW, allowed={"": frozenset({"f"})})
    model, _ = parse_model(f"MODEL ({head});\n{query}", "models/a.sql", defaults)
    assert model is not None
    return model


def spark(query: str) -> str:
    return render_model(model_of(query), TABLES, {}, None, NOW)


@pytest.mark.parametrize(
    "value",
    [
        "LOG10(x)", "log2(x)", "ARRAY_SIZE(x)", "UNIX_DATE(x)", "GET_JSON_OBJECT(x, 'f')", "GET_JSON_OBJECT(x, '$..f')",
        """GET_JSON_OBJECT(x, '$["f"]')""", "GET_JSON_OBJECT(x, ' $.f')", "TO_DATE(x, 'yyyy-MM-dd')",
        "date_format(x, 'y')", "date_format(x, 'YYYY')", "x * 1L", "1.50BD", "2Y", "r'a\\b'", "'it''s'", "'\\101\\u0041'",
        "a <=> b < c", "!a", "a != b", "a == b", "NVL(a, b)", "interval 1 day 2 hours", "X'1f'", "X '1F'", "a >>> 1",
        "a << 1", "LOCALTIMESTAMP()", "time '10:00:00'", "struct(1, 2)", "named_struct('a', 1)", "trunc(x, 'mm')",
        "regexp_extract(s, '(a)', 1)", "substring(s FROM 2 FOR 1)", "trim(BOTH 'x' FROM s)", "f(a => 1)", "try_cast(a AS int)",
        "cast(a as array<map<string,struct<b:int>>>)", "a::int::string", "count(*) FILTER (WHERE a)", "a COLLATE UTF8_LCASE",
        "position('a' IN s)", "a[0].b", "`a``b`.`c d`", "s ILIKE ANY ('a', 'b')", "- -1", "a BETWEEN 1 AND 2 AND b",
    ],
)  # fmt: skip
def test_an_expression_runs_as_it_is_written(value: str) -> None:
    assert spark(f"SELECT {value} AS v FROM shop.items i") == f"SELECT {value} AS v FROM p.items__1 i"


@pytest.mark.parametrize(
    ("query", "rendered"),
    [
        ("SELECT Shop.Items.id FROM Shop.Items", "SELECT items.id FROM p.items__1 AS items"),
        ("SELECT 'shop.items' AS a, `shop.items` FROM shop.items", "SELECT 'shop.items' AS a, `shop.items` FROM p.items__1 AS items"),
        ("SELECT a -- shop.items\nFROM shop.items", "SELECT a\nFROM p.items__1 AS items"),
        ("SELECT /*+ BROADCAST(shop.items) */ a FROM shop.items", "SELECT /*+ BROADCAST(items) */ a FROM p.items__1 AS items"),
        ("SELECT a FROM shop.full", "SELECT a FROM p.full__1 AS `full`"),
        ("SELECT a FROM shop.items TABLESAMPLE (5 ROWS) REPEATABLE (1)", "SELECT a FROM p.items__1 TABLESAMPLE (5 ROWS) REPEATABLE (1) AS items"),
        ("WITH items AS (SELECT 1 AS a) SELECT a FROM items", "WITH items AS (SELECT 1 AS a) SELECT a FROM items"),
        ("SELECT 1-@start_epoch AS a", "SELECT 1-0 AS a"),
        ("SELECT id,\n  count(*) AS n,\nFROM shop.items GROUP BY id,", "SELECT id,\n  count(*) AS n\nFROM p.items__1 AS items GROUP BY id"),
        ("SELECT a, log10(b) FROM shop.items", "SELECT a, log10(b) AS `_col_1` FROM p.items__1 AS items"),
        ("SELECT a IS DISTINCT FROM b FROM shop.items", "SELECT a IS DISTINCT FROM b AS `_col_0` FROM p.items__1 AS items"),
        ("WITH c AS (SELECT 1) (SELECT 2) UNION ALL SELECT 3", "WITH c AS (SELECT 1) (SELECT 2 AS `_col_0`) UNION ALL SELECT 3"),
        ("SELECT a,\n  sum(b,) AS c,\nFROM shop.items", "SELECT a,\n  sum(b ) AS c\nFROM p.items__1 AS items"),
        ("SELECT a, offset FROM shop.items", "SELECT a, offset FROM p.items__1 AS items"),
        ("FROM shop.items SELECT max(a)", "FROM p.items__1 AS items SELECT max(a) AS `_col_0`"),
        ("SELECT cast(a AS int) FROM shop.items", "SELECT cast(a AS int) AS `a` FROM p.items__1 AS items"),
        ("SELECT a FROM shop.items LEFT JOIN LATERAL (SELECT 1 AS b)", "SELECT a FROM p.items__1 AS items LEFT JOIN LATERAL (SELECT 1 AS b)"),
    ],
)  # fmt: skip
def test_only_names_and_dates_are_replaced(query: str, rendered: str) -> None:
    assert spark(query) == rendered


def test_what_spark_does_not_take_as_it_stands_is_written_anew() -> None:
    assert "QUALIFY" not in spark("SELECT a FROM shop.items QUALIFY row_number() OVER (ORDER BY a) = 1")
    assert spark("SELECT [1, 2] AS a") == "SELECT ARRAY(1, 2) AS a"
    assert render_model(
        model_of("SELECT LEN(a) AS b FROM t.u", "name shop.a, kind FULL, dialect tsql"), {}, {}, None, NOW
    )


def test_a_macro_gives_words_that_run() -> None:
    query = "SELECT @EACH(['a', 'it''s'], x -> log10(y) = x), @IF(TRUE, 1L, 2) AS z\nFROM shop.items"

    assert " ".join(spark(query).split()) == (
        "SELECT log10(y) = 'a' AS `_col_0` , log10(y) = 'it''s' AS `_col_1` , 1L AS z FROM p.items__1 AS items"
    )


def test_a_snapshot_of_before_runs_as_it_did() -> None:
    data = encode_json(model_of("SELECT log10(x) AS v FROM shop.items"))
    for key in ("text", "text_line"):
        del data[key]

    old = decode_json(Model, data)

    assert render_model(old, TABLES, {}, None, NOW) == "SELECT LOG10(x) AS v FROM p.items__1 AS items"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("LOG10(x)", "LOG(10, x)"), ("LOG2(x)", "LOG(2, x)"), ("ARRAY_SIZE(x)", "SIZE(x)"),
        ("TO_DATE(x, 'yyyy-MM-dd')", "TO_DATE(x)"), ("UNIX_DATE(x)", "DATEDIFF(DAY, CAST('1970-01-01' AS DATE), x)"),
        ("GET_JSON_OBJECT(x, 'f')", "GET_JSON_OBJECT(x, '$.f')"), ("GET_JSON_OBJECT(x, '$.*')", "GET_JSON_OBJECT(x, '$[*]')"),
        ("DATE_FORMAT(x, 'y')", "DATE_FORMAT(x, 'yyyy')"), ("x * 1L", "x * CAST(1 AS BIGINT)"), ("1BD", "CAST(1 AS DECIMAL)"),
        ("TIME '10:00:00'", "TIMESTAMP '10:00:00'"), ("x >>> 1", "x >> 1"), ("a <=> b < c", "a <=> (b < c)"), ("a <=> b < c", "a IS NOT DISTINCT FROM b < c"),
        ("ARRAY_SIZE(x) - SIZE(y)", "SIZE(x) - ARRAY_SIZE(y)"), ("x * 1L - 1", "x * 1 - 1L"),
        ("sum(x) OVER (ORDER BY a ROWS UNBOUNDED PRECEDING)", "sum(x) OVER (ORDER BY a RANGE UNBOUNDED PRECEDING)"),
        ("-1::STRING", "-CAST(1 AS STRING)"), ("- 128::TINYINT", "-CAST(128 AS TINYINT)"),
    ],
)  # fmt: skip
def test_an_edit_that_the_parser_does_not_see_is_seen(one: str, other: str) -> None:
    before, after = (model_of(f"SELECT {expression} AS v FROM raw.t") for expression in (one, other))

    assert is_edited(before, after)
    assert model_shape(before, {}).text != model_shape(after, {}).text


@pytest.mark.parametrize("same", ["NVL(a, b)", "regexp_extract(a, 'x', 1)", "date_sub(a, 1)", "a :: int", "date_trunc('month', a)", "d BETWEEN @start_date AND @end_ds",
                                  "named_struct('a', 1)", "to_timestamp(a)", "DATE '2024-01-01'", "a <=> b", "array_agg(a)", "timestampadd(day, 1, a)",
                                  "sum(a) OVER (ORDER BY b ROWS UNBOUNDED PRECEDING)"])  # fmt: skip
def test_another_spelling_of_the_same_is_no_misreading(same: str) -> None:
    assert model_of(f"SELECT {same} AS v FROM raw.t").written.misread == ""


DEEP = "(" * 1000 + "1" + ")" * 1000
NASTY = [
    f"SELECT {DEEP} AS a", f"SELECT {'NOT ' * 3000} TRUE AS a", "SELECT a FROM x.y WHERE " + " OR ".join(f"a = {n}" for n in range(3000)),
    f"SELECT a IN ({', '.join(map(str, range(4000)))}) AS b FROM x.y", "SELECT GET_JSON_OBJECT(a, '$..f') AS b FROM x.y",
    "SELECT GET_JSON_OBJECT(a, '$[') AS b", "SELECT GET_JSON_OBJECT(a, b) AS c FROM x.y", "SELECT GET_JSON_OBJECT() AS b", "SELECT (1",
    "SELECT 1)", "SELECT '\U0001f600\u202e' AS a", "SELECT \u00e9 FROM x.y", "SELECT `\u0000` FROM x.y", "SELECT a\ufeff FROM x.y",
    f"SELECT {'a.' * 500}b FROM x.y", f"SELECT {'-' * 1}{' -' * 2000}1 AS a", "SELECT CASE " + "WHEN a THEN CASE " * 300 + "1",
    "SELECT " + "transform(a, x -> " * 200 + "x" + ")" * 200 + " AS a FROM x.y", "SELECT * FROM " + "(SELECT * FROM " * 300 + "x.y" + ")" * 300,
    " UNION ALL ".join(["SELECT 1 AS a"] * 1100), "SELECT CAST(a AS " + "ARRAY<" * 120 + "INT" + ">" * 120 + ") AS b FROM x.y",
    "SELECT date_format(a) AS b FROM x.y", "SELECT TO_DATE() AS b", "SELECT LOG10() AS a", "SELECT log2(a, b, c) AS a FROM x.y",
    "SELECT DATE_ADD() AS a", "SELECT a FROM x.y WHERE", "SELECT", "WITH a AS (SELECT 1) ", "SELECT * FROM x.y PIVOT (1)",
    "SELECT EXTRACT(x FROM) AS a", "SELECT INTERVAL AS a", "SELECT 1e999999 AS a, 9" + "9" * 5000 + " AS b", "SELECT /* /* */ 1 AS a",
    "SELECT a:b.c FROM x.y", "SELECT ? AS a", "SELECT :p AS a", "SELECT ${env:HOME} AS a", "SELECT {{ AS a", "SELECT $$x$$ AS a",
    "FROM FROM x.y", "SELECT * FROM SELECT 1", "SELECT 1 FROM x.y z w", "TABLE x.y", "SELECT LISTAGG() AS a", "SELECT MAP{1:2} AS a",
]  # fmt: skip


@pytest.mark.parametrize("query", NASTY, ids=range(len(NASTY)))
def test_no_query_stops_a_project_from_planning(query: str) -> None:
    try:
        model = model_of(query)
    except ProjectError as error:
        assert error.place is not None
        assert error.place.line >= 2 or "never closed" in error.message or "comment" in error.message
        return
    model_shape(model, {})
    render_model(model, TABLES, {}, None, NOW)


@pytest.mark.parametrize(
    ("query", "column"),
    [("FROM FROM shop.items", 6), ("SELECT * FROM SELECT 1", 15), ("SELECT a, ? FROM x.y", 11)],
)  # fmt: skip
def test_what_spark_refuses_or_we_cannot_judge_is_refused_at_its_column(query: str, column: int) -> None:
    with pytest.raises(ProjectError) as refused:
        model_of(query)

    assert refused.value.place is not None
    assert (refused.value.place.line, refused.value.place.column) == (2, column)


LEXERS = [
    "SELECT 1 AS a --\\\n, (SELECT max(id) FROM hidden.t) AS b\n", "SELECT 1 AS a /* /* */ , (SELECT 2) AS b FROM hidden.t /* */ */",
    "SELECT r'\\' AS a, (SELECT max(id) FROM hidden.t) AS b, '' AS c", "SELECT 'a\\' FROM hidden.t --' AS a", "SELECT \"a'\" AS a, 'b\"' AS b",
    "SELECT '' '' AS a FROM hidden.t", "SELECT 'a''b' AS a FROM hidden.t", "SELECT R\"\\\" AS a FROM hidden.t -- \" AS b",
    "SELECT `a``, (SELECT 1) AS ``b` FROM hidden.t", "SELECT 1 AS a FROM hidden.t -- \r, hidden.u", "SELECT 1 AS a /*+ x */ FROM hidden.t",
    "SELECT /*+ BROADCAST((SELECT 1 FROM hidden.u)) */ 1 AS a FROM hidden.t", "SELECT $$' FROM hidden.t --$$ AS a", "SELECT 0x1F AS a FROM hidden.t",
    "SELECT N'x' AS a FROM hidden.t", "SELECT 1 AS a, -- x\n-- \\\n2 AS b FROM hidden.t", "SELECT '\\u0027' AS a FROM hidden.t",
    "SELECT 1 AS a |> SELECT a", "SELECT a FROM hidden.t |> JOIN hidden.u ON TRUE", "SELECT 1--1\n AS a FROM hidden.t", "SELECT 1 AS a FROM hidden . t",
]  # fmt: skip


@pytest.mark.parametrize("query", LEXERS, ids=range(len(LEXERS)))
def test_spark_reads_no_table_that_the_parser_did_not_see(query: str, engine: SparkEngine) -> None:
    try:
        model = model_of(query)
        told = engine.reads(render_model(model, {}, {}, None, NOW))
    except (ProjectError, QueryError):
        return

    assert told == {*model.depends_on}


def test_a_table_that_only_spark_sees_is_refused(engine: SparkEngine) -> None:
    model = model_of("SELECT a FROM f(TABLE(hidden.t))")

    with pytest.raises(ProjectError, match=r"Spark reads `hidden\.t`"):
        check_table_reads(model, engine.reads(model.written.text) or frozenset(), model.written.text)


def test_sparks_refusal_is_told_at_the_line_and_the_column_of_the_file(engine: SparkEngine) -> None:
    model = model_of("-- items\nSELECT\n  shop.items.a, @start_ds AS d, CAST(b AS TEXT) AS c\nFROM shop.items")

    with pytest.raises(QueryError) as refused:
        engine.reads(render_model(model, TABLES, {}, None, NOW))

    place = locate_error(model, TABLES, {}, refused.value.line, refused.value.column)
    assert place == Place("models/a.sql", 4, 43)
