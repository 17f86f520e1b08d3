"""What Spark says about the content of tables: equal for the same rows, and for no others."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mergeplan.planner.engine.protocol import ViewText
from mergeplan.planner.engine.spark.content import build_content_query
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table, time_partitioning
from mergeplan.planner.errors import QueryError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from mergeplan.planner.snapshot.content_hash import WHOLE, ColumnSet, Content, Contents, empty_content, equal_periods

pytestmark = pytest.mark.prove

SCHEMA = "mergeplan__c"
PAIR = (Column("a", "bigint"), Column("b", "string"))
ORDERS = Table(f"{SCHEMA}.orders", PAIR)
DAILY_COLUMNS = (Column("dt", "date"), Column("v", "int"))
DAILY = Table(f"{SCHEMA}.daily", DAILY_COLUMNS, time_partitioning(DAILY_COLUMNS, "dt", "", 86_400))
HOURLY_COLUMNS = (Column("at", "timestamp"), Column("v", "int"))
HOURLY = Table(f"{SCHEMA}.hourly", HOURLY_COLUMNS, time_partitioning(HOURLY_COLUMNS, "at", "", 3_600))
LAWS = settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# Two values each of which a reader can tell one from the other.
VALUES = [
    # NULLs
    ("''", "cast(NULL as string)"),
    ("0", "cast(NULL as int)"),
    ("false", "cast(NULL as boolean)"),
    # Types
    ("1", "'1'"),
    ("1", "1L"),
    ("1Y", "1S"),
    ("1", "date'1970-01-02'"),
    ("1000000L", "timestamp'1970-01-01 00:00:01Z'"),
    ("timestamp_ntz'1970-01-01 00:00:01'", "timestamp'1970-01-01 00:00:01Z'"),
    ("'a'", "X'61'"),
    ("1F", "1D"),
    ("true", "1"),
    ("100L", "cast(1 as decimal(10,2))"),
    ("1.0BD", "1.00BD"),
    ("'a'", "'a' COLLATE UTF8_LCASE"),
    ("array(1)", "array(1L)"),
    ("named_struct('x', 1)", "named_struct('y', 1)"),
    # Texts and bytes
    ("'a'", "'A'"),
    ("'a' COLLATE UTF8_LCASE", "'A' COLLATE UTF8_LCASE"),
    ("'a' COLLATE UNICODE_RTRIM", "'a ' COLLATE UNICODE_RTRIM"),
    ("array('a' COLLATE UNICODE_CI)", "array('A' COLLATE UNICODE_CI)"),
    ("'a'", "'a '"),
    (r"'\u00e9'", r"'e\u0301'"),
    ("cast(X'FF' as string)", "cast(X'FE' as string)"),
    ("X''", "X'00'"),
    ("repeat('x', 100)", "repeat('x', 101)"),
    # Numbers and times
    ("1.10BD", "1.11BD"),
    ("cast('1e37' as decimal(38,0))", "cast(cast('1e37' as decimal(38,0)) + 1 as decimal(38,0))"),
    ("double('0.0')", "double('-0.0')"),
    ("float('0.0')", "float('-0.0')"),
    ("array(double('0.0'))", "array(double('-0.0'))"),
    ("double('nan')", "cast(NULL as double)"),
    ("double('nan')", "double('inf')"),
    ("double('inf')", "double('-inf')"),
    ("0.1D + 0.2D", "0.3D"),
    ("timestamp'2024-10-27 00:30:00Z'", "timestamp'2024-10-27 01:30:00Z'"),  # both 02:30 in Berlin
    ("timestamp_micros(1)", "timestamp_micros(2)"),
    ("array(timestamp_micros(1))", "array(timestamp_micros(2))"),
    # Nested
    ("array(NULL, 1)", "array(1, NULL)"),
    ("array(1, 2)", "array(2, 1)"),
    ("cast(array() as array<int>)", "cast(NULL as array<int>)"),
    ("array(cast(NULL as int))", "cast(array() as array<int>)"),
    ("array(array(1), array(2))", "array(array(1, 2))"),
    ("array(array(1, 2), array())", "array(array(1), array(2))"),
    ("array(array(true), array(boolean(NULL)))", "array(array(true, true))"),  # a flag looks like a boolean
    ("named_struct('x', cast(NULL as int))", "cast(NULL as struct<x: int>)"),
    ("named_struct('x', int(NULL), 'y', 1)", "named_struct('x', 1, 'y', int(NULL))"),
    ("named_struct('x', named_struct('y', int(NULL)))", "named_struct('x', cast(NULL as struct<y: int>))"),
    ("array(named_struct('x', int(NULL)))", "array(cast(NULL as struct<x: int>))"),
    ("map(1, 2)", "map(2, 1)"),
    ("map('a', cast(NULL as int))", "cast(map() as map<string, int>)"),
    ("map('a', array(NULL, 'b'))", "map('a', array('b', NULL))"),
    ("map(named_struct('x', int(NULL), 'y', 1), 2)", "map(named_struct('x', 1, 'y', int(NULL)), 2)"),
]
# Two multisets of rows each: how many, and which value with which.
ROWS = [
    ("VALUES (cast(NULL as int), 1) t(a, b)", "VALUES (1, cast(NULL as int)) t(a, b)"),
    ("VALUES (int(NULL)) t(a)", "VALUES (int(NULL)), (int(NULL)) t(a)"),
    ("VALUES (1), (1) t(a)", "VALUES (2), (2) t(a)"),
    ("VALUES (1), (1), (2) t(a)", "VALUES (1), (2), (2) t(a)"),
    ("VALUES (1, 2) t(a, b)", "VALUES (2, 1) t(a, b)"),
    ("VALUES (1, 2), (3, 4) t(a, b)", "VALUES (1, 4), (3, 2) t(a, b)"),
    ("VALUES ('ab', 'c') t(a, b)", "VALUES ('a', 'bc') t(a, b)"),
    ("VALUES (array(1), array(2, 3)) t(a, b)", "VALUES (array(1, 2), array(3)) t(a, b)"),
    ("VALUES (1) t(a) LIMIT 0", "VALUES ('1') t(a) LIMIT 0"),
]


def write_table(engine: SparkEngine, name: str, sql: str) -> Table:
    """A table of files with a query's rows: what Spark folds while it plans is hashed by other code."""
    engine.fetch(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    engine.fetch(f"DROP TABLE IF EXISTS {SCHEMA}.{name}")
    engine.fetch(f"CREATE TABLE {SCHEMA}.{name} USING parquet AS {sql}")
    return Table(f"{SCHEMA}.{name}", engine.schema(f"SELECT * FROM {SCHEMA}.{name}"))


def content(engine: SparkEngine, sql: str, columns: ColumnSet | None = None) -> Content:
    """The content of a query's rows."""
    table = write_table(engine, "x", sql if sql.startswith("SELECT") else f"SELECT * FROM {sql}")
    asked = tuple(sorted(column.name for column in table.columns)) if columns is None else columns
    return engine.tables.contents(table, [asked])[asked][WHOLE]


def january(first: int, last: int) -> Interval:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    return Interval(start + timedelta(days=first - 1), start + timedelta(days=last))


def fill_table(engine: SparkEngine, table: Table, sql: str) -> Table:
    """A table with these rows."""
    engine.tables.create(table)
    engine.tables.replace(table, sql)
    return table


def test_values_that_a_reader_can_tell_apart_have_different_contents(engine: SparkEngine) -> None:
    names = [f"c{n}" for n in range(len(VALUES))]
    contents = []
    for side in (0, 1, 1):
        columns = ", ".join(f"{pair[side]} {name}" for name, pair in zip(names, VALUES, strict=True))
        contents.append(
            engine.tables.contents(write_table(engine, "v", f"SELECT {columns}"), [(name,) for name in names])
        )
    one, other, again = contents

    assert set(one) == {(name,) for name in names}
    assert [pair for name, pair in zip(names, VALUES, strict=True) if one[(name,)] == other[(name,)]] == []
    assert other == again


@pytest.mark.parametrize(("one", "other"), ROWS)
def test_rows_that_a_reader_can_tell_apart_have_different_contents(engine: SparkEngine, one: str, other: str) -> None:
    assert content(engine, one) != content(engine, other)


def test_the_time_zone_of_the_session_is_no_content(engine: SparkEngine) -> None:
    table = write_table(
        engine, "x", "SELECT timestamp'2024-10-27 00:30:00Z' a, array(timestamp'2024-10-27 00:30:00Z') b"
    )
    conf = engine._sessions.current.spark.conf
    before = str(conf.get("spark.sql.session.timeZone"))
    here = engine.tables.contents(table, [("a",), ("b",)])

    conf.set("spark.sql.session.timeZone", "Europe/Berlin" if before != "Europe/Berlin" else "UTC")
    elsewhere = engine.tables.contents(table, [("a",), ("b",)])
    conf.set("spark.sql.session.timeZone", before)

    assert here == elsewhere


def test_files_and_their_order_are_no_content(engine: SparkEngine) -> None:
    one = fill_table(engine, ORDERS, "SELECT id a, string(id % 7) b FROM range(0, 500, 1, 1)")
    many = "SELECT /*+ REPARTITION(9) */ 499 - id a, string((499 - id) % 7) b FROM range(500) ORDER BY b"
    other = fill_table(engine, Table(f"{SCHEMA}.other", PAIR), many)

    contents = [engine.tables.contents(table, [("a", "b")])[("a", "b")][WHOLE] for table in (one, other)]

    assert contents[0] == contents[1]
    assert contents[0].rows == 500


def test_several_column_sets_are_told_by_one_pass(engine: SparkEngine) -> None:
    fill_table(engine, ORDERS, "SELECT id a, string(id % 7) b FROM range(50)")
    sets: list[ColumnSet] = [("a",), ("b",), ("a", "b"), (), ("a",)]
    fields = engine._sessions.run(f"SELECT * FROM {ORDERS.name}").schema.fields
    before = engine.jobs()

    together = engine.tables.contents(ORDERS, sets)

    assert engine.jobs() - before <= 2  # the two stages of one query
    plan = str(engine.fetch(f"EXPLAIN {build_content_query(ORDERS, fields, sets, None).sql}").rows[0][0])
    assert plan.count("FileScan") == 1
    assert list(together) == sets[:4]
    assert together == {set_: engine.tables.contents(ORDERS, [set_])[set_] for set_ in sets[:4]}


def test_no_columns_ask_for_the_number_of_rows(engine: SparkEngine) -> None:
    assert content(engine, "VALUES (1), (2) t(a)", ()) == content(engine, "VALUES (3), (3) t(a)", ())
    assert content(engine, "VALUES (1), (2) t(a)", ()) != content(engine, "VALUES (1) t(a)", ())


def test_a_column_that_is_not_asked_for_is_not_compared(engine: SparkEngine) -> None:
    assert content(engine, "VALUES (1, 2) t(a, b)", ("a",)) == content(engine, "VALUES (1, 3) t(a, b)", ("a",))


def test_a_table_without_rows_has_the_content_of_no_rows(engine: SparkEngine) -> None:
    fill_table(engine, ORDERS, "SELECT 1 a, 'b' b WHERE false")

    contents = engine.tables.contents(ORDERS, [("a",), ()])

    assert {by_period[WHOLE].rows for by_period in contents.values()} == {0}
    assert contents[("a",)][WHOLE] == empty_content([("a", "bigint")])


@pytest.mark.parametrize("odd", ["parse_json('1')", "interval '1' day", "array(parse_json('1'))", "NULL"])
def test_what_cannot_be_compared_is_left_out(engine: SparkEngine, odd: str) -> None:
    engine.catalog.swap_view(ViewText(f"{SCHEMA}.v", f"SELECT 1 a, {odd} b"))  # not all of these can be in a table

    contents = engine.tables.contents(Table(f"{SCHEMA}.v", ()), [("a",), ("a", "b"), ("b",), ("a", "missing")])

    assert set(contents) == {("a",)}


@pytest.mark.parametrize(
    ("kind", "compared"), [("char(5)", False), ("struct<x: char(5)>", False), ("varchar(5)", True)]
)
def test_a_column_whose_literals_spark_pads_is_not_compared(engine: SparkEngine, kind: str, compared: bool) -> None:
    """`c = 'a'` finds 'a' and four spaces in a char(5), and in no string of the same bytes."""
    table = Table(f"{SCHEMA}.padded", ())
    engine.fetch(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    engine.fetch(f"DROP TABLE IF EXISTS {table.name}")
    engine.fetch(f"CREATE TABLE {table.name} (id INT, c {kind}) USING parquet")

    assert (("c",) in engine.tables.contents(table, [("c",), ("id",)])) is compared


def test_nothing_that_can_be_compared_means_no_job(engine: SparkEngine) -> None:
    fill_table(engine, ORDERS, "SELECT 1 a, 'b' b")
    before = engine.jobs()

    assert engine.tables.contents(ORDERS, [("missing",)]) == {}
    assert engine.jobs() == before


def test_a_struct_is_not_mistaken_for_a_table(engine: SparkEngine) -> None:
    one = "SELECT 1 a, named_struct('a', 2) t, named_struct('key', 5) x0, map(1, 3) m"
    other = "SELECT 1 a, named_struct('a', 4) t, named_struct('key', 5) x0, map(2, 3) m"

    assert content(engine, one, ("t",)) != content(engine, other, ("t",))
    assert content(engine, one, ("m",)) != content(engine, other, ("m",))


# Periods


def test_every_day_of_the_interval_is_told_with_or_without_rows(engine: SparkEngine) -> None:
    engine.tables.create(DAILY)
    engine.tables.replace_interval(DAILY, "SELECT date'2024-01-02' dt, id v FROM range(3)", january(1, 4))
    engine.tables.replace_interval(DAILY, "SELECT date'2024-01-05' dt, 1 v", january(5, 5))

    contents = engine.tables.contents(DAILY, [("v",)], january(1, 4))[("v",)]

    assert {period: day_content.rows for period, day_content in contents.items()} == {
        "2024-01-01": 0, "2024-01-02": 3, "2024-01-03": 0, "2024-01-04": 0,
    }  # fmt: skip
    assert contents["2024-01-01"] == contents["2024-01-03"] == empty_content([("v", "int")])


def test_only_the_day_that_changed_is_different(engine: SparkEngine) -> None:
    sql = "SELECT date_add(date'2024-01-01', int(id % 4)) dt, int(id) v FROM range(40)"
    other = Table(f"{SCHEMA}.other", DAILY.columns, DAILY.partitioning)
    for table in (DAILY, other):
        engine.tables.create(table)
        engine.tables.replace_interval(table, sql, january(1, 4))
    engine.tables.replace_interval(other, "SELECT date'2024-01-03' dt, -1 v", january(3, 3))

    mine, theirs = (
        Contents().plus(engine.tables.contents(side, [("dt", "v")], january(1, 4))) for side in (DAILY, other)
    )

    days = DAILY.partitioning.periods(january(1, 4)) if DAILY.partitioning else ()
    assert equal_periods(mine, theirs, ("dt", "v"), days) == {"2024-01-01", "2024-01-02", "2024-01-04"}


def test_hours_are_periods_of_a_table_cut_by_the_hour(engine: SparkEngine) -> None:
    start = datetime(2024, 10, 27, tzinfo=UTC)
    night = Interval(start, start + timedelta(hours=4))
    engine.tables.create(HOURLY)
    sql = "SELECT timestamp_seconds(1729987200 + 1800 * id) at, int(id) v FROM range(6)"
    engine.tables.replace_interval(HOURLY, sql, night)

    contents = engine.tables.contents(HOURLY, [("at",)], night)[("at",)]

    assert {period[11:]: hour_content.rows for period, hour_content in contents.items()} == {
        "00:00:00": 2, "01:00:00": 2, "02:00:00": 2, "03:00:00": 0,
    }  # fmt: skip


def test_a_table_cut_by_time_can_be_asked_as_a_whole(engine: SparkEngine) -> None:
    engine.tables.create(DAILY)
    engine.tables.replace_interval(DAILY, "SELECT date'2024-01-02' dt, id v FROM range(3)", january(1, 4))

    assert engine.tables.contents(DAILY, [("dt",)])[("dt",)][WHOLE].rows == 3


def test_days_are_asked_only_of_tables_that_are_cut(engine: SparkEngine) -> None:
    fill_table(engine, ORDERS, "SELECT 1 a, 'b' b")

    with pytest.raises(ValueError, match="not partitioned by time"):
        engine.tables.contents(ORDERS, [("a",)], january(1, 1))


def test_rows_outside_every_period_are_no_answer(engine: SparkEngine) -> None:
    cut = time_partitioning(HOURLY_COLUMNS, "at", "", 7_200)
    engine.tables.create(HOURLY)
    engine.tables.replace_interval(HOURLY, "SELECT timestamp'2024-01-01 01:30:00Z' at, 1 v", january(1, 1))

    with pytest.raises(QueryError, match="'2024-01-01 01:00:00', which is no period"):
        engine.tables.contents(Table(HOURLY.name, HOURLY_COLUMNS, cut), [("v",)], january(1, 1))


# Freshness and size


def test_a_table_that_another_session_pointed_elsewhere_is_read_there(engine: SparkEngine) -> None:
    fill_table(engine, ORDERS, "SELECT 1L a, 'old' b")
    moved = fill_table(engine, Table(f"{SCHEMA}.moved", PAIR), "SELECT 1L a, 'new' b")
    old = engine.tables.contents(ORDERS, [("b",)])
    details = engine.fetch(f"DESCRIBE TABLE EXTENDED {moved.name}").rows
    (place,) = (row[1] for row in details if row[0] == "Location")

    engine._sessions.current.spark.newSession().sql(f"ALTER TABLE {ORDERS.name} SET LOCATION '{place}'")

    assert engine.tables.contents(ORDERS, [("b",)]) == engine.tables.contents(moved, [("b",)]) != old


def test_sums_of_a_trillion_rows_do_not_overflow() -> None:
    assert 10**12 * (2**22 - 1) < 2**63


def test_a_missing_table_is_a_query_error(engine: SparkEngine) -> None:
    with pytest.raises(QueryError):
        engine.tables.contents(Table(f"{SCHEMA}.nothing", PAIR), [("a",)])


NUMBERS = st.none() | st.integers(-1, 1)
TEXTS = st.none() | st.sampled_from(["", "a", "A", "a ", "1"])
FLOATS = st.none() | st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf])
ARRAYS = st.none() | st.lists(st.none() | st.integers(0, 1), max_size=2)
MULTISETS = st.lists(st.tuples(NUMBERS, TEXTS, FLOATS, ARRAYS), max_size=3)
MANY_COLUMNS = tuple(Column(*pair.split(":")) for pair in "dt:date a:int b:string c:double d:array<int>".split())
MANY = Table(f"{SCHEMA}.many", MANY_COLUMNS, time_partitioning(MANY_COLUMNS, "dt", "", 86_400))


def value_sql(value: object) -> str:
    """A value in Spark SQL."""
    if isinstance(value, float):
        return f"double('{value}')"
    if isinstance(value, list):
        return f"array({', '.join(map(value_sql, value))})"
    return "NULL" if value is None else repr(value)


def days_query(multisets: list[list[tuple[object, ...]]]) -> str:
    """A query for all of these rows, each multiset on a day of its own."""
    types = [column.type for column in MANY_COLUMNS[1:]]
    rows = ["date(NULL), 0, '', 0D, array(0)"]
    for day, multiset in enumerate(multisets, start=1):
        for row in multiset:
            cells = (f"cast({value_sql(value)} as {kind})" for value, kind in zip(row, types, strict=True))
            rows.append(", ".join([f"date'2024-01-{day:02}'", *cells]))
    return f"SELECT * FROM VALUES ({'), ('.join(rows)}) t(dt, a, b, c, d)"


@LAWS
@given(multisets=st.lists(MULTISETS, min_size=9, max_size=9), mix=st.randoms(use_true_random=False))
def test_contents_are_equal_if_and_only_if_the_rows_are(
    engine: SparkEngine, multisets: list[list[tuple[object, ...]]], mix: Random
) -> None:
    every = [
        *multisets,
        *(mix.sample(multiset, len(multiset)) for multiset in multisets),
        *(multiset[1:] for multiset in multisets),
    ]
    engine.fetch(f"DROP TABLE IF EXISTS {MANY.name}")
    engine.tables.create(ORDERS)  # and with it the schema
    engine.fetch(f"CREATE TABLE {MANY.name} USING parquet PARTITIONED BY (dt) AS {days_query(every)}")
    columns = ("a", "b", "c", "d")

    contents = list(engine.tables.contents(MANY, [columns], january(1, len(every)))[columns].values())

    rows = [frozenset(Counter(map(repr, multiset)).items()) for multiset in every]
    assert [[a == b for b in contents] for a in contents] == [[a == b for b in rows] for a in rows]
