"""Hooks of dbt: rows that a macro inserts are those of `dbt build`, and a seed that one loads is known by how."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.dbt.hooks import is_loaded, refuse_hooks
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.project.dbt.compile import compile_dbt
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.python.isolation import NO_ISOLATION
from tests.planner.shop import rows

from .recorded import SHOP
from .test_real_dbt import DBT, assert_same_rows, build, built_by_dbt

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not DBT.exists(), reason="no dbt: `make .venv-dbt/.ready` installs it, as `make prove` does"),
]
MACROS = """
{% macro add_rows(relation) %}
  {% for number in range(2) %}
    {% call statement('insert', fetch_result=true) %}
      insert into {{ relation }} values ({{ number }}, {{ number }}, null, 1), (7, 8, true, 1.25) -- both
    {% endcall %}
    {% if execute %}{{ log('rows: ' ~ load_result('insert')['data']) }}{% endif %}
  {% endfor %}
{% endmacro %}
{% macro load() %}
  {% call statement('reset') %} truncate table {{ this }} {% endcall %}
  {% call statement('load') %}
    copy into {{ this }} from (select
      {%- for column in adapter.get_columns_in_relation(this) %} _c{{ loop.index0 }}::{{ column.dtype }}{% endfor %}
      from 's3://bucket/{{ this.name }}.csv')
  {% endcall %}
{% endmacro %}
{% macro load_by_what_it_returns() %}
  {% call statement('load', fetch_result=true) %} copy into {{ this }} from 's3://bucket' {% endcall %}
  {% if execute and load_result('load')['data'][0][0] > 1 %} {% do run_query('truncate table ' ~ this) %} {% endif %}
{% endmacro %}
"""
NOTED = """{{ config(materialized='table', post_hook="{{ add_rows(this) }}") }}
select cast(null as int) as a, cast('' as string) as b, cast(1 as boolean) as c, cast(1 as double) as d where 1 = 0"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(PYTHON, str(DBT))
    monkeypatch.setenv("MERGEPLAN_CACHE", str(tmp_path / "cache"))
    root = Path(shutil.copytree(SHOP, tmp_path / "shop"))
    (root / "macros/adding.sql").write_text(MACROS)
    return root


def test_rows_that_a_hook_inserts_are_those_of_dbt_build(shop: Path, tmp_path: Path, engine: SparkEngine) -> None:
    day = {"2026-01-02": "(1, DATE'2026-01-01', 'EUR', 2)"}
    (shop / "models/noted.sql").write_text(NOTED)
    expected = built_by_dbt(Path(shutil.copytree(shop, tmp_path / "dbt/shop")), day, ("noted",))

    build(shop, engine, day)

    assert_same_rows(engine, expected)
    assert len(rows(engine, "SELECT * FROM shop.noted")) == 4


def test_a_seed_that_a_macro_loads_is_known_by_what_it_sends(shop: Path) -> None:
    macros = {"loaded": "load()", "asked": "load_by_what_it_returns()"}
    for name in macros:
        (shop / f"seeds/{name}.csv").write_text("id,at\n")
    types = {"id": "bigint", "at": "date"}
    configs = {name: {"+column_types": types, "+post-hook": f"{{{{ {macro} }}}}"} for name, macro in macros.items()}
    with (shop / "dbt_project.yml").open("a") as file:
        file.write(f"\nseeds: {json.dumps({'shop': configs})}\n")

    project = compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))

    nodes = {node.name: node for node in project.nodes}
    sent = [" ".join(hook.split()) for hook in nodes["loaded"].post_hooks]
    assert sent == [
        "truncate table shop.loaded",
        "copy into shop.loaded from (select _c0::bigint _c1::date from 's3://bucket/loaded.csv')",
    ]
    assert is_loaded(nodes["loaded"])
    assert not is_loaded(nodes["asked"])


def test_a_hook_that_asks_its_own_table_is_refused_as_it_is_written(shop: Path) -> None:
    hook = "{{ run_query('select max(a) from ' ~ this) }}"
    (shop / "models/filled.sql").write_text(
        f'{{{{ config(materialized="table", post_hook="{hook}") }}}}\nselect 1 as a'
    )

    project = compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))

    filled = project.by_id["model.shop.filled"]
    assert (filled.error, filled.text.strip()) == ("", "select 1 as a")
    with pytest.raises(ProjectError, match=r"has the hook `{{ run_query\('select max\(a\) from ' ~ this\) }}`"):
        refuse_hooks(filled)
