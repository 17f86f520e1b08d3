"""create-external-models: what dbt builds becomes known without asking Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.planner.cli.conftest import CommandLine

CONFIG = "gateways:\n  local:\n    connection: {type: spark}\nmodel_defaults: {dialect: spark, start: 2026-01-01}\n"


def node(kind: str, name: str, **more: Any) -> dict[str, Any]:
    columns = {"id": {"name": "ID", "data_type": "bigint"}, "at": {"name": "at", "description": "when"}}
    return {"resource_type": kind, "schema": "raw", "name": name, "alias": name, "columns": columns, **more}


@pytest.fixture
def project(offline: CommandLine) -> CommandLine:
    offline.write("config.yaml", CONFIG)
    offline.write(
        "models/a.sql",
        "MODEL (name shop.a, kind FULL);\nSELECT o.id, o.at, i.id AS item FROM raw.orders AS o "
        "JOIN raw.items AS i ON o.id = i.id",
    )
    return offline


def test_the_tables_of_a_dbt_project_are_known_by_its_manifest(project: CommandLine) -> None:
    nodes = {
        "model.x.orders": node("model", "orders", description="All orders", tags=["core"]),
        "model.x.gone": node("model", "gone", config={"materialized": "ephemeral"}),
        "test.x.t": node("test", "t"),
    }
    source = {**node("source", "items"), "identifier": "items", "columns": {"id": {"data_type": "int"}}}
    manifest = {"metadata": {"adapter_type": "spark"}, "nodes": nodes, "sources": {"source.x.items": source}}
    columns = {"ID": {"name": "ID", "type": "bigint", "index": 1}, "at": {"name": "at", "type": "date", "index": 2}}
    project.write("target/manifest.json", json.dumps(manifest))
    project.write("target/catalog.json", json.dumps({"nodes": {"model.x.orders": {"columns": columns}}}))
    ran = project("create-external-models", "--dbt-manifest", "target/manifest.json", "-o", "json")

    assert ran.result["tables"] == ["raw.items", "raw.orders"]
    items, orders = yaml.safe_load((project.root / "external_models.yaml").read_text())
    assert items == {"name": "raw.items", "columns": {"id": "int"}}
    assert (orders["description"], orders["tags"]) == ("All orders", ["core"])
    assert (orders["columns"], orders["column_descriptions"]) == ({"id": "bigint", "at": "date"}, {"at": "when"})
    assert project("lint").code == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nodes": []}'])
def test_what_is_no_manifest_is_a_sentence(project: CommandLine, text: str) -> None:
    project.write("manifest.json", text)
    ran = project("create-external-models", "--dbt-manifest", "manifest.json")

    assert (ran.code, "manifest.json:1: " in ran.err, "run `dbt parse`" in ran.err) == (1, True, True)
