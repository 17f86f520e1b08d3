"""The type that a column is said to have is the one that Spark gives it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from pyspark.sql import SparkSession

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError, QueryError
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.semantics.columns import model_shape, shape_of
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.types import COLLATED, normalize_type
from tests.planner.test_written_and_run import EVERY, NOW, queries

TYPED = """(SELECT CAST(id AS INT) AS i,
    CAST(id AS BIGINT) AS b, CAST(id AS DECIMAL(10, 2)) AS d, CAST(id AS FLOAT) AS r,
    CAST(id AS DOUBLE) AS f, CAST(id AS TINYINT) AS t, CAST(id AS STRING) AS s, DATE '2024-01-01' AS day,
    CAST('2024-01-01' AS TIMESTAMP) AS ts, CAST('2024-01-01' AS TIMESTAMP_NTZ) AS wall, CAST(id AS DECIMAL(38, 6)) AS w
    FROM VALUES (0), (1) AS v (id))"""
KNOWN = """i + 1; i * b; t + t; i / 2; b / r; b % i; -i; abs(f); i + f; coalesce(i, b, NULL); coalesce(day, day)
    greatest(t, i); CASE WHEN i = 1 THEN 1 ELSE b END; CASE WHEN i = 1 THEN d END; if(i = 1, f, 0); nullif(s, 'a')
    nvl(s, 'x'); upper(s); substring(s, 1, 2); trim(s); replace(s, 'a', 'b'); left(s, 1); lpad(s, 3, '0'); s || i
    regexp_replace(s, 'a', 'b'); datediff(day, day); timestampdiff(DAY, day, day); datediff(DAY, day, day)
    row_number() OVER (ORDER BY i); dense_rank() OVER (ORDER BY i) + 1; ntile(2) OVER (ORDER BY i); count(*) OVER ()
    percent_rank() OVER (ORDER BY i); lag(s) OVER (ORDER BY i); sum(t) OVER (PARTITION BY s); max(d) OVER (ORDER BY i)
    avg(d) OVER (ORDER BY i); first_value(day) OVER (ORDER BY i); (SELECT max(id) AS m FROM (SELECT 1 AS id))
    current_date(); current_timestamp(); now(); localtimestamp(); from_utc_timestamp(ts, 'UTC'); current_user()
    to_utc_timestamp(day, 'UTC'); date_trunc('month', ts); date_trunc('month', wall); date_trunc('day', day)
    date_trunc('year', s); trunc(day, 'mm'); add_months(ts, 1); date_add(day, 1); date_sub(ts, 1); dateadd(DAY, 1, ts)
    dateadd(HOUR, 1, wall); next_day(day, 'Mon'); make_date(2024, 1, 1); date_from_unix_date(1); timestamp_seconds(1)
    day + INTERVAL '1' DAY; day - INTERVAL 1 MONTH; day + INTERVAL '2 weeks'; ts + INTERVAL '1' HOUR; day + 1; day - t
    wall - INTERVAL '1' MONTH; date_format(ts, 'yyyy'); from_unixtime(b); unix_timestamp(s, 'yyyy'); hour(ts); minute(s)
    second(wall); dayofweek(day); weekday(day); dayofyear(ts); weekofyear(day); ascii(s); instr(s, 'a'); locate('a', s)
    size(split(s, ',')); levenshtein(s, s); sqrt(i); power(d, 2); exp(f); ln(i); log(2, d); log10(i); sign(d); rand(1)
    months_between(day, ts); round(f, 2); round(i); round(t, -1); bround(r, 1); ceil(f); floor(i); ceil(r); i DIV 2
    concat_ws(',', s, i, split(s, ',')); reverse(s); repeat(s, 2); translate(s, 'a', 'b'); regexp_extract(s, 'a', 0)
    substring_index(s, ',', 1); sha2(s, 256); sha1(s); crc32(s); hash(s, i); xxhash64(s); uuid(); chr(i)
    unix_millis(ts); monotonically_increasing_id(); get_json_object(s, '$.a'); to_json(struct(i)); base64(s)
    startswith(s, 'a'); s RLIKE 'a'; s ILIKE 'a'; contains(s, 'a'); isnan(f); array_contains(split(s, ','), 'a')
    unix_date(day); bin(i); conv(s, 10, 2); typeof(day); d + d; d - i; d * b; t * d; -d; abs(w); i + 1.5; d * 0.25
    format_number(f, 2); d + f; f / d; 1.50; 0.05; coalesce(d, 0); greatest(d, i, 1.5); least(d, w, t)
    CASE WHEN i = 1 THEN d ELSE 0.0 END; coalesce(d, f)"""
FOLDED = """max(i); min(s); sum(i); sum(d); sum(f); sum(r); avg(i); avg(d); avg(f); count(DISTINCT s); any_value(day)
    max_by(s, i); max(i) FILTER (WHERE i > 0); count_if(i > 0); sum(i) / count(*); stddev(d); var_pop(i); corr(i, f)
    bool_or(i = 1); every(i = 1); sum(CASE WHEN i = 1 THEN d ELSE 0 END); covar_samp(f, d)
    CASE WHEN max(i) > 1 THEN sum(t) ELSE 0 END"""
UNKNOWN = """d * 2; d / i; day - day; coalesce(s, i); CASE WHEN i = 1 THEN i ELSE s END; r + i; upper(i); w * w; w + d
    coalesce(day, current_timestamp()); lag(i, 1, f) OVER (ORDER BY i); array(i); round(d, 1); ceil(d); floor(f, 1)
    day + INTERVAL '1' HOUR; day + INTERVAL '1 day 2 hours'; ts - ts; dateadd(DAY, 1, day); coalesce(r, d); d % d; r + d
    greatest(w, CAST(i AS DECIMAL(38, 0)))"""


def spell(type_: str) -> str:
    """A type as Spark's schemas write it."""
    return normalize_type(type_).translate({ord(" "): "", ord("`"): ""})


@contextmanager
def under_ansi(value: str) -> Iterator[None]:
    """Spark with this value of its ANSI mode."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", value)
    yield
    spark.conf.set("spark.sql.ansi.enabled", before or "true")


def listed(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", ";").split(";") if part.strip()]


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("values", [KNOWN, FOLDED])
def test_a_type_that_follows_from_those_of_its_operands_is_sparks(engine: SparkEngine, values: str, ansi: str) -> None:
    outputs = ", ".join(f"{value} AS c{number}" for number, value in enumerate(listed(values)))
    sql = f"SELECT {outputs} FROM {TYPED}"

    said = dict(shape_of(sql, {}).types)
    with under_ansi(ansi):
        schema = engine.schema(sql)
    assert {c.name: (value, spell(said.get(c.name, ""))) for c, value in zip(schema, listed(values), strict=True)} == {
        c.name: (value, c.type) for c, value in zip(schema, listed(values), strict=True)
    }


@pytest.mark.parametrize("value", listed(UNKNOWN))
def test_a_type_that_settings_or_further_rules_decide_is_not_known(value: str) -> None:
    assert shape_of(f"SELECT {value} AS c FROM {TYPED}", {}).types == ()


def test_a_type_that_is_only_declared_of_a_table_gives_no_other_value_one() -> None:
    declared = Parent(("a",), types=(("a", "int"),))
    sql = "SELECT a, a + 1 AS more, max(a) OVER () AS most FROM s.t"

    assert shape_of(sql, {"s.t": declared}).types == (("a", "int"),)
    stated = Parent(("a",), types=(("a", "int"),), stated=("a",))
    assert shape_of(sql, {"s.t": stated}).types == (("a", "int"), ("more", "int"), ("most", "int"))


@pytest.mark.parametrize("join", ["FULL JOIN", "LEFT JOIN", "CROSS JOIN"])
def test_a_joined_query_gives_its_columns_types(join: str) -> None:
    on = "" if join == "CROSS JOIN" else "ON a.x = b.y"
    sql = f"SELECT x, y, x + y AS sum FROM (SELECT 1 AS x) AS a {join} (VALUES (2), (NULL)) AS b (y) {on}"

    assert dict(shape_of(sql, {}).types) == {"x": "int", "y": "int", "sum": "int"}


@pytest.mark.prove
def test_no_type_that_is_known_of_a_documented_query_is_another_one_in_spark(engine: SparkEngine) -> None:
    engine.fetch("CREATE DATABASE raw")
    engine.fetch("CREATE VIEW raw.rows AS SELECT id FROM range(4)")
    read = {"raw.rows": Parent(("id",), types=(("id", "bigint"),), stated=("id",))}
    wrong, total = [], 0
    for sql in queries(engine):
        plain = sql.replace("range(4)", "raw.rows").replace("1.5BD", "CAST(1.5 AS DECIMAL(2, 1))")
        with suppress(QueryError, ProjectError):
            model, _ = parse_model(f"MODEL (name shop.a, kind FULL);\n{plain}", "a.sql", Defaults(NOW))
            assert model is not None
            shape = model_shape(model, read)
            types = {name: spell(known) for name, known in shape.types if known != COLLATED}
            spark = [column.type for column in engine.schema(f"SELECT * FROM ({plain})")]
            by_place = zip(shape.columns or (), spark, strict=bool(types))
            pairs = [(types[name], real) for name, real in by_place if name in types]
            total += len(pairs)
            wrong += [(plain, pairs)] if any(known != real for known, real in pairs) else []

    assert wrong == []
    assert total > (200 if EVERY else 30)
