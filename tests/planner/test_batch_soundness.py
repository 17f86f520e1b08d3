"""A query whose batches do not show returns the rows of three days, whether in one batch or day by day.

The queries are varied at random: dates, columns, tables, joins, sets, windows and groups. Spark runs both ways of those
of which the planner says that their batches do not show.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import MergeplanError, ProjectErrors
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.parsing.render import render_model
from mergeplan.planner.semantics.columns import model_shape
from mergeplan.planner.semantics.parent import Parent

pytestmark = pytest.mark.sampled

NOW = datetime(2026, 2, 1, tzinfo=UTC)
SEED = int(os.environ.get("MERGEPLAN_SEED", "7"))
CASES = int(os.environ.get("MERGEPLAN_CASES", "60"))
TABLES = {
    "src.e": """SELECT * FROM VALUES
        (1, DATE'2026-01-01', TIMESTAMP'2026-01-01 00:00:00', '2026-01-01', 'a', 1),
        (2, DATE'2026-01-01', TIMESTAMP'2026-01-01 12:30:00', '2026-01-01', 'b', 2),
        (3, DATE'2026-01-01', TIMESTAMP'2026-01-01 23:59:59.999999', '2026-01-01', 'a', NULL),
        (1, DATE'2026-01-02', TIMESTAMP'2026-01-02 00:00:00', '2026-01-02', 'b', 4),
        (4, DATE'2026-01-02', TIMESTAMP'2026-01-02 08:00:00', '2026-01-02', 'a', 5),
        (2, DATE'2026-01-02', TIMESTAMP'2026-01-02 23:59:59.999999', '2026-01-02', NULL, 5),
        (1, DATE'2026-01-03', TIMESTAMP'2026-01-03 00:00:00', '2026-01-03', 'a', 7),
        (5, DATE'2026-01-03', TIMESTAMP'2026-01-03 10:00:00', '2026-01-03', 'c', 8),
        (NULL, NULL, NULL, NULL, 'c', 8) AS e(id, d, ts, ds, k, x)""",
    "src.g": """SELECT * FROM VALUES (1, DATE'2026-01-01', 'g1', 10), (1, DATE'2026-01-02', 'g2', 20),
        (2, DATE'2026-01-02', 'g3', 30), (4, DATE'2026-01-03', 'g4', 40), (5, DATE'2026-01-04', 'g5', 50)
        AS g(id, d, g, y)""",
}
TYPES = {
    "src.e": {"id": "int", "d": "date", "ts": "timestamp", "ds": "string", "k": "string", "x": "int"},
    "src.g": {"id": "int", "d": "date", "g": "string", "y": "int"},
}
DAY = "BETWEEN @start_date AND @end_date"
QUERIES = [line.replace("DAY()", DAY) for line in """
SELECT id, d, k, x FROM src.e WHERE d DAY() AND x > 1
SELECT id, d, k, x FROM src.e WHERE d >= @start_date AND d <= @end_date
SELECT id, ts, k FROM src.e WHERE ts BETWEEN @start_ts AND @end_ts
SELECT id, CAST(ts AS DATE) AS d, k FROM src.e WHERE ts BETWEEN @start_dt AND @end_dt
SELECT id, ds, k, x FROM src.e WHERE ds BETWEEN @start_ds AND @end_ds
SELECT id, CAST(ts AS DATE) AS d, k FROM src.e WHERE CAST(ts AS DATE) DAY()
SELECT DATE(ts) AS d, k, count(*) AS c FROM src.e WHERE DATE(ts) BETWEEN @start_ds AND @end_ds GROUP BY DATE(ts), k
WITH c AS (SELECT *, DATE(ts) AS d0 FROM src.e) SELECT d0 AS d, max(x) OVER (PARTITION BY d0) AS x FROM c WHERE d0 DAY()
SELECT d, k, count(*) AS c, sum(x) AS x FROM src.e WHERE d DAY() GROUP BY d, k
SELECT d, max(k) AS k, count(*) AS c FROM src.e WHERE d BETWEEN @start_ds AND @end_ds GROUP BY d HAVING count(*) > 1
SELECT DISTINCT d, k FROM src.e WHERE d DAY()
SELECT id, d, count(*) OVER (PARTITION BY d) AS c FROM src.e WHERE d DAY()
SELECT id, d, row_number() OVER (PARTITION BY d ORDER BY id) AS rn FROM src.e WHERE d DAY() QUALIFY rn = 1
SELECT e.id, e.d, g.g FROM src.e e LEFT JOIN src.g g ON e.id = g.id AND g.d = e.d WHERE e.d DAY()
SELECT e.id, e.d, g.g FROM src.e e LEFT JOIN (SELECT * FROM src.g WHERE d DAY()) g ON e.id = g.id WHERE e.d DAY()
SELECT e.id, e.d, x.v FROM src.e e LEFT JOIN (SELECT id, @start_ds AS v FROM src.g) x ON x.id = e.id WHERE e.d DAY()
SELECT e.id, e.d FROM src.e e WHERE e.d DAY() AND EXISTS (SELECT 1 FROM src.g g WHERE g.id = e.id)
SELECT e.id, e.d, (SELECT max(g.y) FROM src.g g WHERE g.d <= e.d) AS y FROM src.e e WHERE e.d DAY()
SELECT id, d FROM src.e WHERE d DAY() UNION ALL SELECT id, d FROM src.g WHERE d DAY()
SELECT id, d FROM src.e WHERE d DAY() EXCEPT SELECT id, d FROM src.g
SELECT id, d, v FROM src.e LATERAL VIEW explode(array(x, id)) q AS v WHERE d DAY()
WITH c AS (SELECT *, max(x) OVER (PARTITION BY id ORDER BY ts) AS mx FROM src.e) SELECT id, d, mx FROM c WHERE d DAY()
WITH c AS (SELECT *, max(x) OVER (PARTITION BY d) AS mx FROM src.e) SELECT id, d, mx FROM c WHERE d DAY()
SELECT d, count(DISTINCT id) AS c FROM src.e WHERE d DAY() GROUP BY 1
SELECT CAST(ts AS DATE) AS d, count(*) AS c FROM src.e WHERE ts >= @start_dt AND ts <= @end_dt GROUP BY CAST(ts AS DATE)
SELECT id, d, @start_ds AS s FROM src.e WHERE d DAY()
SELECT a.id, a.d, b.x AS bx FROM src.e a JOIN src.e b ON a.d = b.d WHERE a.d DAY() AND b.d DAY()
SELECT coalesce(e.d, g.d) AS d, e.id, g.y FROM src.e e FULL JOIN src.g g ON e.id = g.id AND e.d = g.d WHERE e.d DAY()
SELECT id, d, x FROM src.e WHERE d DAY() AND x > (SELECT avg(x) FROM src.e)
SELECT id, d, x FROM src.e WHERE d IN (SELECT d FROM src.g WHERE d DAY())
""".strip().split("\n")]  # fmt: skip
WORD = re.compile(r"'[^']*'|@?\w+(?:\.\w+)?|<=|>=|<>|[^\s\w]")
ALIKE = [line.strip().split("|") for line in """
    @start_date|@start_ds|@start_ts|@start_dt|@end_date
    @end_date|@end_ds|@end_ts|@end_dt|@start_date
    d|ts|ds|id|k|x|y|g
    e.d|e.ts|e.id|g.d|g.id|g.y
    src.e|src.g
    <|<=|>|>=|=|<>
    LEFT|RIGHT|FULL|INNER|CROSS|LEFT SEMI
    UNION|EXCEPT|INTERSECT
    sum|max|min|count
    AND|OR
    BETWEEN|NOT BETWEEN""".strip().split("\n")]  # fmt: skip
INSERTED = [words.strip() for words in """
    DISTINCT; NOT; AND d < @end_date; OR TRUE; LIMIT 2; ORDER BY 1; , @end_ds AS e; , count(*) OVER () AS n;
    , max(x) OVER (PARTITION BY id) AS m; GROUP BY d; PARTITION BY id; + INTERVAL 1 DAY; - 1""".split(";")]  # fmt: skip


def vary(query: str, rng: random.Random) -> str:
    words = WORD.findall(query)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(words))
        others = [group for group in ALIKE if words[at] in group]
        if others:
            words[at] = rng.choice(others[0])
        elif rng.random() < 0.4:
            words.insert(at, rng.choice(INSERTED))
        elif rng.random() < 0.2:
            del words[at]
    return " ".join(words).replace(" (", "(").replace("( ", "(")


def read_model(query: str, time_column: str) -> Model | None:
    """Return a model by time range, or by key where there is no time column; None if it is refused."""
    kind = f"TIME_RANGE (time_column {time_column})" if time_column else "UNIQUE_KEY (unique_key id)"
    try:
        return parse_model(f"MODEL (name m.base, kind INCREMENTAL_BY_{kind});\n{query}", "base.sql", Defaults(NOW))[0]
    except (MergeplanError, ProjectErrors):
        return None


def fetch_rows(engine: SparkEngine, model: Model, days: tuple[int, int], ignored: frozenset[str]) -> Counter[Any]:
    """Return the rows of a batch as its table keeps them: those of other days are dropped."""
    start, end = (datetime(2026, 1, day, tzinfo=UTC) for day in days)
    tables = {name: f"({sql})" for name, sql in TABLES.items()}
    result = engine.fetch(render_model(model, tables, {}, Interval(start, end), NOW))
    time_column = model.by_time.time_column

    def is_inside(row: Mapping[str, Any]) -> bool:
        return not time_column or f"{start:%Y-%m-%d}" <= str(row[time_column])[:10] < f"{end:%Y-%m-%d}"

    rows = (dict(zip((name.lower() for name in result.columns), row, strict=True)) for row in result.rows)
    return Counter(repr([(n, v) for n, v in row.items() if n not in ignored]) for row in rows if is_inside(row))


def compare_batches(engine: SparkEngine, query: str) -> tuple[bool, str]:
    """Return True if both ways ran, and the query if its batches show although the planner says that they do not."""
    parents = {name: Parent(tuple(types), types=tuple(types.items())) for name, types in TYPES.items()}
    ran, outputs = False, query.partition(" FROM ")[0]
    times = [name for name in ("d", "ts", "ds") if re.search(rf"\b{name}\b", outputs)]
    for time_column in (*times[:1], ""):
        model = read_model(query, time_column)
        shape = model and model_shape(model, parents)
        if model is None or shape is None or (shape.volatile_rows if time_column else shape.by_batch):
            continue
        if not time_column and not shape.reads_batch:
            continue
        ignored = shape.volatile if time_column else frozenset[str]()
        try:
            whole = fetch_rows(engine, model, (1, 4), ignored)
            by_day = [fetch_rows(engine, model, (day, day + 1), ignored) for day in (1, 2, 3)]
        except MergeplanError:
            continue  # Spark refuses the query
        if whole != sum(by_day, Counter[Any]()):
            return True, f"{time_column or 'by key'}: {query}"
        ran = True
    return ran, ""


def test_batches_that_do_not_show_have_the_rows_of_single_days(engine: SparkEngine) -> None:
    rng = random.Random(SEED)  # noqa: S311
    queries = dict.fromkeys([*QUERIES, *(vary(rng.choice(QUERIES), rng) for _ in range(CASES))])

    compared = [compare_batches(engine, query) for query in queries]

    assert [broken for _, broken in compared if broken] == []
    assert sum(ran for ran, _ in compared) >= len(queries) / 10
