"""Unit tests of a dbt project in our format: the table after a load by each strategy, and macros."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mergeplan.planner.apply.unit_tests import run_unit_tests
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.loader import LoadOptions, load_project
from tests.planner.shop import NOW

from .recorded import SHOP
from .test_real_dbt import DBT, pytestmark  # noqa: F401 - the marks of this file too

CONFIG = "{{{{ config(materialized='incremental', file_format='parquet', {}) }}}}\n"
ITEMS = "select id, day, code, price from {{ source('raw', 'items') }}"
TWOFOLD = ITEMS + "{% if is_incremental() %} where id > (select min(id) from {{ this }}){% endif %}"
MODELS = {
    "merged": ("incremental_strategy='merge', unique_key='id'", TWOFOLD),
    "deleted": ("incremental_strategy='delete+insert', unique_key='day'", ITEMS),
    "appended": ("incremental_strategy='append'", ITEMS),
    "overwritten": ("incremental_strategy='insert_overwrite', partition_by=['code']", ITEMS),
    "batched": ("incremental_strategy='microbatch', event_time='day', begin='2026-01-01', batch_size='day'", ITEMS),
}
AFTER = {
    "merged": "[{id: 1, price: 1}, {id: 2, price: 20}, {id: 3, price: 30}]",
    "deleted": "[{id: 1, price: 1}, {id: 2, price: 20}, {id: 3, price: 30}]",
    "appended": "[{id: 1, price: 1}, {id: 2, price: 2}, {id: 2, price: 20}, {id: 3, price: 30}]",
    "overwritten": "[{id: 1, price: 1}, {id: 2, price: 20}, {id: 3, price: 30}]",
    "batched": "[{id: 1, price: 1}, {id: 2, price: 20}, {id: 3, price: 30}]",
}
TEST = """
  - name: {name}_later
    model: {name}
    overrides: {{macros: {{is_incremental: true}}}}
    given:
      - input: source('raw', 'items')
        rows: [{{id: 2, day: 2026-01-02, code: USD, price: 20}}, {{id: 3, day: 2026-01-02, code: USD, price: 30}}]
      - input: this
        rows: [{{id: 1, day: 2026-01-01, code: EUR, price: 1}}, {{id: 2, day: 2026-01-02, code: USD, price: 2}}]
    expect: {{rows: [{{id: 2, price: 20}}, {{id: 3, price: 30}}]}}
    config:
      meta: {{mergeplan: {{start: 2026-01-02, table: {{partial: true, rows: {after}}}}}}}
"""
SNAPSHOT = """
{% snapshot kept %}
{{ config(strategy='check', unique_key='id', check_cols=['price'], target_schema='shop', hard_deletes='new_record',
          file_format='parquet') }}
select id, price from {{ source('raw', 'items') }}
{% endsnapshot %}
"""
OWN = """
kept_later:
  model: kept
  vars: {execution_time: 2026-02-01}
  this:
  - {id: 1, price: 1, dbt_valid_from: 2026-01-01}
  - {id: 2, price: 2, dbt_valid_from: 2026-01-01}
  - {id: 3, price: 3, dbt_valid_from: 2026-01-01}
  inputs: {raw.items: [{id: 1, price: 1}, {id: 2, price: 20}]}
  outputs:
    partial: true
    table:
    - {id: 1, price: 1, dbt_valid_from: 2026-01-01, dbt_valid_to: null, dbt_is_deleted: 'False'}
    - {id: 2, price: 2, dbt_valid_from: 2026-01-01, dbt_valid_to: 2026-02-01, dbt_is_deleted: 'False'}
    - {id: 2, price: 20, dbt_valid_from: 2026-02-01, dbt_valid_to: null, dbt_is_deleted: 'False'}
    - {id: 3, price: 3, dbt_valid_from: 2026-01-01, dbt_valid_to: 2026-02-01, dbt_is_deleted: 'False'}
    - {dbt_valid_from: 2026-02-01, dbt_valid_to: null, dbt_is_deleted: 'True'}
"""


def test_the_table_after_a_load_is_that_of_the_strategy(
    tmp_path: Path, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    root = Path(shutil.copytree(SHOP, tmp_path / "shop"))
    for name, (settings, query) in MODELS.items():
        (root / f"models/{name}.sql").write_text(CONFIG.format(settings) + query)
    tests = "".join(TEST.format(name=name, after=after) for name, after in AFTER.items())
    (root / "models/loads.yml").write_text(f"version: 2\nunit_tests:{tests}")
    (root / "snapshots").mkdir()
    (root / "snapshots/kept.sql").write_text(SNAPSHOT)
    (root / "mergeplan_tests").mkdir()
    (root / "mergeplan_tests/kept.yaml").write_text(OWN)

    project = load_project(root, NOW, options=LoadOptions(strict=False))
    results = run_unit_tests(engine, project, [test for test in project.tests if test.name.endswith("_later")])

    assert {result.test.name: result.message for result in results} == {
        **{f"{name}.{name}_later": "" for name in MODELS},
        "kept_later": "",
    }, project.notes
    batched = next(test for test in project.tests if test.model == "shop.batched")
    assert batched.query is None


CALLS = """
of_text:
  macro: cents
  call: "{{ cents('amount') }}"
  outputs: {text: "CAST(amount * 100 AS BIGINT)"}
of_rows:
  macro: cents
  call: "select id, {{ cents('price') }} as total from {{ source('raw', 'items') }}"
  inputs: {raw.items: [{id: 1, price: 2}]}
  outputs: {query: [{id: 1, total: 200}]}
of_a_mistake:
  macro: gone
  call: "{{ gone(1) }}"
  outputs: {text: x}
of_the_warehouse:
  macro: run_query
  call: "{{ run_query('select 1') }}"
  outputs: {text: x}
"""


def test_a_macro_of_dbt_is_rendered_by_dbt(
    tmp_path: Path, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    root = Path(shutil.copytree(SHOP, tmp_path / "shop"))
    (root / "mergeplan_tests").mkdir()
    (root / "mergeplan_tests/calls.yml").write_text(CALLS)

    project = load_project(root, NOW, options=LoadOptions(strict=False))
    results = run_unit_tests(engine, project, [test for test in project.tests if test.call])

    messages = {result.test.name: result.message for result in results}
    assert [messages["of_text"], messages["of_rows"]] == ["", ""]
    assert "calls.yml:11: dbt cannot render the call: 'gone' is undefined." in messages["of_a_mistake"]
    assert "It asks the warehouse while it is compiled." in messages["of_the_warehouse"]
