"""Unit tests as dbt itself runs them: each passes or fails as it does there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mergeplan.planner.apply.unit_tests import run_unit_tests
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.loader import LoadOptions, load_project
from tests.planner.shop import NOW

from .recorded import SHOP
from .test_real_dbt import CREATE, DBT, pytestmark  # noqa: F401 - the marks of this file too

TESTS = """
version: 2
unit_tests:
  - name: of_csv
    model: total
    given:
      - input: ref('daily')
        format: csv
        rows: |
          id,day,code,cents
          1,2026-01-01,EUR,100
          2,2026-01-01,USD,
      - {input: ref('rates')}
    expect: {format: csv, rows: "day,cents,items\\n2026-01-01,100,2\\n"}
  - name: of_a_seed_and_a_fixture
    model: total
    given:
      - {input: ref('daily'), format: csv, fixture: some_days}
      - {input: ref('rates')}
    expect: {rows: [{day: 2026-01-02, cents: 90, items: 1}]}
  - name: of_sql
    model: total
    given:
      - {input: ref('daily'), format: sql, rows: "select 1 as id, date'2026-01-01' as day, 'EUR' as code, 7 as cents"}
      - {input: ref('rates'), rows: [{code: EUR, rate: 2}]}
    expect:
      format: sql
      rows: select date'2026-01-01' as day, cast(14.0 as double) as cents, cast(1 as bigint) as items
  - name: wrong_value
    model: total
    given:
      - {input: ref('daily'), rows: [{day: 2026-01-01, code: EUR, cents: 100}]}
      - {input: ref('rates')}
    expect: {rows: [{cents: 101}]}
  - name: wrong_number
    model: total
    given: [{input: ref('daily'), rows: []}, {input: ref('rates')}]
    expect: {rows: [{cents: 0}]}
  - name: no_rows
    model: total
    given: [{input: ref('daily'), rows: []}, {input: ref('rates')}]
    expect: {rows: []}
  - name: first_run
    model: daily
    overrides: {macros: {is_incremental: false}}
    given: [{input: ref('stg_items'), format: sql, fixture: items}]
    expect: {rows: [{id: 1}, {id: 2}]}
  - name: later_run
    model: daily
    overrides: {macros: {is_incremental: true}}
    given:
      - {input: ref('stg_items'), format: sql, fixture: items}
      - {input: this, rows: [{id: 1, day: 2026-01-01}]}
    expect: {rows: [{id: 2}]}
  - name: later_run_with_all
    model: daily
    overrides: {macros: {is_incremental: true}}
    given:
      - {input: ref('stg_items'), format: sql, fixture: items}
      - {input: this, rows: [{id: 1, day: 2026-01-01}]}
    expect: {rows: [{id: 1}, {id: 2}]}
"""
ITEMS = """
select 1 as id, date'2026-01-01' as day, 'EUR' as code, cast(7 as bigint) as cents
union all select 2, date'2026-01-02', 'EUR', 8
"""
PROGRAM = """
import json, sys
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession
root, create = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").enableHiveSupport().getOrCreate()
spark.sql("CREATE DATABASE raw")
spark.sql(create)
folders = ["--project-dir", root, "--profiles-dir", root]
dbtRunner().invoke(["run", *folders, "--exclude", "asks"])
dbtRunner().invoke(["seed", *folders])
dbtRunner().invoke(["run", *folders, "--exclude", "asks"])
tested = dbtRunner().invoke(["test", *folders, "--select", "test_type:unit"])
print("ROWS " + json.dumps({result.node.name: str(result.status) for result in tested.result.results}))
"""


def results_of_dbt(root: Path) -> dict[str, str]:
    """Each unit test with its status."""
    environment = {**os.environ, "PYSPARK_PYTHON": str(DBT), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([str(DBT), "-c", PROGRAM, str(root), CREATE], cwd=root.parent, env=environment,
                          capture_output=True, text=True, timeout=900, check=False)  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ROWS ")] or [done.stdout + done.stderr]
    results: dict[str, str] = json.loads(line.removeprefix("ROWS "))
    return results


def test_unit_tests_pass_and_fail_as_in_dbt(
    tmp_path: Path, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    root = Path(shutil.copytree(SHOP, tmp_path / "shop"))
    (root / "models/unit.yml").write_text(TESTS)
    (root / "tests/fixtures").mkdir()
    (root / "tests/fixtures/items.sql").write_text(ITEMS)
    (root / "tests/fixtures/some_days.csv").write_text("id,day,code,cents\n1,2026-01-02,USD,100\n")
    expected = results_of_dbt(Path(shutil.copytree(root, tmp_path / "dbt/shop")))

    project = load_project(root, NOW, options=LoadOptions(strict=False))
    results = run_unit_tests(engine, project, project.tests)

    passed = {name for name, status in expected.items() if status == "pass"}
    assert expected.keys() - passed == {"wrong_value", "wrong_number", "later_run_with_all"}, expected
    assert {result.test.name.partition(".")[2] for result in results if result.ok} == passed
    assert len(results) == len(expected)
