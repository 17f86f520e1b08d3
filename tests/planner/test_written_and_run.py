"""Expressions as they are written and as they run here, side by side on Spark: the same rows, the same types.

`make prove` takes every example of Spark's own documentation of its functions, `make test` those written by hand. Where
the two texts are the same but for a column's name, `make test` does not ask Spark.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError, QueryError
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.parsing.render import render_model
from mergeplan.planner.parsing.sql.spark_registry import is_closed

pytestmark = pytest.mark.prove

NOW = datetime(2024, 5, 6, tzinfo=UTC)
EVERY = int(os.environ.get("MERGEPLAN_CASES", "0")) >= 1000
CALLED = re.compile(r"\b(\w+) ?\(")
OTHERWISE = re.compile(
    r"rand|uuid|now\(|current_|curdate|localtimestamp|unix_timestamp\(\)|shuffle|uniform|version\(|_file_|monotonically|aes_encrypt"
)
ROWS = "(SELECT id, id * 1.5BD AS p, CAST(id AS STRING) AS s, IF(id = 2, NULL, id) AS n, id > 1 AS b FROM range(4))"
BY_HAND = """
    floor(log10(1000 + id)); log10(id + 1); log2(id + 1); array_size(array(n)); p * 1L; p * 2; p / 3; 1.50BD; 2Y + 1S
    to_date('2024-01-0' || (s + 1), 'yyyy-MM-dd'); unix_date(DATE '2024-01-01'); date_format(TIMESTAMP '2024-12-30 01:02:03', 'y')
    get_json_object('{"f": 1}', 'f'); get_json_object('{"f": 1}', '$["f"]'); get_json_object('{"f": 1}', ' $.f')
    get_json_object('[{"f": 1}]', '$.*'); get_json_object('{"f": {"g": 2}}', '$.f.g'); get_json_object('{"f": [1, 2]}', '$.f[*]')
    n <=> id = b; NOT n = 1; !b; - -id; id - -1; 7 DIV 2; 7 % 4; 5 & 3 | 8 ^ 2; ~id; id || s || n; 1 + 2 || 3; id >>> 1; id << 1
    b AND n IS NULL OR id = 1; id BETWEEN 1 AND 2 AND b; s LIKE '1%'; s ILIKE ANY ('1', '2'); s RLIKE '[12]'; n IN (1, NULL)
    CASE id WHEN 1 THEN 'a' ELSE s END; if(b, 1, 2.0); coalesce(n, 0L); nvl(n, p); nvl2(n, 1, 2); nullif(id, 1); id::int::string
    CAST(id AS DECIMAL(10, 2)); try_cast(s || 'x' AS INT); CAST(struct(id, s) AS STRUCT<a: INT, b: STRING>); X'1F'; X '1F'; r'a\\b'
    'it''s'; "it's"; 'a' 'b'; '\\101\\u0041\\n'; 'a\\%b'; struct(id, s); named_struct('a', id).a; array(1, 2)[0]; map('a', id)['a']
    transform(array(1, 2), x -> x + id); aggregate(array(1, 2), 0, (a, x) -> a + x); filter(array(1, n), x -> x IS NOT NULL)
    INTERVAL 1 DAY; INTERVAL '1-2' YEAR TO MONTH; DATE '2024-01-31' + INTERVAL 1 MONTH; interval 1 day 2 hours; trunc(DATE '2024-05-05', 'mm')
    date_trunc('week', TIMESTAMP '2024-05-05 10:00:00'); extract(DOW FROM DATE '2024-05-05'); date_add(DATE '2024-01-01', 1)
    timestampadd(DAY, 1, DATE '2024-01-01'); datediff(DATE '2024-02-01', DATE '2024-01-01'); sum(id) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING)
    datediff(DAY, DATE '2024-02-01', DATE '2024-01-01'); timestampdiff(MONTH, DATE '2024-01-01', DATE '2024-03-01'); TIMESTAMP_NTZ '2024-01-01 00:00:00'
    substring('Spark' FROM 2 FOR 2); trim(BOTH 'x' FROM 'xax'); position('a' IN 'bar'); overlay('Spark' PLACING '_' FROM 2); split('a1b', '\\\\d')
    regexp_extract('100-200', '(\\\\d+)-(\\\\d+)', 1); regexp_replace('a.b', '[.]', '$0$0'); date_format(TIMESTAMP '2024-12-30 01:02:03', 'MMM d, yy')
    from_unixtime(0, 'yyyy'); to_timestamp('01/02/2024', 'dd/MM/yyyy'); a.b.c FROM (SELECT struct(struct(1 AS c) AS b) AS a)
    sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW); count(*) FILTER (WHERE b); lag(id) IGNORE NULLS OVER (ORDER BY id)
    percentile_cont(0.5) WITHIN GROUP (ORDER BY id); listagg(s, ',') WITHIN GROUP (ORDER BY id DESC); count(DISTINCT b, n); stddev(id); any_value(b, true)
    TIME '10:00:00'; 1e3; 1.; .5; 0.1 + 0.2; 1 / 3; 2147483648; round(2.5); bround(2.5); try_divide(1, 0); greatest(n, 1); hash(id, s); space(2) || 'x'
""".replace("\n", ";")  # fmt: skip


def queries(engine: SparkEngine) -> list[str]:
    by_hand = [part.strip() for part in BY_HAND.split(";") if part.strip()]
    statements = [
        f"SELECT {expression}" + ("" if " FROM (" in expression else f" FROM {ROWS}") for expression in by_hand
    ]
    names = [str(row[0]) for row in engine.fetch("SHOW FUNCTIONS").rows] if EVERY else []
    for name in names:
        asked = f"`{name}`" if name.isidentifier() else name
        lines = engine.fetch(f"DESCRIBE FUNCTION EXTENDED {asked}").rows
        told = "\n".join(str(line[0]) for line in lines)
        statements += [match[1] for match in re.finditer(r"^\s*> (SELECT .*?);\s*$", told, re.MULTILINE | re.DOTALL)]
    return [sql for sql in statements if not any(is_closed(name.lower()) for name in CALLED.findall(sql))]


def answer(engine: SparkEngine, sql: str) -> tuple[str, str]:
    """The types and the rows, names aside; ('', what Spark says) where it refuses."""
    try:
        types = [column.type for column in engine.schema(sql)]
        return repr(types), repr(engine.fetch(sql).rows)
    except QueryError as error:
        return "", str(error.condition)


def test_an_expression_runs_as_spark_documents_it(engine: SparkEngine) -> None:
    wrong, refused, total = [], [], 0
    for sql in queries(engine):
        try:
            model, _ = parse_model(f"MODEL (name shop.a, kind FULL);\n{sql}", "a.sql", Defaults(NOW))
        except ProjectError as error:
            refused.append((sql, str(error)))
            continue
        assert model is not None
        total += 1
        runs = render_model(model, {}, {}, None, NOW)
        if not EVERY and runs.replace(" AS `_col_0`", "") == sql:
            continue
        one, other = answer(engine, sql), answer(engine, runs)
        if one != other and not (OTHERWISE.search(sql) and one[0] == other[0] != ""):
            wrong.append((sql, runs, one, other))

    assert wrong == []
    assert refused == []
    assert total > (1000 if EVERY else 100)
