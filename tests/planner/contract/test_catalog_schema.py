"""The catalog as a document: it is as published, and says what the catalog says."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs

from mergeplan.planner.contract.catalog import CatalogView, catalog_schema
from mergeplan.planner.contract.from_catalog import catalog_view
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.cli.conftest import TODAY, CommandLine
from tests.planner.session.conftest import refuse_engine
from tests.planner.shop import write_shop

PUBLISHED = Path(__file__).parents[3] / "docs" / "schema" / "catalog.json"


def shop_view(root: Path) -> CatalogView:
    write_shop(root)
    with Session(SessionSettings(root, open_engine=refuse_engine), TODAY) as session:
        return catalog_view(session.catalog())


def test_the_published_schema_is_that_of_the_types(tmp_path: Path) -> None:
    published = json.loads(PUBLISHED.read_text())

    assert published == catalog_schema(), "mergeplan schema catalog > docs/schema/catalog.json"
    assert json.loads(CommandLine(tmp_path)("schema", "catalog").out) == published


def test_a_catalog_is_written_as_published_and_reads_as_the_same(tmp_path: Path) -> None:
    view = shop_view(tmp_path)
    text = view.model_dump_json()

    assert jsonschema_rs.validator_for(catalog_schema()).is_valid(json.loads(text))
    assert CatalogView.model_validate_json(text) == view


def test_a_row_decider_has_no_column(tmp_path: Path) -> None:
    (daily,) = (model for model in shop_view(tmp_path).models if model.name == "shop.daily")

    assert [(end.model, end.column) for end in daily.row_deciders] == [("shop.items", "day"), ("shop.items", None)]
    assert daily.deployed is None


def test_every_key_is_described() -> None:
    shapes = [*catalog_schema()["$defs"].values(), catalog_schema()]

    assert [key for shape in shapes for key, entry in shape["properties"].items() if not entry.get("description")] == []
