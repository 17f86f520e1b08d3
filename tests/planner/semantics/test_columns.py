import json
import resource
from dataclasses import replace
from pathlib import Path

import pytest
import sqlglot

from mergeplan.planner.semantics.columns import _as_written as written_text
from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.spark.spark_functions import folds_rows, is_unknown

PARENTS = {"s.a": Parent(("id", "x", "d")), "s.b": Parent(("id", "y")), "s.e": Parent(("id", "d"))}
SINCE = "(SELECT id, @start_ds AS t FROM s.b)"
DATED = {**PARENTS, **{name: replace(PARENTS[name], types=(("d", "date"),)) for name in ("s.a", "s.e")}}


def test_a_query_reads_columns_for_its_rows_and_for_its_outputs() -> None:
    reads = shape_of("SELECT id, x + 1 AS more FROM s.a WHERE d > '2020-01-01'", PARENTS).reads["s.a"]

    assert reads.rows == {"d"}
    assert reads.outputs == {"id": {"id"}, "more": {"x"}}
    assert not reads.every


def test_counting_rows_reads_no_column() -> None:
    reads = shape_of("SELECT COUNT(*) AS n FROM s.a", PARENTS).reads["s.a"]

    assert (reads.rows, reads.outputs, reads.every) == (frozenset(), {}, False)


@pytest.mark.parametrize("call", ["HASH(*)", "STRUCT(*)", "COUNT(DISTINCT *)", "COUNT(*, 1)", "COUNT(1, *)"])
def test_a_star_inside_a_function_reads_every_column(call: str) -> None:
    assert shape_of(f"SELECT {call} AS h FROM s.a", PARENTS).reads["s.a"].outputs["h"] == {"id", "x", "d"}


def test_columns_are_followed_through_ctes_and_subqueries() -> None:
    sql = "WITH c AS (SELECT id, x + 1 AS more, d FROM s.a WHERE x > 0) SELECT q.more FROM (SELECT * FROM c) AS q"

    reads = shape_of(sql, PARENTS).reads["s.a"]

    assert (reads.rows, reads.outputs) == ({"x"}, {"more": {"x"}})


def test_the_order_of_and_and_the_parentheses_do_not_change_the_shape() -> None:
    one = shape_of("SELECT id FROM s.a WHERE (x = 1) AND d = 'q' AND (id = 2 OR x = 3)", PARENTS)
    two = shape_of("SELECT a.id FROM s.a AS a WHERE ((x = 3 OR id = 2) AND d = 'q') AND x = 1", PARENTS)

    assert one.text == two.text


def test_parentheses_that_matter_do_change_the_shape() -> None:
    assert (
        shape_of("SELECT (id + x) * 2 AS n FROM s.a", PARENTS).text
        != shape_of("SELECT id + x * 2 AS n FROM s.a", PARENTS).text
    )


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT DISTINCT id, x FROM s.a", {"id", "x"}),
        ("SELECT id FROM s.a EXCEPT SELECT id FROM s.b", {"id"}),
        ("SELECT id FROM s.a ORDER BY x LIMIT 3", {"x"}),
        ("SELECT id, COUNT(*) AS n FROM s.a GROUP BY ALL", {"id"}),
    ],
)
def test_outputs_that_decide_rows_are_read_for_the_rows(sql: str, rows: set[str]) -> None:
    assert shape_of(sql, PARENTS).reads["s.a"].rows == rows


def test_a_bare_name_that_could_be_a_column_or_an_alias_is_not_decided() -> None:
    assert not shape_of("SELECT x + 1 AS x, COUNT(*) AS n FROM s.a GROUP BY x HAVING x > 1", PARENTS).known


def test_the_order_of_a_view_by_all_is_that_of_its_columns() -> None:
    view, swapped = (f"SELECT {columns} FROM s.a ORDER BY ALL" for columns in ("id, x", "x AS id, id AS x"))

    assert shape_of(view, PARENTS).order != shape_of(swapped, PARENTS).order


def test_a_schema_with_the_name_of_a_column_is_not_decided() -> None:
    """Spark reads `s.a.id` as a field of the inner `s` if there is one."""
    parents = {**PARENTS, "s.q": Parent(("id", "s"))}
    query = "SELECT id FROM s.a WHERE EXISTS (SELECT 1 FROM s.{} AS q WHERE q.id = s.a.x)"

    assert shape_of(query.format("b"), parents).known
    assert not shape_of(query.format("q"), parents).known


def test_a_parent_whose_columns_are_not_known_leaves_the_query_unknown() -> None:
    shape = shape_of("SELECT k FROM s.unknown", {})

    assert not shape.known
    assert shape.reads["s.unknown"].every


def test_a_column_that_no_parent_has_is_named() -> None:
    assert shape_of("SELECT id, nope FROM s.a", PARENTS).unresolved == "nope"


def test_chance_and_the_clock_make_an_output_volatile() -> None:
    sql = "SELECT id, RAND() AS r, CURRENT_DATE() AS t, my_udf(x) AS u, DATE 'today' AS v FROM s.a"

    shape = shape_of(sql, PARENTS)

    assert shape.volatile == {"r", "t", "u", "v"}
    assert not shape.volatile_rows


def test_every_aggregate_of_spark_is_known_to_fold_rows_or_is_a_stranger() -> None:
    names = json.loads((Path(__file__).parent / "spark_aggregates.json").read_text())
    for name in names:
        call = sqlglot.parse_one(_call(name), dialect="spark").selects[0]

        assert any(folds_rows(node) or is_unknown(node) for node in call.walk()), name


def _call(name: str) -> str:
    for arguments in ("x", "x, y", "x, y, z"):
        sql = f"SELECT {name}({arguments}) FROM t"
        try:
            sqlglot.parse_one(sql, dialect="spark")
        except sqlglot.errors.SqlglotError:
            continue
        return sql
    raise AssertionError(name)


def test_the_dates_that_a_run_fills_in_are_no_columns() -> None:
    shape = shape_of("SELECT id FROM s.a WHERE d BETWEEN `@start_date` AND `@end_date`", PARENTS)

    assert shape.known
    assert shape.reads["s.a"].rows == {"d"}


def test_what_an_unnamed_generator_returns_is_named_by_spark_and_so_not_known() -> None:
    assert shape_of("SELECT id, EXPLODE(ARRAY(x)) FROM s.a", PARENTS).columns is None
    assert shape_of("SELECT id, EXPLODE(ARRAY(x)) AS e FROM s.a", PARENTS).columns == ("id", "e")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM (SELECT id, m['k'] FROM s.a)",  # Spark: m[k]
        "WITH c AS (SELECT id, x > 1 FROM s.a) SELECT * FROM c",
        "SELECT * FROM (SELECT id, CAST(CAST(x AS INT) AS STRING) FROM s.a)",
        "SELECT * FROM (SELECT id, CAST(d.k AS STRING) FROM s.a)",
        "SELECT * FROM (SELECT id, EXPLODE(m) FROM s.a)",  # key and value
        "SELECT TO_JSON(STRUCT(*)) AS j FROM (SELECT id, x > 1 FROM s.a)",
        "SELECT q.x FROM s.a AS q WHERE EXISTS (SELECT 1 FROM (SELECT m['x'] FROM s.a) AS p WHERE x = 1)",
        "SELECT * FROM VALUES (1, 2)",
        "SELECT a.id FROM (SELECT id, x + 1 FROM s.a) AS a NATURAL JOIN (SELECT id, x + 1 FROM s.a) AS b",
    ],
)
def test_columns_that_spark_names_after_their_text_are_not_followed(query: str) -> None:
    shape = shape_of(query, {"s.a": Parent(("id", "x", "d", "m"))})

    assert not shape.known


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM (SELECT id, CAST(a.x AS STRING), (d) FROM s.a)",
        "SELECT *, 1 AS n FROM s.a WHERE EXISTS (SELECT 1 FROM s.a) AND id > (SELECT MAX(id) FROM s.a)",
        "SELECT * FROM (SELECT id, x FROM s.a UNION ALL SELECT id, 0 FROM s.a)",
        "SELECT * FROM (SELECT id, x + 1 FROM s.a) AS q(id, y)",
        "WITH c AS (SELECT id, COUNT(*) FROM s.a GROUP BY id) SELECT id FROM c",
    ],
)
def test_columns_with_a_name_of_their_own_are_followed_through_a_star(query: str) -> None:
    assert shape_of(query, {"s.a": Parent(("id", "x", "d", "m"))}).relation is not None


@pytest.mark.parametrize(
    ("output", "folds"),
    [
        ("SUM(x) OVER (PARTITION BY d)", False),
        ("LAST_VALUE(x) IGNORE NULLS OVER (ORDER BY d)", False),
        ("SUM(SUM(x)) OVER ()", True),
        ("RANK() OVER (ORDER BY COUNT(*))", True),
    ],
)
def test_an_aggregate_inside_a_window_makes_one_row_of_all(output: str, folds: bool) -> None:
    frame = shape_of(f"SELECT 'z' AS z, {output} AS o FROM s.a", PARENTS).frame

    assert ("GROUP BY" in frame) is folds


@pytest.mark.parametrize("group", ["CUBE(1)", "ROLLUP(1, 2)", "GROUPING SETS ((1), ())"])
def test_a_query_with_numbers_inside_a_grouping_is_like_itself_alone(group: str) -> None:
    shape = shape_of(f"SELECT id, x, COUNT(*) AS n FROM s.a GROUP BY {group}", PARENTS)

    assert shape.relation is None
    assert shape.reads["s.a"].every


@pytest.mark.parametrize(
    ("output", "volatile"),
    [
        ("(SELECT y FROM s.b LIMIT 1)", True),
        ("SUM(x) OVER (ORDER BY d ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)", True),
        ("SUM(x) OVER (ORDER BY d)", False),
        ("SUM(x) OVER (ORDER BY d ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)", False),
    ],
)
def test_what_depends_on_which_of_equal_rows_comes_first_may_come_out_otherwise(output: str, volatile: bool) -> None:
    assert ("o" in shape_of(f"SELECT id, {output} AS o FROM s.a", PARENTS).volatile) is volatile


@pytest.mark.parametrize(
    ("sql", "volatile", "rows"),
    [
        ("SELECT d, id, x FROM s.a WHERE {}", (), False),
        ("SELECT CAST(d AS DATE) AS d, id, SUM(x) AS x FROM s.a WHERE {} GROUP BY 1, 2", (), False),
        ("SELECT d, SUM(x) OVER (PARTITION BY d, id) AS t FROM s.a WHERE {}", (), False),
        (
            "SELECT d, b.m FROM s.a JOIN (SELECT id, MAX(y) AS m FROM s.b GROUP BY id) AS b ON b.id = a.id WHERE {}",
            (),
            False,
        ),
        ("SELECT id, MAX(d) AS d FROM s.a GROUP BY id", (), False),
        ("SELECT d, SUM(x) OVER (PARTITION BY id) AS t FROM s.a WHERE {}", ("t",), False),
        ("SELECT d, @start_ds AS t FROM s.a WHERE {}", ("t",), False),
        ("SELECT d, (SELECT MAX(x) FROM s.a WHERE {}) AS t FROM s.a WHERE {}", ("t",), False),
        ("SELECT id, MAX(d) AS d FROM s.a WHERE {} GROUP BY id", (), True),
        ("WITH a AS (SELECT * FROM s.a WHERE {}), n AS (SELECT COUNT(*) AS n FROM a) SELECT d, n FROM a, n", (), True),
        ("SELECT d FROM s.a WHERE {} AND id IN (SELECT id FROM s.a WHERE {})", (), True),
        ("SELECT a.d FROM s.a JOIN s.e ON a.id = e.id WHERE a.{} AND e.{}", (), True),
        ("SELECT d FROM s.a WHERE {} AND x <= @end_ds", (), True),
        ("SELECT MAKE_DATE(2026, 1, d) AS d, SUM(x) OVER (PARTITION BY x) AS t FROM s.a WHERE {}", (), True),
        ("SELECT COALESCE(x, d) AS d, SUM(x) OVER (PARTITION BY x) AS t FROM s.a WHERE {}", (), True),
        ("SELECT DATE_ADD(d, 1) AS d, x FROM s.a WHERE {}", (), True),
        ("SELECT a.d, SUM(x) OVER (PARTITION BY e.d) AS t FROM s.a JOIN s.e ON a.id = e.id WHERE a.{}", ("t",), False),
        ("SELECT d, x FROM s.a WHERE {} UNION ALL SELECT d, id FROM s.e WHERE {}", (), False),
        (f"SELECT a.d, b.t FROM s.a LEFT JOIN {SINCE} AS b ON b.id = a.id WHERE a.{{}}", ("t",), False),
        (f"SELECT a.d, b.t IS NULL AS n FROM {SINCE} AS b RIGHT JOIN s.a ON b.id = a.id WHERE a.{{}}", ("n",), False),
        (
            f"SELECT a.d, MAX(b.t) AS t FROM s.a LEFT JOIN {SINCE} AS b ON b.id = a.id WHERE a.{{}} GROUP BY a.d",
            ("t",),
            False,
        ),
        (f"SELECT a.d, 1 AS o FROM s.a LEFT JOIN {SINCE} AS b ON b.id = a.id WHERE a.{{}} AND b.t > '2'", (), True),
        (f"SELECT a.d, b.t FROM s.a FULL JOIN {SINCE} AS b ON b.id = a.id", (), True),
        (
            "SELECT a.d, l.t FROM s.a, LATERAL (SELECT @end_ds AS t FROM s.b WHERE b.id = a.id) AS l WHERE a.{}",
            ("t",),
            False,
        ),
        ("SELECT d, t FROM (SELECT d, @start_ds AS t FROM s.a UNION ALL SELECT d, 'x' AS t FROM s.e)", (), True),
        (
            f"SELECT a.d, u.t FROM s.a JOIN ({SINCE} UNION ALL SELECT x, 'x' FROM s.a) AS u ON u.id = x WHERE a.{{}}",
            ("t",),
            False,
        ),
    ],
)
def test_what_looks_beyond_its_own_day_comes_out_otherwise_in_other_batches(
    sql: str, volatile: tuple[str, ...], rows: bool
) -> None:
    shape = shape_of(sql.replace("{}", "d BETWEEN @start_ds AND @end_ds"), DATED, "d")

    assert (tuple(shape.volatile), shape.volatile_rows) == (volatile, rows)


@pytest.mark.parametrize(
    ("output", "date", "rows"),
    [
        ("d AS day", "ds", False),  # the table's time column, whose format says that it holds days
        ("CAST(d AS DATE) AS day", "ds", True),  # '2026-01-01T05:00' is after '2026-01-01'
        ("CAST(d AS DATE) AS day", "date", False),  # Spark casts the text to a day
    ],
)
def test_a_text_that_is_filtered_as_a_text_is_a_day_only_in_the_time_column(output: str, date: str, rows: bool) -> None:
    texts = {"s.a": replace(PARENTS["s.a"], types=(("d", "string"),))}

    shape = shape_of(f"SELECT {output}, x FROM s.a WHERE d BETWEEN @start_{date} AND @end_{date}", texts, "day")

    assert shape.volatile_rows is rows


@pytest.mark.parametrize(
    ("output", "parent", "volatile"),
    [
        ("SUM(x) + d", Parent(("id", "x", "d")), False),
        ("SUM(x) + d + RAND()", Parent(("id", "x", "d")), True),
        ("SUM(x) + d", Parent(("id", "x", "d"), volatile=frozenset({"x"})), True),
        ("SUM(x) + d", Parent(("id", "x", "d"), volatile_rows=True), True),
    ],
)
def test_a_query_that_cannot_be_followed_is_as_sure_as_what_it_reads(
    output: str, parent: Parent, volatile: bool
) -> None:
    shape = shape_of(f"SELECT id, {output} AS s FROM s.a GROUP BY ALL", {"s.a": parent})

    assert (shape.relation, shape.columns, shape.volatile_rows) == (None, ("id", "s"), volatile)
    assert shape.reads["s.a"].every


def test_the_columns_of_a_query_over_what_is_not_known_are_those_that_it_names() -> None:
    assert shape_of("SELECT k, COUNT(*) AS N FROM s.unknown GROUP BY k", {}).columns == ("k", "n")
    assert shape_of("SELECT * FROM s.unknown", {}).columns is None
    assert shape_of("SELECT k, EXPLODE(a) FROM s.unknown", {}).columns is None


@pytest.mark.parametrize(
    ("outputs", "followed"),
    [
        ("id, d, SUM(x) + 1 AS s", True),
        ("id, d, SUM(x) / COUNT(d) AS s", True),
        ("id, d, SUM(x) + d AS s", False),
        ("id, d, SUM(x) + ABS(d) AS s", False),
        ("id, SUM(x) + d AS s", False),
    ],
)
def test_under_group_by_all_a_column_beside_an_aggregate_is_not_followed(outputs: str, followed: bool) -> None:
    shape = shape_of(f"SELECT {outputs} FROM s.a GROUP BY ALL", PARENTS)

    assert (shape.relation is not None) == followed


def test_the_text_of_a_query_that_is_not_translated_grows_with_its_length_alone() -> None:
    one, two = (
        written_text(" UNION ALL ".join([f"SELECT a + {n} AS a FROM s.t" for n in range(size)])) for size in (100, 200)
    )

    assert len(two) < 2.2 * len(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT 'a' AS v FROM s.t", "SELECT a AS v FROM s.t"), ("SELECT 'a\\n' AS v", "SELECT 'a' AS v"),
        ("SELECT `a b` AS v FROM s.t", "SELECT a AS b, v FROM s.t"), ("SELECT 1 AS v", "SELECT '1' AS v"),
        ("SELECT f(a, b(c)) AS v FROM s.t", "SELECT f(a, b, c) AS v FROM s.t"),
        ("SELECT a FROM s.t", "SELECT DISTINCT a FROM s.t"),
        ("SELECT a FROM s.t UNION SELECT b FROM s.t", "SELECT a FROM s.t UNION ALL SELECT b FROM s.t"),
    ],
)  # fmt: skip
def test_two_queries_have_one_text_only_if_they_are_equal(one: str, other: str) -> None:
    assert written_text(one) != written_text(other)
    assert written_text(one) == written_text(one.replace(" AS ", " /* why */ as "))


def test_a_table_that_is_joined_with_itself_many_times_takes_no_memory() -> None:
    """Its orders are tried, and not listed: thirteen equal tables have 6,227,020,800."""
    joins = " ".join(f"JOIN s.a AS a{number} ON a{number}.id = a0.x" for number in range(1, 13))
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    before = resource.getrlimit(resource.RLIMIT_AS)
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**30, before[1]))
    try:
        shape = shape_of(f"SELECT a0.id FROM s.a AS a0 {joins}", PARENTS)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)

    assert shape.reads["s.a"].rows == {"id", "x"}


def test_the_types_of_a_long_union_are_read_once_for_each_query_in_it() -> None:
    query = " UNION ALL ".join(["SELECT CAST(1 AS INT) AS known, x AS unknown FROM s.a"] * 60)

    assert shape_of(query, {"s.a": Parent(("x",))}).types == (("known", "int"),)


def test_a_row_in_brackets_is_a_struct_whose_fields_have_names() -> None:
    parents = {"s.a": Parent(("x", "d"))}

    texts = {
        shape_of(f"SELECT TO_JSON({row}) AS v FROM s.a", parents).text for row in ("(x, d)", "(x AS k, d)", "(X, d)")
    }
    compared = {shape_of(f"SELECT x FROM s.a WHERE {row} = (1, 2)", parents).text for row in ("(x, d)", "(X, d)")}

    assert (len(texts), len(compared)) == (3, 1)


def test_a_text_at_which_the_parser_breaks_is_known_by_its_words() -> None:
    broken = "SELECT * FROM (SELECT id FROM s.a CROSS UNION ALL SELECT id FROM s.b) WHERE id > 1"

    assert not shape_of(broken, PARENTS).known
