"""MODEL and AUDIT blocks: what is read, in which dialect, and where things stand."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.parsing.definitions.audits.audits import parse_audits
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model

NOW = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
QUERY = "SELECT 1 AS x"


def model_of(header: str, query: str = QUERY, dialect: str = "spark") -> Model:
    """The model of a block and a query."""
    model, _ = parse_model(f"MODEL (name shop.a, {header});\n{query}", "models/a.sql", Defaults(NOW, dialect))
    assert model is not None
    return model


def query_of(query: str, dialect: str = "spark") -> str:
    """The query as Spark SQL."""
    return model_of("kind FULL", query, dialect).sql


def test_a_whole_block_is_read() -> None:
    model = model_of(
        """-- a comment
        kind INCREMENTAL_BY_TIME_RANGE (time_column (ds, '%d/%m/%Y'), batch_size 7, lookback 2, batch_concurrency 3),
        columns (Ds STRING, price DECIMAL(10, 2), parts ARRAY<STRUCT<Name: STRING, n: INT>>, m MAP<STRING, INT>),
        cron '0 6 * * *', start 2024-01-01, end '2024-02-01', grain (ds, price), tags (a, 'B c'), owner jen,
        description 'it''s', column_descriptions (ds = 'the day'), stamp 'v1', depends_on (shop.c),
        audits (not_null(columns := (ds, price), blocking := false), twice)"""
    )

    assert (model.by_time.time_column, model.by_time.time_format) == ("ds", "dd/MM/yyyy")
    assert (model.batches.batch_size, model.batches.lookback, model.batches.batch_concurrency) == (7, 2, 3)
    assert [column.type for column in model.columns] == [
        "string", "decimal(10,2)", "array<struct<Name:string,n:int>>", "map<string,int>",
    ]  # fmt: skip
    assert (model.schedule.start, model.schedule.end) == (
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(2024, 2, 2, tzinfo=UTC),
    )
    assert (model.metadata.grain, model.metadata.tags, model.metadata.owner) == (("ds", "price"), ("a", "B c"), "jen")
    assert (model.metadata.description, model.metadata.column_descriptions) == ("it's", (("ds", "the day"),))
    assert (model.stamp, model.depends_on) == ("v1", ("shop.c",))
    assert model.checks.audits == (AuditCall("not_null", (("columns", "(ds, price)"),), False), AuditCall("twice"))


def test_a_model_without_a_kind_is_a_view() -> None:
    assert model_of("owner jen").kind is Kind.VIEW


def test_sparks_own_catalog_is_dropped_from_names() -> None:
    model, _ = parse_model("MODEL (name Spark_Catalog.Shop.A);\nSELECT 1 AS x", "a.sql", Defaults(NOW))

    assert model is not None
    assert model.name == "shop.a"
    assert query_of("SELECT x FROM spark_catalog.Shop.B AS b") == "SELECT x FROM shop.b AS b"


def test_ctes_are_not_parents() -> None:
    model = model_of(
        "kind FULL",
        """WITH b AS (SELECT * FROM Shop.B), c AS (SELECT * FROM b WHERE x IN (SELECT x FROM raw.d))
        SELECT * FROM c JOIN (WITH e AS (SELECT * FROM shop.f) SELECT * FROM e) AS g USING (x), RANGE(3)""",
    )

    assert model.depends_on == ("raw.d", "shop.b", "shop.f")


def test_a_cte_is_not_visible_before_it_is_defined() -> None:
    with pytest.raises(ProjectError, match=r"^models/a.sql:2: `c` must have the form `schema.table`."):
        query_of("WITH b AS (SELECT * FROM c), c AS (SELECT 1 AS x) SELECT * FROM b")


def test_a_recursive_cte_may_read_itself() -> None:
    sql = "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n WHERE x < 3) SELECT x FROM n"

    assert model_of("kind FULL", sql).depends_on == ()


@pytest.mark.parametrize(
    ("dialect", "query", "spark"),
    [
        ("duckdb", "SELECT 1 AS x,, /* then */ , f.y FROM a.b AS f", "SELECT 1 AS x, f.y FROM a.b AS f"),
        ("duckdb", "SELECT strftime(d, '%Y') AS y FROM a.b", "SELECT DATE_FORMAT(d, 'yyyy') AS y FROM a.b"),
        (
            "postgres",
            "SELECT x::text FROM a.b WHERE d > @start_ds",
            "SELECT CAST(x AS STRING) AS `x` FROM a.b WHERE d > @start_ds",
        ),
        ("bigquery", "SELECT `x` FROM `a.b`", "SELECT `x` FROM a.b"),
        ("duckdb", "SELECT d + INTERVAL (n) DAY AS e FROM a.b", "SELECT d + MAKE_INTERVAL(0, 0, 0, (n)) AS e FROM a.b"),
        ("mysql", "SELECT d - INTERVAL n MONTH AS e FROM a.b", "SELECT d - MAKE_INTERVAL(0, n) AS e FROM a.b"),
        ("duckdb", "SELECT d - INTERVAL 2 DAYS AS e FROM a.b", "SELECT d - INTERVAL '2' DAYS AS e FROM a.b"),
        ("snowflake", "SELECT IFF(x, 1, 2) AS y FROM a.b", "SELECT IF(x, 1, 2) AS y FROM a.b"),
        ("spark", "SELECT /*+ BROADCAST(b) */ x, -- c\n FROM a.b", "SELECT /*+ BROADCAST(b) */ x FROM a.b"),
        ("spark", "FROM a.b SELECT x", "SELECT x FROM a.b"),
    ],
)
def test_any_dialect_becomes_spark_sql(dialect: str, query: str, spark: str) -> None:
    assert query_of(query, dialect) == spark


def test_a_block_may_name_its_own_dialect() -> None:
    sql = "SELECT 'a\\' AS x FROM a.b"  # in Spark the backslash would hide the quote

    assert model_of("kind FULL, dialect duckdb", sql).sql == "SELECT 'a\\\\' AS x FROM a.b"


def test_macros_in_comments_and_strings_are_left_alone() -> None:
    assert query_of("SELECT '@nope' AS x -- @nope\nFROM a.b /* {{ x }} */") == "SELECT '@nope' AS x FROM a.b"


def test_comments_beside_columns_describe_them() -> None:
    text = "-- about orders\nMODEL (name shop.a);\nSELECT id, -- the key\n  n AS m /* how many */ FROM a.b"
    model, _ = parse_model(text, "a.sql", Defaults(NOW))

    assert model is not None
    assert model.metadata.description == "about orders"
    assert model.metadata.column_descriptions == (("id", "the key"), ("m", "how many"))


@pytest.mark.parametrize(
    "output", ["x::INT", "CAST(x AS INT)", "t.x::DECIMAL(10, 2)", "(x)::INT::STRING", "x::ARRAY<INT>"]
)
def test_comments_beside_casts_without_an_alias_describe_their_columns(output: str) -> None:
    for sql in (f"SELECT {output}, -- given\n  y FROM a.t", f"SELECT y\n , {output} -- given\nFROM a.t"):
        model, _ = parse_model(f"MODEL (name shop.a);\n{sql}", "a.sql", Defaults(NOW))

        assert model is not None
        assert model.metadata.column_descriptions == (("x", "given"),)


def test_audits_may_stand_below_a_query() -> None:
    header = "AUDIT (name low, blocking false, defaults (least = 3));"
    text = f"MODEL (name shop.a);\nSELECT 1 AS x;\n{header}\nSELECT * FROM @this_model WHERE x < @least"
    _, audits = parse_model(text, "a.sql", Defaults(NOW))

    assert [(audit.name, audit.blocking, audit.defaults, audit.line) for audit in audits] == [
        ("low", False, (("least", "3"),), 3)
    ]
    assert audits[0].sql == "SELECT * FROM @this_model WHERE x < @least"


def test_a_file_holds_many_audits() -> None:
    text = "AUDIT (name a);\nSELECT 1 AS x;\n\nAUDIT (name b, dialect duckdb);\nSELECT x::text FROM @this_model;"

    assert [audit.sql for audit in parse_audits(text, "a.sql", Defaults(NOW))] == [
        "SELECT 1 AS x", "SELECT CAST(x AS STRING) FROM @this_model",
    ]  # fmt: skip


def test_a_wrong_column_has_line_and_column() -> None:
    with pytest.raises(ProjectError) as error:
        model_of("columns (\n  x INT,\n  y NUMBR\n)")

    assert error.value.place == Place("models/a.sql", 3, 5)


def test_a_type_of_another_dialect_is_sparks_type() -> None:
    model = model_of("columns (t TIMESTAMP, l INTEGER[])", dialect="duckdb")

    assert model.columns == (Column("t", "timestamp_ntz"), Column("l", "array<int>"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT x\nFROM IDENTIFIER('a.b')", "m.sql:3: `IDENTIFIER(...)` hides which table is read: name the table."),
        ("SELECT\n  d AS @start_ds", "m.sql:3: `@start_ds` is not allowed here: a macro is a value."),
        ("SELECT @@x", "m.sql:2: `@@x` is not allowed here: a macro is a value."),
        ("SELECT * FROM @start_ds", "m.sql:2: `@start_ds` is not allowed here: a macro is a value."),
    ],
)
def test_nothing_is_read_that_would_hide_something(query: str, message: str) -> None:
    with pytest.raises(ProjectError) as error:
        parse_model(f"MODEL (name shop.a);\n{query}", "m.sql", Defaults(NOW))

    assert str(error.value) == message


def test_a_syntax_error_has_the_column_where_the_word_begins() -> None:
    with pytest.raises(ProjectError) as error:
        query_of("SELECT a b strange FROM shop.b")

    assert error.value.place == Place("models/a.sql", 2, 12)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("(id)", ("id",)),
        ("(id, day)", ("id", "day")),
        ("((id, day), key)", ("id", "day", "key")),
        ("(id AS a)", ("id",)),
    ],
)
def test_grains_are_the_columns_that_tell_rows_apart(text: str, columns: tuple[str, ...]) -> None:
    assert model_of(f"grains {text}").metadata.grain == columns


@pytest.mark.parametrize(
    "call",
    [
        "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x DESC)",
        "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x)",
        "TO_CHAR(x, '999')",
        "PARSE_JSON(x)",
    ],
)
def test_a_call_that_the_parser_would_write_otherwise_stays_as_it_stands(call: str) -> None:
    assert query_of(f"SELECT {call} AS y FROM raw.t") == f"SELECT {call} AS y FROM raw.t"


def test_a_percentile_of_another_dialect_stays_one() -> None:
    sql = query_of("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS y FROM raw.t", "postgres")

    assert sql.startswith("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x")


def test_a_percentile_with_a_frequency_of_another_dialect_is_refused_at_its_line() -> None:
    with pytest.raises(ProjectError, match="`percentile` with a frequency") as caught:
        query_of("SELECT\n  percentile(x, 0.5, n) AS y FROM raw.t", "databricks")

    assert caught.value.place == Place("models/a.sql", 3, 3)


def test_a_doubled_quote_inside_a_text_is_one_quote() -> None:
    assert query_of("SELECT 'it''s' AS x, 'a' 'b' AS y") == r"SELECT 'it\'s' AS x, CONCAT('a', 'b') AS y"


def test_each_with_stays_where_it_stands() -> None:
    query = "WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH a AS (SELECT 2 AS x) SELECT x FROM a)"

    assert query_of(query) == query


@pytest.mark.parametrize(
    "query",
    [
        "SELECT " + "(" * 40_000 + "1" + ")" * 40_000,
        "SELECT * FROM " + "(SELECT * FROM " * 40_000 + "t" + ")" * 40_000,
        "SELECT CAST(1 AS " + "ARRAY<" * 40_000 + "INT" + ">" * 40_000 + ")",
        "SELECT 1 FROM t" + " JOIN t" * 40_000,
    ],
    ids=["brackets", "subqueries", "types", "joins"],
)
def test_a_query_nested_deeper_than_anybody_writes_is_a_sentence_and_ends_no_process(query: str) -> None:
    with pytest.raises(ProjectError, match=r"models/a\.sql:2.*nested too deeply"):
        model_of("kind FULL", query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM shop.src WHERE at > (SELECT MAX(at) FROM @this_model)",
        "SELECT s.id FROM shop.src AS s LEFT JOIN @this_model AS t ON t.id = s.id",
        "SELECT id FROM shop.src WHERE id > (SELECT MAX(@this_model.id) FROM @this_model)",
        "SELECT id FROM shop.src WHERE at > (SELECT MAX(at) FROM {{ this_model }})",
    ],
)
def test_a_query_reads_its_own_table_by_the_name_this_model(query: str) -> None:
    block = "MODEL (name shop.t, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id));\n"
    query = f"JINJA_QUERY_BEGIN;\n{query}\nJINJA_END;" if "{{" in query else query

    model, named = (
        parse_model(block + text, "models/t.sql", Defaults(NOW))[0]
        for text in (query, query.replace("@this_model", "shop.t").replace("{{ this_model }}", "shop.t"))
    )

    assert model is not None and named is not None
    assert (model.reads_itself, model.sql, model.depends_on) == (True, named.sql, ("shop.src",))


def test_a_text_that_reads_as_the_own_name_stays_one() -> None:
    text = "MODEL (name shop.t);\nSELECT '@this_model' AS a, `@this_model` FROM shop.src"

    model, _ = parse_model(text, "models/t.sql", Defaults(NOW))

    assert model is not None and not model.reads_itself


@pytest.mark.parametrize(
    ("query", "sql"),
    [
        ("SELECT getdate() AS a FROM s.x", "SELECT CURRENT_TIMESTAMP() AS a FROM s.x"),
        ("SELECT IFF(a, 1, 2) AS iff FROM s.x", "SELECT IF(a, 1, 2) AS iff FROM s.x"),
        ("SELECT charindex('a', b) AS a FROM s.x", "SELECT LOCATE('a', b) AS a FROM s.x"),
    ],
)
def test_functions_of_databricks_are_sparks_in_its_dialect(query: str, sql: str) -> None:
    model, _ = parse_model(f"MODEL (name s.t, dialect databricks);\n{query}", "models/t.sql", Defaults(NOW))

    assert model is not None and model.sql == sql
    with pytest.raises(ProjectError, match="is not a function of Spark"):
        parse_model(f"MODEL (name s.t, dialect spark);\n{query}", "models/t.sql", Defaults(NOW))


@pytest.mark.parametrize("dialect", ["spark", "duckdb", "databricks"])
@pytest.mark.parametrize("call", ["read_csv('a.csv')", "read_parquet('/etc/a')", "READ_CSV_AUTO('a')"])
def test_a_function_that_reads_files_is_refused_with_what_to_do(dialect: str, call: str) -> None:
    text = f"MODEL (name s.t, dialect {dialect});\nSELECT * FROM {call}"

    with pytest.raises(ProjectError, match="reads files, and a model of mergeplan reads tables") as error:
        parse_model(text, "models/t.sql", Defaults(NOW))
    assert "Load a CSV as a seed" in str(error.value)
