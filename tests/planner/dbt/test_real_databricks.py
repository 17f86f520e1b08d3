"""A project for Databricks, compiled by dbt-databricks itself without a warehouse: defaults, macros and strategies."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.parsing.files.dbt.nodes import DbtNode, DbtProject
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.project.dbt.compile import compile_dbt
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from mergeplan.planner.python.isolation import NO_ISOLATION, Isolation
from tests.planner.dbt.admission import admit_project_code
from tests.planner.shop import NOW

from .recorded import SHOP

ROOT = Path(__file__).parents[3]
DBT = ROOT / ".venv-dbt-databricks/bin/python"
RELEASE = {line.partition("==")[0]: line.partition("==")[2]
           for line in (Path(__file__).parent / "requirements-databricks.txt").read_text().split()}  # fmt: skip
pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not DBT.exists(), reason="no dbt-databricks: `make .venv-dbt-databricks/.ready` installs it"),
]
QUERY = "select 1 as id, date'2026-01-01' as day, 'a' as name"
LATER = QUERY + "{% if is_incremental() %} where 1 = 0{% endif %}"
INCREMENTAL = "materialized='incremental', "
BATCHES = "event_time='day', begin='2026-01-01', batch_size='day'"
OPENED = {  # configuration, query and the kind
    "plain": ("materialized='table'", QUERY, Kind.FULL),
    "clustered": ("materialized='table', liquid_clustered_by=['id'], auto_liquid_cluster=false", QUERY, Kind.FULL),
    "tuned": (
        "materialized='table', zorder='id', tblproperties={'delta.enableChangeDataFeed': 'true'}, "
        "databricks_tags={'team': 'sales'}",
        QUERY,
        Kind.FULL,
    ),
    "merged_by_default": (f"{INCREMENTAL} unique_key='id'", LATER, Kind.INCREMENTAL_BY_UNIQUE_KEY),
    "merged_clustered": (
        f"{INCREMENTAL} unique_key=['id', 'day'], liquid_clustered_by='day'", LATER, Kind.INCREMENTAL_BY_UNIQUE_KEY
    ),
    "merged_but": (
        f"{INCREMENTAL} unique_key='id', merge_exclude_columns=['name'], merge_with_schema_evolution=true", LATER,
        Kind.INCREMENTAL_BY_UNIQUE_KEY,
    ),
    "merged_newer": (
        f"{INCREMENTAL} unique_key='id', source_alias='s', matched_condition='s.id > DBT_INTERNAL_DEST.id'", LATER,
        Kind.INCREMENTAL_BY_UNIQUE_KEY,
    ),
    "merged_some": (
        f"{INCREMENTAL} unique_key='id', merge_update_columns=['name']", LATER, Kind.INCREMENTAL_BY_UNIQUE_KEY
    ),
    "spelled": ("materialized='table'", "select iff(id = 1, 'a', name) as name, getdate() as at from plain", Kind.FULL),
    "refreshed": ("materialized='materialized_view'", QUERY, Kind.FULL),
    "added_by_default": (INCREMENTAL, LATER, Kind.INCREMENTAL_UNMANAGED),
    "added": (f"{INCREMENTAL} incremental_strategy='append'", LATER, Kind.INCREMENTAL_UNMANAGED),
    "added_where_nothing": (f"{INCREMENTAL} incremental_strategy='replace_where'", LATER, Kind.INCREMENTAL_UNMANAGED),
    "replaced": (
        f"{INCREMENTAL} incremental_strategy='insert_overwrite', partition_by='day'", QUERY,
        Kind.INCREMENTAL_BY_PARTITION,
    ),
    "batched": (
        f"{INCREMENTAL} incremental_strategy='microbatch', {BATCHES}", QUERY, Kind.INCREMENTAL_BY_TIME_RANGE
    ),
}  # fmt: skip
REFUSED = {  # configuration and what is said of it
    "replace_where": (
        "incremental_strategy='replace_where', incremental_predicates=\"day >= '2026-01-01'\"",
        "sets `incremental_predicates`, which mergeplan follows in a `merge` only",
    ),
    "predicates": ("unique_key='id', predicates=\"day > '2026-01-01'\"", "sets `predicates` to a text"),
    "deletes": (
        "incremental_strategy='delete+insert', unique_key=['id', 'day']",
        "deletes and inserts by several columns",
    ),
    "matched": ("unique_key='id', matched_condition='x.id > 1', source_alias='s'", "names `x.id`"),
    "inserts": ("unique_key='id', not_matched_condition='s.id > 1'", "sets `not_matched_condition`"),
    "by_source": ("unique_key='id', not_matched_by_source_action='delete'", "sets `not_matched_by_source_action`"),
    "skips": ("unique_key='id', skip_not_matched_step=true", "sets `skip_not_matched_step`"),
    "replaced_clustered": (
        "incremental_strategy='insert_overwrite', liquid_clustered_by='day'",
        "replaces rows by `liquid_clustered_by`",
    ),
    "streams": ("materialized='streaming_table'", "is materialized as `streaming_table`"),
    "unrefreshed": (
        "materialized='materialized_view', on_configuration_change='continue'",
        "sets `on_configuration_change` to `continue`",
    ),
}
ASKS = """select {% for column in adapter.get_columns_in_relation(ref('plain')) %}{{ column.name }}, {% endfor %}
{{ dbt.dateadd('day', 1, 'day') }} as next, {{ dbt.type_string() }}('x') as text from {{ ref('plain') }}"""

CONFIG = "gateways: {dbx: {connection: {type: spark, default_catalog: main}}}\nmodel_defaults: {dialect: spark}\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of these models."""
    root = tmp_path / "unity"
    (root / "models").mkdir(parents=True)
    for name, (config, query, _) in OPENED.items():
        (root / f"models/{name}.sql").write_text(f"{{{{ config({config}) }}}}\n{query}\n")
    for name, (config, _) in REFUSED.items():
        config = config if "materialized" in config else INCREMENTAL + config
        (root / f"models/{name}.sql").write_text(f"{{{{ config({config}) }}}}\n{QUERY}\n")
    (root / "models/asks.sql").write_text(ASKS)
    (root / "dbt_project.yml").write_text(json.dumps({"name": "unity", "version": "1.0", "profile": "unity"}))
    output = {"type": "databricks", "host": "x.cloud", "http_path": "/sql/1", "schema": "live", "catalog": "main",
              "token": "{{ env_var('DBT_ENV_SECRET_TOKEN') }}"}  # fmt: skip
    (root / "profiles.yml").write_text(json.dumps({"unity": {"target": "prod", "outputs": {"prod": output}}}))
    (root / "config.yaml").write_text(CONFIG)
    monkeypatch.setenv(PYTHON, str(DBT))
    return root


def test_a_table_without_a_schema_is_the_model_that_dbts_connection_finds(root: Path) -> None:
    project = load_project(root, NOW, options=LoadOptions(strict=False))

    spelled = project.models["live.spelled"]
    assert [*spelled.depends_on] == ["live.plain"]
    assert "IF(id = 1, 'a', name)" in spelled.sql


def compile_project(root: Path, isolation: Isolation = NO_ISOLATION) -> DbtProject:
    return compile_dbt(Folder(root, Cache(None)), DbtConfig(), os.environ, isolation, Cache(None))


def test_a_foreign_key_stays_a_reference_where_its_model_is_compiled_again(root: Path) -> None:
    (root / "models/keyed.sql").write_text("select 1 as id, '{{ run_started_at }}' as at")  # compiled for some times
    key = {"type": "foreign_key", "columns": ["id"], "to": "ref('plain')", "to_columns": ["id"]}
    columns = [{"name": "id", "data_type": "int"}, {"name": "at", "data_type": "string"}]
    model = {"name": "keyed", "config": {"contract": {"enforced": True}}, "constraints": [key], "columns": columns}
    (root / "models/schema.yml").write_text(json.dumps({"models": [model]}))

    assert not compile_project(root).by_id["model.unity.keyed"].error


def load(root: Path) -> Project:
    return load_project(root, NOW, options=LoadOptions(strict=False))


def test_models_have_what_dbt_databricks_does_where_they_say_nothing(root: Path) -> None:
    project = load(root)
    models = {name.rpartition(".")[2]: model for name, model in project.models.items()}

    assert {name: models[name].kind for name in OPENED} == {name: kind for name, (*_, kind) in OPENED.items()}
    assert {name.rpartition(".")[0] for name in project.models} == {"live"}  # its catalog is the default one
    assert {model.storage.table_format for model in models.values() if model.kind.is_stored} == {"delta"}


def test_what_mergeplan_does_not_do_as_dbt_databricks_is_refused_alone(root: Path) -> None:
    project = load(root)
    said = {refusal.path: str(refusal.errors[0]) for refusal in project.refused.refusals}

    assert said.keys() == {f"models/{name}.sql" for name in REFUSED}, said
    for name, (_, sentence) in REFUSED.items():
        assert said[f"models/{name}.sql"].startswith(f"models/{name}.sql:1: `main.live.{name}` {sentence}")


def test_its_macros_and_questions_are_answered_without_a_warehouse(root: Path, tmp_path: Path) -> None:
    admit_project_code(tmp_path)
    project = compile_project(root, Isolation(required=True))
    nodes: dict[str, DbtNode] = {node.name: node for node in project.nodes}

    assert project.dbt == RELEASE["dbt-core"]
    assert (nodes["asks"].error, nodes["asks"].text.split("\n")[0]) == ("", "select id, day, name, ")
    assert "from `main`.`live`.`plain`" in nodes["asks"].text
    assert ["where 1 = 0" in text for text in (nodes["merged_by_default"].text, nodes["merged_by_default"].later)] == [
        False, True,
    ]  # fmt: skip


def test_the_path_of_a_warehouse_decides_how_a_model_is_kept_where_it_is_known(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = "{{ config(materialized='table' if '/warehouses/' in target.http_path else 'incremental') }} select 1 as a"
    (root / "models/kept.sql").write_text(kept)

    def compiled() -> tuple[str, str]:
        node = compile_project(root).by_id["model.unity.kept"]
        return node.materialized, node.error

    assert compiled() == ("incremental", "")
    profile = root / "profiles.yml"
    profile.write_text(profile.read_text().replace("/sql/1", "{{ env_var('DBT_PATH') }}"))
    assert "`target.http_path`, which mergeplan does not know" in compiled()[1]
    monkeypatch.setenv("DBT_PATH", "/sql/1.0/warehouses/a")
    assert compiled() == ("table", "")


def test_a_project_of_dbt_spark_opens_with_dbt_databricks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables are Delta, and its incremental models merge, which is an append without a key."""
    monkeypatch.setenv(PYTHON, str(DBT))
    output = {"type": "databricks", "host": "x", "http_path": "/x", "schema": "shop", "catalog": "main", "token": "t"}
    profiles = {"shop": {"target": "prod", "outputs": {"prod": output}}}
    root = tmp_path / "shop"
    for file in SHOP.rglob("*.*"):
        (root / file.relative_to(SHOP)).parent.mkdir(parents=True, exist_ok=True)
        (root / file.relative_to(SHOP)).write_text(file.read_text())
    (root / "profiles.yml").write_text(json.dumps(profiles))
    (root / "models/asks.sql").unlink()
    (root / "config.yaml").write_text(CONFIG)
    project = load(root)

    assert not project.refused
    assert project.models["shop.daily"].kind is Kind.INCREMENTAL_UNMANAGED
    assert [project.models[f"shop.{name}"].storage.table_format for name in ("daily", "total")] == ["delta", "delta"]
