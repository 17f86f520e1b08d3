"""The tables of a pipeline hold the rows that `spark-pipelines run` makes of the same files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.spark.process.installed import find_java
from tests.planner.cli.conftest import Lent
from tests.planner.shop import rows

from .test_pipeline_project import PIPELINE

PROGRAM = Path(sys.executable).parent / "spark-pipelines"
ITEMS = "VALUES (1, 'EUR', 2), (2, 'USD', 0), (3, 'USD', 5) AS items(id, code, price)"
pytestmark = pytest.mark.prove


def test_tables_hold_the_rows_of_spark_pipelines(tmp_path: Path, engine: SparkEngine) -> None:
    root = Path(shutil.copytree(PIPELINE, tmp_path / "pipeline"))
    (root / "storage").mkdir()
    spec, orders = root / "spark-pipeline.yml", root / "transformations/orders.sql"
    spec.write_text(spec.read_text().replace("/nowhere", str(root / "storage")).replace("database: shop", ""))
    orders.write_text(orders.read_text().replace("raw.items", ITEMS))
    total = root / "transformations/total.sql"
    total.write_text(total.read_text().replace("shop.total", "total"))
    environment = {**os.environ, "JAVA_HOME": str(Path(find_java()).resolve().parents[1]),
                   "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}  # fmt: skip
    done = subprocess.run([str(PROGRAM), "run"], cwd=root, env=environment, capture_output=True, text=True,
                          timeout=600, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    warehouse = root / "spark-warehouse"
    expected = {name: sorted(_parquet_rows(engine, warehouse / name)) for name in ("orders", "total")}

    def open_engine(_connection: Connection, _home: Path, _profile: str) -> Engine:
        return Lent(engine)  # type: ignore[return-value]

    spec.write_text(spec.read_text() + "\ndatabase: shop\n")
    assert run(VERBS, ["plan", "-p", str(root), "--auto-apply"], open_engine) == 0
    ours = {"orders": "SELECT id, cents, code FROM shop.orders", "total": "SELECT code, cents, items FROM shop.total"}
    assert {name: sorted(rows(engine, sql)) for name, sql in ours.items()} == expected


def _parquet_rows(engine: SparkEngine, folder: Path) -> list[tuple[object, ...]]:
    """The rows of a table by its files."""
    name = f"theirs_{folder.name}"
    engine.fetch("CREATE DATABASE IF NOT EXISTS theirs")
    engine.fetch(f"CREATE TABLE theirs.{name} USING parquet LOCATION '{folder.as_uri()}'")
    if any("=" in path.name for path in folder.iterdir()):
        engine.fetch(f"ALTER TABLE theirs.{name} RECOVER PARTITIONS")
    return rows(engine, f"SELECT * FROM theirs.{name}")
