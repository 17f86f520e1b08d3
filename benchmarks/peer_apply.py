"""SQLMesh's applies beside ours, on the same Spark: the same models are built, one is edited in `dev`, and promoted.

Whole commands are measured: Python, Java, and what these start. SQLMesh's state is a DuckDB, ours a SQLite. SQLMesh
opens a Hive metastore (here on Derby), and so does ours; `embedded` is ours with its embedded catalog, and `by hand` a
script that creates the tables and views with Spark's own settings of Java (`hand_written`).

    make bench-peer-apply                          installs SQLMesh into a virtual environment of its own
    python -m benchmarks.peer_apply SQLMESH [DAG]  only cases with one of these words in their name
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.apply import layers, tables
from benchmarks.quickstart import SUBREAPER, Taken, measure_command
from mergeplan.planner.engine.spark.process.archive_maker import main as make_archive

ROUNDS = 3
ROOT = Path(__file__).parent.parent
OURS = (sys.executable, "-m", "mergeplan")
BY_HAND = (sys.executable, "-m", "benchmarks.hand_written")
PLAN = ("--auto-apply", "--no-prompts", "--skip-tests")
CONFIG = """\
gateways:
  local:
    connection:
      type: spark
      concurrent_tasks: 4
      config:
        spark.master: local[2]
        spark.driver.memory: 2g
        spark.ui.enabled: "false"
        spark.sql.warehouse.dir: {warehouse}{metastore}
{state}default_gateway: local
model_defaults: {{dialect: spark, start: 2025-01-01}}
"""
METASTORE = """
        spark.sql.catalogImplementation: hive
        spark.hadoop.javax.jdo.option.ConnectionURL: "jdbc:derby:;databaseName={folder}/metastore;create=true"
        spark.hadoop.datanucleus.schema.autoCreateAll: "true"
        spark.hadoop.hive.metastore.schema.verification: "false\""""
STATE = "    state_connection: {{type: duckdb, database: {folder}/state.db}}\n"
EVENTS = (
    "SELECT id, DATE_ADD(CAST('2025-01-01' AS DATE), id % 365) AS day, id * 3 AS amount "
    "FROM (SELECT EXPLODE(SEQUENCE(0, 9999)) AS id) AS numbers"
)
DAILY = "SELECT id, amount, day FROM source.events WHERE day BETWEEN @start_date AND @end_date"


def models_of(case: str) -> dict[str, str]:
    """Return the files of a project, whose last model is the one that is edited."""
    texts, kind = (tables(20) if case == "20 tables" else layers(50)), "FULL"
    if case == "365 days":
        texts, kind = {"daily": DAILY}, "INCREMENTAL_BY_TIME_RANGE (time_column day), end '2025-12-31'"
    files = {"events": f"MODEL (name source.events, kind FULL);\n{EVENTS}"}
    for name, text in texts.items():
        files[name] = f"MODEL (name shop.{name}, kind {kind});\n{text.format(schema='shop')}"
    return files


def query_of(text: str) -> str:
    """Return the query of a model's file."""
    return text.partition(";\n")[2]


def write_project(folder: Path, case: str, *, peer: bool, hive: bool) -> Path:
    """Write a project; return the file that is edited."""
    (folder / "models").mkdir(parents=True)
    metastore = METASTORE.format(folder=folder) if hive else ""
    state = STATE.format(folder=folder) if peer else ""
    (folder / "config.yaml").write_text(CONFIG.format(warehouse=folder / "warehouse", metastore=metastore, state=state))
    for name, text in (files := models_of(case)).items():
        (folder / f"models/{name}.sql").write_text(text + "\n")
    return folder / f"models/{list(files)[-1]}.sql"


def run_project(command: tuple[str, ...], folder: Path, edited: Path) -> Iterator[tuple[str, Taken]]:
    """Yield each command with its seconds and CPU seconds."""
    environment = {**os.environ, "MERGEPLAN_CACHE": str(folder / "cache"), "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "1"}
    yield "all built", measure_command((*command, "plan", *PLAN), folder, environment)
    yield "no edit", measure_command((*command, "plan", *PLAN), folder, environment)
    edited.write_text(edited.read_text().replace(" FROM ", ", 1 AS added FROM ", 1))
    yield "one edited in dev", measure_command((*command, "plan", "dev", *PLAN), folder, environment)
    yield "promoted to prod", measure_command((*command, "plan", *PLAN), folder, environment)


def format_taken(taken: Sequence[float]) -> str:
    return f"{taken[0]:>9.1f}{taken[1]:>7.1f}"


def main(sqlmesh: str, words: list[str]) -> None:
    """Print seconds on the clock and CPU seconds, medians, and the ratios to SQLMesh's."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    make_archive()  # a first Spark would make it in the background of what is measured
    sides = {"SQLMesh": (sqlmesh,), "mergeplan": OURS, "embedded": OURS}
    columns = f"{'SQLMesh':>16}{'mergeplan':>16}{'ratio':>14}{'embedded':>18}{'by hand':>16}"
    print(f"{'':<30}{columns}   seconds on the clock, CPU seconds")
    with tempfile.TemporaryDirectory() as name:
        for case in ("20 tables", "a DAG of 50 tables", "365 days"):
            if words and not any(word in case for word in words):
                continue
            results: dict[str, dict[str, list[Taken]]] = {}
            for number in range(ROUNDS):
                for side, command in sides.items():  # in turn: the machine's load falls on all
                    folder = Path(name) / f"{side}{number}{case.replace(' ', '')}"
                    edited = write_project(folder, case, peer=side == "SQLMesh", hive=side != "embedded")
                    for what, taken in run_project(command, folder, edited):
                        results.setdefault(what, {}).setdefault(side, []).append(taken)
                folder = Path(name) / f"hand{number}{case.replace(' ', '')}"
                write_project(folder, case, peer=True, hive=True)
                taken = measure_command((*BY_HAND, case, str(folder)), folder, {**os.environ, "PYTHONPATH": str(ROOT)})
                results["all built"].setdefault("by hand", []).append(taken)
            for what, runs in results.items():
                middle = {side: [median(part) for part in zip(*values, strict=True)] for side, values in runs.items()}
                theirs, ours, *others = middle.values()
                ratios = " ".join(f"{one / other:5.2f} x" for one, other in zip(ours, theirs, strict=True))
                rest = "".join(map(format_taken, others))
                print(f"{case + ', ' + what:<36}{format_taken(theirs)}{format_taken(ours)}  {ratios}{rest}", flush=True)


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).absolute()), sys.argv[2:])
