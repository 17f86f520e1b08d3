"""What comparing two tables takes, beside the plain way: a full outer join of all rows. Prints ratios.

Each case runs both in turn, and shows the medians of Java's processor seconds and of the time on the clock.

make bench-diff                        2,000,000 rows
python -m benchmarks.table_diff 5000000
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mergeplan.planner.checks.diff.diff_query import DiffOptions
from mergeplan.planner.checks.diff.table_diff import compare_tables
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.classic_session import ClassicSession
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine

ROUNDS = 3
NAMES = ("k", "j", *(f"v{n}" for n in range(8)))
ROWS = """SELECT id AS k, CAST(id % 7 AS INT) AS j, id * {0} AS v0, CAST(id % 1000 AS STRING) AS v1, id / 7D AS v2,
    MD5(CAST(id AS STRING)) AS v3, id % 2 = 0 AS v4, DATE'2020-01-01' + INT(id % 3000) AS v5, id % 97 AS v6,
    NULLIF(id % 5, 0) AS v7
    FROM RANGE({1})"""
CHANGED = "SELECT k, j, IF({}, -1L, v0) AS v0, v1, v2, v3, v4, v5, v6, v7 FROM diff.one"
CASES = {
    "equal": "SELECT * FROM diff.one",
    "1 row in 1,000 differs": CHANGED.format("k % 1000 = 1"),
    "every row differs": CHANGED.format("TRUE"),
    "100 rows differ": CHANGED.format("k < 100"),
    "1 day of 3,000 is missing": "SELECT * FROM diff.one WHERE v5 <> DATE'2020-02-01'",
}


def naive(engine: Engine) -> tuple[int, ...]:
    """Rows of either only, common ones, changed ones: every row of both tables joined by key."""
    same = " AND ".join(f"a.{name} <=> b.{name}" for name in NAMES[2:])
    counts = ["b.k IS NULL", "a.k IS NULL", "a.k = b.k", f"a.k = b.k AND NOT ({same})"]
    counts += [f"a.k = b.k AND NOT (a.{name} <=> b.{name})" for name in NAMES[2:]]
    joined = "diff.one AS a FULL OUTER JOIN diff.two AS b ON a.k <=> b.k AND a.j <=> b.j"
    answer = engine.fetch(f"SELECT {', '.join(f'COUNT_IF({condition})' for condition in counts)} FROM {joined}")
    return tuple(int(str(cell)) for cell in answer.rows[0][:4])


def ours(engine: Engine) -> tuple[int, ...]:
    """The same numbers, by buckets."""
    rows = compare_tables(engine, ("a", "b"), ("diff.one", "diff.two"), DiffOptions(on=("k", "j"))).rows
    return (*rows.only, rows.common, rows.changed)


def processor_seconds(engine: SparkEngine) -> float:
    """What Java has taken so far, by Linux's books."""
    session = engine._shared
    assert isinstance(session, ClassicSession)
    fields = Path(f"/proc/{session.jvm.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(work: Callable[[SparkEngine], tuple[int, ...]], engine: SparkEngine) -> tuple[float, float]:
    """The processor seconds and the seconds on the clock of one run."""
    cpu, started = processor_seconds(engine), time.perf_counter()
    work(engine)
    return processor_seconds(engine) - cpu, time.perf_counter() - started


def report(case: str, plain: Sequence[tuple[float, float]], buckets: Sequence[tuple[float, float]]) -> str:
    """A line with the medians of both, and how many times as fast the second is."""
    parts = [f"{case:<26}"]
    for at, unit in enumerate(("CPU s", "s")):
        join, ours_ = (statistics.median(run[at] for run in runs) for runs in (plain, buckets))
        parts.append(f"join {join:6.2f} {unit}, buckets {ours_:6.2f} {unit}, {join / ours_:5.2f} x")
    return "   ".join(parts)


def write(engine: Engine, name: str, sql: str) -> None:
    """The query's rows as a table of files."""
    engine.fetch("CREATE SCHEMA IF NOT EXISTS diff")
    engine.fetch(f"CREATE TABLE {name} USING parquet AS {sql}")


def main(rows: int) -> None:
    """Each case: both ways in turn, and their ratio; the numbers must agree."""
    with tempfile.TemporaryDirectory() as folder:
        settings = (("spark.driver.memory", "2g"), ("spark.sql.shuffle.partitions", "8"))
        engine = open_engine(Connection(conf=settings, master="local[2]"), Path(folder) / ".mergeplan", "backfill")
        write(engine, "diff.one", ROWS.format(3, rows))
        print(f"{rows:,} rows, {len(NAMES)} columns, a key of 2; medians of {ROUNDS} runs of each, in turn")
        for number, (case, sql) in enumerate(CASES.items()):
            write(engine, f"diff.table{number}", sql)
            engine.fetch(f"CREATE OR REPLACE VIEW diff.two AS SELECT * FROM diff.table{number}")
            assert naive(engine) == ours(engine), case
            runs = [(measure(naive, engine), measure(ours, engine)) for _ in range(ROUNDS)]
            print(report(case, [run[0] for run in runs], [run[1] for run in runs]), flush=True)
        engine.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)
