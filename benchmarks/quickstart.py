"""The quickstart as somebody runs it: prod is planned and built, planned again, and one edit is built in `dev`.

Prints seconds and CPU seconds (medians; Java's are counted) without and with the class data archive of Spark's classes,
beside a hand-written Spark script that makes the same three tables, and the ratios to it.

    python -m benchmarks.quickstart
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median

from mergeplan.planner.engine.spark.process.archive_maker import main as make_archive
from mergeplan.planner.engine.spark.process.class_archive import OFF, VARIABLE

ROUNDS = 3
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2): a process whose parent has ended becomes our child
MERGEPLAN = (sys.executable, "-m", "mergeplan")
MODEL, OLD, NEW = "models/full_model.sql", "count(distinct id) AS num_orders", "count(id) AS num_orders"
BY_HAND = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").enableHiveSupport().getOrCreate()
spark.sql("CREATE SCHEMA shop")
rows = "CAST(id AS INT) AS id, CAST(item_id AS INT) AS item_id, CAST(event_date AS DATE) AS event_date"
spark.read.csv("seeds/seed_data.csv", header=True).createOrReplaceTempView("seed")
spark.sql(f"CREATE TABLE shop.seed_model USING parquet AS SELECT {rows} FROM seed")
spark.sql("CREATE TABLE shop.incremental_model USING parquet PARTITIONED BY (event_date) AS "
          "SELECT * FROM shop.seed_model")
spark.sql("CREATE TABLE shop.full_model USING parquet AS "
          "SELECT item_id, COUNT(DISTINCT id) AS num_orders FROM shop.incremental_model GROUP BY item_id")
spark.stop()
"""
Taken = tuple[float, float]


def measure_command(command: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> Taken:
    """Seconds and CPU seconds of one command and of all that it starts, also of what ends after it."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    with suppress(ChildProcessError):
        while os.waitpid(-1, 0):  # Java, where the command did not wait for it
            pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stdout}{done.stderr}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run_project(folder: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, Taken]]:
    """What is done -> what it takes, for one new project."""
    shop = folder / "shop"
    subprocess.run((*MERGEPLAN, "init", "shop"), cwd=folder, env=environment, capture_output=True, check=True)
    yield "first plan", measure_command((*MERGEPLAN, "plan", "--auto-apply"), shop, environment)
    yield "second plan, no edit", measure_command((*MERGEPLAN, "plan", "--auto-apply"), shop, environment)
    text = (shop / MODEL).read_text()
    assert OLD in text
    (shop / MODEL).write_text(text.replace(OLD, NEW))
    yield "an edit, built in dev", measure_command((*MERGEPLAN, "plan", "dev", "--auto-apply"), shop, environment)


def main() -> None:
    """Print the table."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ[VARIABLE] = str(folder / "archives")
        (folder / "archives").mkdir(mode=0o700)
        make_archive()
        cases = {"no archive": OFF, "archive": str(folder / "archives")}
        results: dict[tuple[str, str], list[Taken]] = {}
        for number in range(ROUNDS):
            for case, archive in cases.items():  # in turn: the machine's load falls on both
                project = folder / f"{case}{number}"
                project.mkdir()
                environment = {**os.environ, VARIABLE: archive, "MERGEPLAN_CACHE": str(project / "cache")}
                for what, run_cost in run_project(project, environment):
                    results.setdefault((what, case), []).append(run_cost)
            hand = measure_command((sys.executable, "-c", BY_HAND), folder / f"archive{number}" / "shop", os.environ)
            results.setdefault(("by hand", "no archive"), []).append(hand)
    print_table(results)


def print_table(results: Mapping[tuple[str, str], list[Taken]]) -> None:
    """The medians, and the ratios of CPU seconds to the hand-written script."""
    middle = {key: tuple(median(part) for part in zip(*runs, strict=True)) for key, runs in results.items()}
    hand = middle["by hand", "no archive"]
    print(f"{'medians of ' + str(ROUNDS):<24}{'':<12}{'wall s':>8}{'CPU s':>8}{'CPU / by hand':>16}")
    for (what, case), (seconds, cpu) in middle.items():
        print(f"{what:<24}{case:<12}{seconds:>8.2f}{cpu:>8.2f}{cpu / hand[1]:>14.2f} x")


if __name__ == "__main__":
    main()
