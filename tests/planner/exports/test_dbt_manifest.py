"""dbt's files of a catalog: what a reader of them finds of models, audits, sources and exposures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.exports.dbt_manifest import dbt_catalog, dbt_manifest
from tests.planner.shop import ALONE

Make = Callable[..., Catalog]
CONFIG = """project: p
gateways: {local: {connection: {type: spark}}}
model_defaults: {dialect: spark, start: 2026-01-01}
"""
ODD = "MODEL (name shop.odd, kind VIEW, owner ann, tags (fine));\nSELECT x.a, t.total FROM raw.stuff x, shop.total t"
SAME = "MODEL (name shop.apart, kind FULL);\nSELECT 1 AS x"
BOARD = "- name: Board, weekly\n  type: report\n  owner: Ann\n  models: [shop.total]\n"


@pytest.fixture
def shop(catalog: Make) -> Catalog:
    return catalog(
        {"config.yaml": CONFIG, "exposures.yaml": BOARD},
        odd=ODD,
    )


def test_every_model_is_a_node_of_its_sort(shop: Catalog) -> None:
    nodes = dbt_manifest(shop)["nodes"]

    kinds = {uid: node["config"]["materialized"] for uid, node in nodes.items() if not uid.startswith("test.")}
    assert kinds == {
        "seed.p.items": "seed", "model.p.daily": "incremental", "model.p.total": "table", "model.p.shown": "view",
        "model.p.apart": "table", "model.p.odd": "view",
    }  # fmt: skip


def test_a_node_has_its_parents_columns_query_and_owner(shop: Catalog) -> None:
    made = dbt_manifest(shop)
    odd = made["nodes"]["model.p.odd"]

    assert odd["depends_on"]["nodes"] == ["source.p.raw.stuff", "model.p.total"]
    assert (odd["refs"][0]["name"], odd["sources"]) == ("total", [["raw", "stuff"]])
    assert (odd["schema"], odd["alias"], odd["relation_name"]) == ("shop", "odd", "shop.odd")
    assert odd["compiled_code"].startswith("SELECT x.a, t.total")
    assert (odd["meta"]["owner"], odd["tags"], odd["original_file_path"]) == ("ann", ["fine"], "models/odd.sql")
    assert list(made["nodes"]["model.p.daily"]["columns"]) == ["id", "price", "day"]


def test_parents_and_children_mirror_each_other(shop: Catalog) -> None:
    made = dbt_manifest(shop)
    parents, children = made["parent_map"], made["child_map"]

    assert {(p, c) for c, above in parents.items() for p in above} == {(p, c) for p, b in children.items() for c in b}
    assert parents.keys() == made["nodes"].keys() | made["sources"].keys() | made["exposures"].keys()


def test_an_audit_is_a_test_for_each_column(shop: Catalog) -> None:
    nodes = dbt_manifest(shop)["nodes"]

    (test,) = (node for uid, node in nodes.items() if uid.startswith("test."))
    assert test["test_metadata"] == {"name": "not_null", "kwargs": {"column_name": "id"}, "namespace": None}
    assert (test["attached_node"], test["column_name"], test["config"]["severity"]) == ("model.p.daily", "id", "ERROR")


def test_an_exposure_names_what_it_uses(shop: Catalog) -> None:
    (exposure,) = dbt_manifest(shop)["exposures"].values()

    assert (exposure["label"], exposure["type"], exposure["meta"]) == (
        "Board, weekly",
        "application",
        {"type": "report"},
    )
    assert (exposure["owner"]["name"], exposure["depends_on"]["nodes"]) == ("Ann", ["model.p.total"])


def test_the_catalog_has_columns_with_types_where_they_are_known(shop: Catalog) -> None:
    nodes = dbt_catalog(shop)["nodes"]

    assert nodes["model.p.daily"]["columns"]["day"] == {"type": "date", "index": 3, "name": "day", "comment": None}
    assert nodes["model.p.odd"]["columns"]["a"]["type"] == "unknown"
    assert nodes["model.p.shown"]["columns"]["total"]["type"] in ("bigint", "unknown")
    assert nodes.keys() == {uid for uid in dbt_manifest(shop)["nodes"] if not uid.startswith("test.")}


def test_models_of_one_name_are_told_apart_by_their_schema(catalog: Make) -> None:
    other = "MODEL (name other.apart, kind FULL);\nSELECT 1 AS x"
    nodes = dbt_manifest(catalog({"config.yaml": CONFIG}, **ALONE | {"total": "", "apart": "", "a": other, "b": SAME}))[
        "nodes"
    ]

    assert sorted(nodes) == ["model.p.other__apart", "model.p.shop__apart"]
    assert {node["alias"] for node in nodes.values()} == {"apart"}
