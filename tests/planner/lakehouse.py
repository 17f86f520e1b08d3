"""A project with tables of a format, from its first plan to a rollback, in a process and a Spark of its own.

`python -m tests.planner.lakehouse delta FOLDER` prints what prod shows after each step, one line of JSON each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mergeplan
from mergeplan import RequestError

CONFIG = """
gateways:
  local:
    connection:
      type: spark
      master: local[2]
      table_format: {format}
      config: {{spark.driver.memory: 700m, spark.sql.shuffle.partitions: 2}}
default_gateway: local
model_defaults: {{dialect: spark, start: 2026-01-01}}
"""
MODEL = "MODEL (name shop.totals, kind FULL);\nSELECT id, {column} AS total FROM VALUES (1, 10), (2, 20) AS t(id, v)"
NO_JARS = 3  # the exit code when the format's jars cannot be had


def steps_of(program: str, *arguments: str) -> list[Any]:
    """What a program of these tests prints in a process and a Spark of its own; skips where the jars cannot be had."""
    run = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=Path(__file__).parents[2], env={**os.environ, "MERGEPLAN_SPARK_PROFILE": "metadata"},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    if run.returncode == NO_JARS:
        pytest.skip(f"no jars: {run.stderr}")
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def full_pass(folder: Path, form: str) -> None:
    """Build, edit, try the edit in an environment, promote it, roll back; what is shown after each."""
    (folder / "models").mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG.format(format=form))
    with mergeplan.open(folder, execution_time="2026-01-03 05:00:00") as session:

        def step(name: str, column: str, environment: str) -> None:
            (folder / "models/totals.sql").write_text(MODEL.format(column=column))
            outcome = session.plan(environment).apply()
            show(name, outcome.filled.batches)

        def show(name: str, batches: int) -> None:
            rows = session.fetch("SELECT id, total FROM shop.totals ORDER BY id").rows
            sys.stdout.write(json.dumps([name, batches, rows]) + "\n")

        step("built", "v", "prod")
        step("edited", "v + 1", "dev")
        step("promoted", "v + 1", "prod")
        session.rollback("prod")
        show("rolled back", 0)
        for environment in session.environments():
            table = environment.snapshots["shop.totals"].table
            properties = dict(row[:2] for row in session.fetch(f"DESCRIBE TABLE EXTENDED {table}").rows)
            sys.stdout.write(json.dumps([environment.name, 0, properties["Provider"]]) + "\n")


if __name__ == "__main__":
    try:
        full_pass(Path(sys.argv[2]), sys.argv[1])
    except RequestError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(NO_JARS if error.message.startswith("Spark cannot fetch") else 1)
