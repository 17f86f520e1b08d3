"""Manifests that dbt itself wrote beside a warehouse: the project opens as when dbt is asked, and holds dbt's rows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.project.loader import LoadOptions, load_project
from tests.planner.cli.conftest import Lent
from tests.planner.shop import NOW

from .recorded import SHOP
from .test_real_dbt import CREATE, DAYS, DBT, TABLES, assert_same_rows, pytestmark  # noqa: F401 - the marks too

CONFIG = """
gateways: {g: {connection: {type: spark}}}
model_defaults: {dialect: spark}
dbt: {manifest: ci/manifest.json, manifest_later: later/manifest.json}
"""
PROGRAM = """
import json, sys
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession
root, days, tables, create = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").enableHiveSupport().getOrCreate()
spark.sql("CREATE DATABASE raw")
spark.sql(create)
folders = ["--project-dir", root, "--profiles-dir", root]
for number, (day, rows) in enumerate(json.loads(days).items()):
    spark.sql(f"INSERT INTO raw.items VALUES {rows}")
    assert dbtRunner().invoke(["build", *folders, "--exclude", "resource_type:unit_test"]).success
    if not number:
        assert dbtRunner().invoke(["docs", "generate", *folders, "--target-path", "ci"]).success
        assert dbtRunner().invoke(["compile", *folders, "--full-refresh", "--target-path", "ci"]).success
        assert dbtRunner().invoke(["compile", *folders, "--target-path", "later"]).success
found = {t: [json.loads(line) for line in spark.table(f"shop.{t}").toJSON().collect()] for t in json.loads(tables)}
print("ROWS " + json.dumps(found))
"""


def built_by_dbt(root: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of dbt's tables; the manifests lie in the project then."""
    arguments = (str(root), json.dumps(DAYS), json.dumps(TABLES), CREATE)
    environment = {**os.environ, "PYSPARK_PYTHON": str(DBT), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([str(DBT), "-c", PROGRAM, *arguments], cwd=root.parent, env=environment, capture_output=True,
                          text=True, timeout=900, check=False)  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ROWS ")] or [done.stdout + done.stderr]
    contents: dict[str, list[dict[str, Any]]] = json.loads(line.removeprefix("ROWS "))
    return contents


def test_a_project_of_manifests_holds_dbts_rows(tmp_path: Path, engine: SparkEngine) -> None:
    def open_engine(_connection: Connection, _home: Path, _profile: str) -> Engine:
        return Lent(engine)  # type: ignore[return-value]

    root = Path(shutil.copytree(SHOP, tmp_path / "shop"))
    expected = built_by_dbt(root)
    (root / "config.yaml").write_text(CONFIG)
    assert not load_project(root, NOW, options=LoadOptions(strict=False)).refused.errors  # what asks was answered

    engine.fetch("CREATE DATABASE raw")
    engine.fetch(CREATE)
    for number, (day, values) in enumerate(DAYS.items()):
        engine.fetch(f"INSERT INTO raw.items VALUES {values}")
        verb = ["run"] if number else ["plan", "--auto-apply"]
        assert run(VERBS, [*verb, "-p", str(root), "--execution-time", day], open_engine) == 0
    assert_same_rows(engine, expected)
