"""Each way in which dbt fills a table, over days with late rows and keys that come again: the rows of `dbt build`.

MERGEPLAN_TABLE_FORMAT says which tables both write, as `make prove-lakehouse` sets it; without it they are parquet.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.table_format import FORMATS
from mergeplan.planner.project.dbt.inputs import PYTHON
from tests.conftest import FORMAT

from .test_real_dbt import DBT, assert_same_rows, build, built_by_dbt
from .test_real_dbt import pytestmark as marks

pytestmark = [*marks, pytest.mark.skipif(FORMAT not in ("", "delta"), reason="dbt-spark was compared on Delta alone")]

KEYED = """select id, day, code, price from {{ source('raw', 'items') }}
{% if is_incremental() %} where day > (select max(day) from {{ this }}) {% endif %}"""
LATEST = """select id, max(day) as day, max(code) as code, max_by(price, day) as price
from {{ source('raw', 'items') }} group by id"""
PLAIN = "select id, code, price, day from {{ source('raw', 'items') }}"
NEWEST = """select id, code, price, day from {{ source('raw', 'items') }}
where day >= (select date_sub(max(day), 1) from {{ source('raw', 'items') }})"""
LATER = """select id, code, price, day from {{{{ source('raw', 'items') }}}}
{{% if is_incremental() %}} where {} {{% endif %}}"""
AGAIN = LATER.format("day >= (select max(day) from {{ this }})")
AFTER = LATER.format("day > (select date_sub(max(day), 1) from {{ this }}) and code is not null")
RECENT = LATER.format("day >= (select date_sub(max(day), 1) from {{ source('raw', 'items') }})")
BY_ID = "materialized='incremental', incremental_strategy='merge', unique_key='id'"
MODELS = {  # name -> configuration, query, and whether the format must know MERGE
    "whole": ("materialized='table'", "select code, sum(price) as price from {{ ref('named') }} group by code", False),
    "shown": ("materialized='view'", "select * from {{ ref('whole') }} where price > 4", False),
    "named": ("materialized='ephemeral'", f"{PLAIN} where code is not null", False),
    "spread": ("materialized='table', partition_by=['code']", PLAIN, False),
    "added": ("materialized='incremental', incremental_strategy='append'", KEYED, False),
    "by_default": ("materialized='incremental'", KEYED, False),
    "merged": ("materialized='incremental', incremental_strategy='merge', unique_key='id'", KEYED, True),
    "merged_late": ("materialized='incremental', incremental_strategy='merge', unique_key=['id']", LATEST, True),
    "merged_two": ("materialized='incremental', incremental_strategy='merge', unique_key=['id', 'day']", KEYED, True),
    "merged_some": (
        "materialized='incremental', incremental_strategy='merge', unique_key='id', merge_update_columns=['price']",
        LATEST, True,
    ),
    "merged_but": (
        f"{BY_ID}, merge_exclude_columns=['CODE']", LATEST, True,
    ),
    "merged_recent": (f"{BY_ID}, incremental_predicates=[\"DBT_INTERNAL_DEST.day >= '2026-01-02'\"]", LATEST, True),
    "merged_dear": (
        f"{BY_ID}, predicates=['DBT_INTERNAL_SOURCE.price > 4', 'dbt_internal_dest.code is not null']", KEYED, True
    ),
    "merged_none": ("materialized='incremental', incremental_strategy='merge'", KEYED, True),
    "replaced": (
        "materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['day']", NEWEST, False
    ),
    "replaced_whole": ("materialized='incremental', incremental_strategy='insert_overwrite'", NEWEST, False),
    "rewritten": (
        "materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['day']", AGAIN, False
    ),
    "rewritten_two": (
        "materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['code', 'day']",
        AFTER, False,
    ),
    "rewritten_late": (
        "materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['code']", RECENT, False
    ),
    "rewritten_whole": ("materialized='incremental', incremental_strategy='insert_overwrite'", RECENT, False),
    "rewritten_of_itself": ("materialized='incremental', incremental_strategy='insert_overwrite'", AGAIN, True),
    "renewed": ("materialized='incremental', full_refresh=true", KEYED, False),
    "batched": (
        "materialized='incremental', incremental_strategy='microbatch', event_time='day', begin='2026-01-01', "
        "batch_size='day', partition_by=['day']", PLAIN, False
    ),
}  # fmt: skip
DAYS = {  # keys come again on the second day and the third, each with a row that is late
    "2026-01-02": "(1, DATE'2026-01-01', 'EUR', 2), (2, DATE'2026-01-01', 'USD', 3)",
    "2026-01-03": "(3, DATE'2026-01-02', 'EUR', 4), (1, DATE'2026-01-02', 'GBP', 7), (4, DATE'2026-01-01', 'USD', 5)",
    "2026-01-04": "(5, DATE'2026-01-01', 'EUR', 9), (6, DATE'2026-01-03', 'USD', 5), (2, DATE'2026-01-03', NULL, 8)",
}
SINCE = {"2026-01-02": "2026-01-01", "2026-01-03": "2026-01-01", "2026-01-04": "2026-01-02"}  # with a lookback of 1
SEED = "code,rate,since\nEUR,1.0,2026-01-01\nUSD,0.9,2026-01-02\nGBP,,\n"
SOURCES = """sources: [{name: raw, schema: raw, tables: [{name: items, config: {event_time: day}, columns: [
  {name: id, data_type: int}, {name: day, data_type: date}, {name: code, data_type: string},
  {name: price, data_type: int}]}]}]"""


def write_project(root: Path) -> list[str]:
    """The project in a folder; the names of what it builds."""
    for name in ("models", "seeds"):
        (root / name).mkdir(parents=True)
    models = {name: texts for name, (*texts, merges) in MODELS.items() if FORMAT or not merges}
    for name, (config, query) in models.items():
        (root / f"models/{name}.sql").write_text(f"{{{{ config({config}) }}}}\n{query}\n")
    (root / "models/sources.yml").write_text(SOURCES)
    (root / "seeds/rates.csv").write_text(SEED)
    settings = {"shop": {"+file_format": FORMAT or "parquet"}}
    project = {"name": "shop", "version": "1.0", "profile": "shop", "models": settings, "seeds": settings}
    (root / "dbt_project.yml").write_text(json.dumps(project))
    output = {"type": "spark", "method": "session", "host": "none", "schema": "shop"}
    (root / "profiles.yml").write_text(json.dumps({"shop": {"target": "prod", "outputs": {"prod": output}}}))
    return [*(models.keys() - {"named"}), "rates"]


def spark_settings() -> dict[str, str]:
    """What dbt's own Spark needs to know the format; rows are few."""
    few = {
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Dderby.system.durability=test",
    }
    if not FORMAT:
        return few
    form = FORMATS[FORMAT]
    release = form.releases[0]  # of the pinned Spark
    extension = {"spark.sql.extensions": release.extension} if release.extension else {}
    return {
        "spark.jars.packages": release.package,
        **extension,
        **dict(release.settings),
        **dict(form.embedded_settings),
        **few,
    }


def test_each_materialization_holds_the_rows_of_dbt_build(
    tmp_path: Path, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    tables = write_project(tmp_path / "dbt/shop")
    expected = built_by_dbt(tmp_path / "dbt/shop", DAYS, tuple(tables), SINCE, spark_settings())
    write_project(tmp_path / "shop")
    build(tmp_path / "shop", engine, DAYS)

    assert {name for name in tables if not expected[name]} == set()
    assert_same_rows(engine, expected)
