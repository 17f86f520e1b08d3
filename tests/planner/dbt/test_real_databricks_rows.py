"""The rows that dbt-databricks itself makes, over days with late rows: in a local Spark that stands in for a workspace.

What the stand-in does not show is said in `workspace.py`. Tables are Delta, so it runs in `make prove-lakehouse`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyspark
import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.project.dbt.inputs import PYTHON
from tests.conftest import FORMAT

from .test_real_databricks import CONFIG, DBT
from .test_real_databricks import pytestmark as marks
from .test_real_dbt import CREATE, assert_same_rows, build
from .test_real_formats import (
    AFTER,
    AGAIN,
    DAYS,
    KEYED,
    LATEST,
    NEWEST,
    PLAIN,
    RECENT,
    SEED,
    SINCE,
    SOURCES,
    spark_settings,
)

pytestmark = [*marks, pytest.mark.skipif(FORMAT != "delta", reason="the tables of dbt-databricks are Delta")]
WORKSPACE = Path(__file__).with_name("workspace.py")
INCREMENTAL = "materialized='incremental', "
BATCHES = "event_time='day', begin='2026-01-01', batch_size='day', partition_by=['day']"
MODELS = {  # name -> configuration and query
    "whole": ("materialized='table'", "select code, sum(price) as price from {{ ref('named') }} group by code"),
    "shown": ("materialized='view'", "select * from {{ ref('whole') }} where price > 4"),
    "named": ("materialized='ephemeral'", f"{PLAIN} where code is not null"),
    "spread": ("materialized='table', partition_by=['code']", PLAIN),
    "clustered": ("materialized='table', liquid_clustered_by=['id']", PLAIN),
    "added": (f"{INCREMENTAL} incremental_strategy='append'", KEYED),
    "added_by_default": (INCREMENTAL, KEYED),
    "added_where_nothing": (f"{INCREMENTAL} incremental_strategy='replace_where'", KEYED),
    "merged": (f"{INCREMENTAL} incremental_strategy='merge', unique_key='id'", KEYED),
    "merged_by_default": (f"{INCREMENTAL} unique_key=['id']", LATEST),
    "merged_unknown": (
        f"{INCREMENTAL} unique_key='code'",
        "select code, sum(price) as price from {{ source('raw', 'items') }} group by code",
    ),
    "merged_two": (f"{INCREMENTAL} unique_key=['id', 'day']", KEYED),
    "merged_but": (f"{INCREMENTAL} unique_key='id', merge_exclude_columns=['code']", LATEST),
    "merged_recent": (
        f"{INCREMENTAL} unique_key='id', incremental_predicates=[\"DBT_INTERNAL_DEST.day >= '2026-01-02'\"]",
        LATEST,
    ),
    "merged_newer": (
        f"{INCREMENTAL} unique_key='id', target_alias='t', source_alias='s', merge_update_columns=['price', 'day'], "
        "matched_condition='t.day < s.day or t.price > 4'",
        LATEST,
    ),
    "merged_once": (f"{INCREMENTAL} unique_key='id', skip_matched_step=true", LATEST),
    "merged_evolving": (f"{INCREMENTAL} unique_key='id', merge_with_schema_evolution=true", LATEST),
    "replaced": (f"{INCREMENTAL} incremental_strategy='insert_overwrite', partition_by=['day']", NEWEST),
    "replaced_whole": (f"{INCREMENTAL} incremental_strategy='insert_overwrite'", NEWEST),
    "exchanged": (f"{INCREMENTAL} incremental_strategy='delete+insert', unique_key='day'", PLAIN),
    "exchanged_late": (f"{INCREMENTAL} incremental_strategy='delete+insert', unique_key='day'", RECENT),
    "exchanged_by_id": (f"{INCREMENTAL} incremental_strategy='delete+insert', unique_key=['id']", RECENT),
    "rewritten": (f"{INCREMENTAL} incremental_strategy='insert_overwrite', partition_by=['day']", AGAIN),
    "rewritten_two": (f"{INCREMENTAL} incremental_strategy='insert_overwrite', partition_by=['code', 'day']", AFTER),
    "rewritten_late": (f"{INCREMENTAL} incremental_strategy='insert_overwrite', partition_by=['code']", RECENT),
    "rewritten_whole": (f"{INCREMENTAL} incremental_strategy='insert_overwrite'", RECENT),
    "rewritten_of_itself": (f"{INCREMENTAL} incremental_strategy='insert_overwrite'", AGAIN),
    "renewed": (f"{INCREMENTAL} full_refresh=true", KEYED),
    "batched": (f"{INCREMENTAL} incremental_strategy='microbatch', {BATCHES}", PLAIN),
}


def write_project(root: Path) -> list[str]:
    """The project in a folder; the names of what it builds."""
    for name in ("models", "seeds"):
        (root / name).mkdir(parents=True)
    for name, (config, query) in MODELS.items():
        (root / f"models/{name}.sql").write_text(f"{{{{ config({config}) }}}}\n{query}\n")
    sources = SOURCES.replace("schema: raw,", "schema: raw, database: hive_metastore,")
    (root / "models/sources.yml").write_text(sources)
    (root / "seeds/rates.csv").write_text(SEED)
    (root / "dbt_project.yml").write_text(json.dumps({"name": "shop", "version": "1.0", "profile": "shop"}))
    output = {"type": "databricks", "host": "local.invalid", "http_path": "sql/protocolv1/o/1/local", "schema": "shop",
              "catalog": "hive_metastore", "token": "none"}  # fmt: skip
    (root / "profiles.yml").write_text(json.dumps({"shop": {"target": "prod", "outputs": {"prod": output}}}))
    (root / "config.yaml").write_text(CONFIG.replace("default_catalog: main", "default_catalog: hive_metastore"))
    return [*(MODELS.keys() - {"named"}), "rates"]


def built_by_dbt(root: Path, tables: list[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of dbt-databricks' own tables after a `dbt build` on each day."""
    libraries = root.parent / "libraries"  # of our own environment, pyspark alone
    libraries.mkdir()
    for name in ("pyspark", "py4j"):
        (libraries / name).symlink_to(Path(pyspark.__file__).parents[1] / name)
    arguments = (
        str(root),
        json.dumps(DAYS),
        json.dumps(tables),
        CREATE,
        json.dumps(SINCE),
        json.dumps(spark_settings()),
    )
    environment = {**os.environ, "PYSPARK_PYTHON": str(DBT), "SPARK_LOCAL_IP": "127.0.0.1",
                   "PYTHONPATH": str(libraries), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}  # fmt: skip
    done = subprocess.run([str(DBT), str(WORKSPACE), *arguments], cwd=root.parent, env=environment,
                          capture_output=True, text=True, timeout=1800, check=False)  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ROWS ")] or [done.stdout + done.stderr]
    rows: dict[str, list[dict[str, Any]]] = json.loads(line.removeprefix("ROWS "))
    return rows


def test_tables_hold_the_rows_that_dbt_databricks_makes(
    tmp_path: Path, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    tables = write_project(tmp_path / "dbt/shop")
    expected = built_by_dbt(tmp_path / "dbt/shop", tables)
    write_project(tmp_path / "shop")
    build(tmp_path / "shop", engine, DAYS)

    assert {name for name in tables if not expected[name]} == set()
    assert_same_rows(engine, expected)
