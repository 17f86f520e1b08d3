"""How long comparing two tables takes, beside the plain way: a full outer join of all rows. Prints ratios.

make bench-diff                        1,000,000 rows
python -m benchmarks.table_diff 5000000
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from planner.checks.diff_query import DiffOptions
from planner.checks.table_diff import compare_tables
from planner.engine.protocol import Column, Connection, Engine, Table
from planner.engine.spark.engine import open_engine

ROUNDS = 3
NAMES = ("k", "j", *(f"v{n}" for n in range(8)))
ROWS = """SELECT id AS k, CAST(id % 7 AS INT) AS j, id * {0} AS v0, CAST(id % 1000 AS STRING) AS v1, id / 7D AS v2,
    MD5(CAST(id AS STRING)) AS v3, id % 2 = 0 AS v4, DATE'2020-01-01' + INT(id % 3000) AS v5, id % 97 AS v6,
    NULLIF(id % 5, 0) AS v7
    FROM RANGE({1})"""
CASES = {
    "equal": "SELECT * FROM diff.one",
    "1 row in 1,000 differs": "SELECT k, j, IF(k % 1000 = 1, -1L, v0) AS v0, v1, v2, v3, v4, v5, v6, v7 FROM diff.one",
    "100 rows differ": "SELECT k, j, IF(k < 100, -1L, v0) AS v0, v1, v2, v3, v4, v5, v6, v7 FROM diff.one",
    "1 day of 3,000 is missing": "SELECT * FROM diff.one WHERE v5 <> DATE'2020-02-01'",
}


def naive(engine: Engine) -> tuple[int, ...]:
    """Rows of either only, common ones, changed ones: every row of both tables joined by key."""
    same = " AND ".join(f"a.{name} <=> b.{name}" for name in NAMES[2:])
    counts = ["b.k IS NULL", "a.k IS NULL", "a.k = b.k", f"a.k = b.k AND NOT ({same})"]
    counts += [f"a.k = b.k AND NOT (a.{name} <=> b.{name})" for name in NAMES[2:]]
    joined = "diff.one AS a FULL OUTER JOIN diff.two AS b ON a.k <=> b.k AND a.j <=> b.j"
    found = engine.fetch(f"SELECT {', '.join(f'COUNT_IF({each})' for each in counts)} FROM {joined}")
    return tuple(int(str(cell)) for cell in found.rows[0][:4])


def ours(engine: Engine) -> tuple[int, ...]:
    """The same numbers, by buckets."""
    rows = compare_tables(engine, ("a", "b"), ("diff.one", "diff.two"), DiffOptions(on=("k", "j"))).rows
    return (*rows.only, rows.common, rows.changed)


def seconds(work: Callable[[Engine], tuple[int, ...]], engine: Engine) -> float:
    """How long one run takes."""
    started = time.perf_counter()
    work(engine)
    return time.perf_counter() - started


def write(engine: Engine, name: str, sql: str) -> None:
    """The query's rows as a table of files."""
    table = Table(name, tuple(Column(each.name, each.type) for each in engine.schema(sql)))
    engine.create_table(table)
    engine.replace_table(table, sql)


def main(rows: int) -> None:
    """Each case: the fastest of a few runs of both, taken in turn, and their ratio; the numbers must agree."""
    with tempfile.TemporaryDirectory() as folder:
        settings = (("spark.driver.memory", "2g"), ("spark.sql.shuffle.partitions", "8"))
        engine = open_engine(Connection(conf=settings, master="local[2]"), Path(folder) / ".mergeplan", "backfill")
        write(engine, "diff.one", ROWS.format(3, rows))
        print(f"{rows:,} rows, {len(NAMES)} columns, a key of 2; the fastest of {ROUNDS} runs, in turn")
        for number, (case, sql) in enumerate(CASES.items()):
            write(engine, f"diff.table{number}", sql)
            engine.swap_view("diff.two", f"SELECT * FROM diff.table{number}")
            assert naive(engine) == ours(engine), case
            taken = [(seconds(naive, engine), seconds(ours, engine)) for _ in range(ROUNDS)]
            join, buckets = (min(each) for each in zip(*taken, strict=True))
            told = f"join {join:6.2f} s   buckets {buckets:6.2f} s   {join / buckets:5.1f} times as fast"
            print(f"{case:<28} {told}", flush=True)
        engine.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
