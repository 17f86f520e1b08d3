"""Templates that ask the warehouse: compiled as dbt compiles them, and changed when an answer is another one."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.project.dbt.inputs import PYTHON
from tests.planner.cli.conftest import Lent

from .recorded import SHOP
from .test_real_dbt import DBT, assert_same_rows, build, built_by_dbt

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not DBT.exists(), reason="no dbt: `make .venv-dbt/.ready` installs it, as `make prove` does"),
]
MACROS = """
{% macro star(relation) %}
  {%- for c in adapter.get_columns_in_relation(relation) %}{{ c.quoted }},{% endfor -%}
{% endmacro %}
{% macro distinct_values(column, relation) %}
  {% if not execute or load_relation(relation) is none %}{{ return([]) }}{% endif %}
  {% set found = run_query("select " ~ column ~ " as v from " ~ relation ~ " group by 1 order by count(*) desc") %}
  {{ return(found.columns[0].values() | list) }}
{% endmacro %}
"""
MODELS = {
    "starred": "select {% if execute %}{{ star(ref('total')) }}{% endif %} 1 as one from {{ ref('total') }}",
    "restarred": "select {% if execute %}{{ star(ref('starred')) }}{% endif %} 2 as two from {{ ref('starred') }}",
    "pivoted": """select day{% for code in distinct_values('code', source('raw', 'items')) -%}
        , sum(if(code = '{{ code }}', price, 0)) as {{ code }}{% endfor %}
        from {{ source('raw', 'items') }} group by day""",
    "bounds": """{% set found = run_query("select max(day) as d, max(price) as p from " ~ source('raw', 'items')) %}
        select {% if execute %}date'{{ found.rows[0]['d'] }}' as d, {{ found.rows[0]['p'] + 1 }}{% endif %} as p""",
    "grown": """{{ config(materialized='incremental', incremental_strategy='append') }}
        select id from {{ source('raw', 'items') }}
        {% if load_relation(this) %} where id > (select max(id) from {{ this }}){% endif %}""",
}
OF_NODES = {
    "rated": """select 1 as one{% for code in distinct_values('code', ref('rates')) | sort %}, 1 as {{ code }}
        {%- endfor %}""",
    "totals": "select '{{ distinct_values('cents', ref('total')) | join(' ') }}' as cents",
}
ROWS = "(1, DATE'2026-01-01', 'EUR', 2), (2, DATE'2026-01-01', 'USD', 3), (3, DATE'2026-01-01', 'USD', 3)"
DAY = {"2026-01-02": ROWS}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(PYTHON, str(DBT))
    monkeypatch.setenv("MERGEPLAN_CACHE", str(tmp_path / "cache"))
    root = Path(shutil.copytree(SHOP, tmp_path / "shop"))
    (root / "macros/asking.sql").write_text(MACROS)
    for name, text in MODELS.items():
        (root / f"models/{name}.sql").write_text(text)
    return root


def plan(shop: Path, engine: SparkEngine) -> dict[str, str]:
    """What a plan of prod changes: the category of each model."""

    def open_engine(_connection: Connection, _home: Path, _profile: str) -> Engine:
        return Lent(engine)  # type: ignore[return-value]

    out = io.StringIO()
    arguments = ["plan", "-p", str(shop), "--skip-tests", "--output", "json", "--execution-time", "2026-01-02"]
    with contextlib.redirect_stdout(out):
        assert run(VERBS, arguments, open_engine) == 0
    result: dict[str, Any] = json.loads(out.getvalue().splitlines()[-1])
    return {model["name"]: model["category"] for model in result["plan"]["models"]}


def test_a_model_that_asks_has_the_rows_of_dbt_build_and_changes_with_the_answer(
    shop: Path, tmp_path: Path, engine: SparkEngine
) -> None:
    expected = built_by_dbt(Path(shutil.copytree(shop, tmp_path / "dbt/shop")), DAY, tuple(MODELS))
    build(shop, engine, DAY)
    assert_same_rows(engine, expected)

    assert plan(shop, engine) == {}
    engine.fetch("INSERT INTO raw.items VALUES (4, DATE'2026-01-01', 'USD', 1)")
    assert plan(shop, engine) == {}
    engine.fetch("INSERT INTO raw.items VALUES (5, DATE'2026-01-01', 'GBP', 1)")
    assert plan(shop, engine) == {"shop.pivoted": "non_breaking"}


def test_columns_are_those_of_the_edited_model_and_not_of_prods(shop: Path, engine: SparkEngine) -> None:
    build(shop, engine, DAY)
    total = shop / "models/total.sql"
    total.write_text(total.read_text().replace("as items", "as items, min(daily.id) as first_id"))

    assert plan(shop, engine).keys() >= {"shop.total", "shop.starred", "shop.restarred"}


def test_rows_of_what_the_same_pull_request_edits_are_those_of_the_folder(shop: Path, engine: SparkEngine) -> None:
    for name, text in OF_NODES.items():
        (shop / f"models/{name}.sql").write_text(text)
    build(shop, engine, DAY)
    assert plan(shop, engine) == {}
    rates, total = shop / "seeds/rates.csv", shop / "models/total.sql"
    rates.write_text(rates.read_text() + "GBP,1.2,2026-01-03\n")
    total.write_text(total.read_text().replace("sum(", "1000 + sum("))

    changed = plan(shop, engine)

    assert changed["shop.rated"] == "non_breaking"
    assert changed["shop.totals"] == "breaking"
