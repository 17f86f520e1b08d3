"""The schemas of the project's other YAML files: published, every key described, and with the keys that are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from mergeplan.planner.lsp.yaml_files.file_schemas import exposures_schema, external_models_schema, unit_tests_schema
from mergeplan.planner.parsing.definitions import unit_tests
from mergeplan.planner.parsing.files import external_models
from mergeplan.planner.project import exposures

ROOT = Path(__file__).parents[3]
PROJECTS = [ROOT / "tests" / "projects" / "everything", *sorted((ROOT / "planner" / "project" / "example").iterdir())]
SCHEMAS: dict[str, dict[str, Any]] = {
    "tests": unit_tests_schema(),
    "external_models": external_models_schema(),
    "exposures": exposures_schema(),
}
TEST = SCHEMAS["tests"]["$defs"]["UnitTest"]["properties"]
RELATION = SCHEMAS["tests"]["$defs"]["Rows"]["anyOf"][1]["properties"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_published_schema_is_that_of_the_keys(name: str) -> None:
    published = json.loads((ROOT / "docs" / "schema" / f"{name}.json").read_text())

    assert published == SCHEMAS[name], f"mergeplan schema {name} > docs/schema/{name}.json"


def test_the_keys_are_those_that_are_read() -> None:
    assert TEST.keys() == set(unit_tests._KEYS)
    assert RELATION.keys() == set(unit_tests._RELATION)
    assert SCHEMAS["external_models"]["items"]["properties"].keys() == set(external_models._KEYS)
    assert SCHEMAS["exposures"]["items"]["properties"].keys() == set(exposures._KEYS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_files_that_open_are_accepted_and_others_are_not(name: str) -> None:
    validator = jsonschema_rs.Draft202012Validator(SCHEMAS[name])
    files = [file for root in PROJECTS for file in (*root.glob(f"{name}.y*ml"), *root.glob(f"{name}/**/test*.y*ml"))]

    documents = [yaml.safe_load(file.read_text()) for file in files]
    documents = json.loads(json.dumps(documents, default=str))  # with dates as texts
    assert all(map(validator.is_valid, documents))
    assert files or name == "exposures"
    assert not validator.is_valid({"a": {"modle": "b"}})
    assert not validator.is_valid([{"nmae": "b"}])
