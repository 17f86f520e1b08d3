"""Contracts as dbt itself enforces them: we build what it builds, with the same columns, and refuse what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.project.dbt.inputs import PYTHON
from tests.planner.cli.conftest import Lent

from .test_real_dbt import DBT, pytestmark  # noqa: F401 - the marks of this file too

QUERY = "select 1 as a, 'x' as b, cast(1.5 as decimal(5,2)) as c"
COLUMNS = {"b": "string", "a": "int", "c": "decimal(5,2)"}  # in another order than the query's
MODELS: dict[str, tuple[str, dict[str, str]]] = {
    "table_in_order": ("table", COLUMNS),
    "view_in_order": ("view", COLUMNS),
    "other_name_of_type": ("table", {**COLUMNS, "b": "STRING", "a": "INTEGER"}),
    "wrong_type": ("table", {**COLUMNS, "a": "bigint"}),
    "wrong_type_of_a_view": ("view", {**COLUMNS, "a": "bigint"}),
    "wrong_scale": ("table", {**COLUMNS, "c": "decimal(6,2)"}),
    "one_too_few": ("table", {"a": "int", "b": "string"}),
    "one_too_many": ("view", {**COLUMNS, "d": "int"}),
}
PROGRAM = """
import json, sys
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").enableHiveSupport().getOrCreate()
built = dbtRunner().invoke(["run", "--project-dir", sys.argv[1], "--profiles-dir", sys.argv[1]])
done = [result.node.name for result in built.result.results if str(result.status) == "success"]
print("ROWS " + json.dumps({name: spark.table(f"shop.{name}").columns for name in done}))
"""


def write_project(root: Path, names: list[str]) -> Path:
    (root / "models").mkdir(parents=True, exist_ok=True)
    (root / "dbt_project.yml").write_text("{name: shop, version: '1.0', config-version: 2, profile: shop}")
    output = {"type": "spark", "method": "session", "host": "none", "schema": "shop"}
    (root / "profiles.yml").write_text(json.dumps({"shop": {"target": "prod", "outputs": {"prod": output}}}))
    models = []
    for name in names:
        kind, columns = MODELS[name]
        (root / f"models/{name}.sql").write_text(QUERY)
        config = {"materialized": kind, "contract": {"enforced": True}}
        listed = [{"name": column, "data_type": type_} for column, type_ in columns.items()]
        models.append({"name": name, "config": config, "columns": listed})
    (root / "models/schema.yml").write_text(yaml.safe_dump({"version": 2, "models": models}))
    return root


def built_by_dbt(root: Path) -> dict[str, Any]:
    """The columns of the models that dbt builds."""
    environment = {**os.environ, "PYSPARK_PYTHON": str(DBT), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([str(DBT), "-c", PROGRAM, str(root)], cwd=root.parent, env=environment, capture_output=True,
                          text=True, timeout=900, check=False)  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ROWS ")] or [done.stdout + done.stderr]
    columns: dict[str, Any] = json.loads(line.removeprefix("ROWS "))
    return columns


def test_contracts_hold_and_break_where_dbts_do(
    tmp_path: Path, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_engine(_connection: Connection, _home: Path, _profile: str) -> Engine:
        return Lent(engine)  # type: ignore[return-value]

    def is_built(names: list[str]) -> bool:
        root = write_project(tmp_path / "_".join(names)[:40], names)
        return run(VERBS, ["plan", "--auto-apply", "-p", str(root)], open_engine) == 0

    monkeypatch.setenv(PYTHON, str(DBT))
    expected = built_by_dbt(write_project(tmp_path / "dbt", [*MODELS]))

    assert {"table_in_order", "view_in_order", "other_name_of_type"} == {*expected}
    assert is_built([*expected])
    for name, columns in expected.items():
        assert [column.name for column in engine.schema(f"SELECT * FROM shop.{name}")] == columns
    for name in MODELS.keys() - expected.keys():
        assert not is_built([name])
