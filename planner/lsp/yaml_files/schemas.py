"""The schema of each of the project's YAML files, and its parts for a place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from mergeplan.planner.contract.config_schema import config_schema
from mergeplan.planner.lsp.yaml_files.file_schemas import exposures_schema, external_models_schema, unit_tests_schema
from mergeplan.planner.lsp.yaml_files.places import ITEM, Step

Schema = dict[str, Any]


def schema_of(path: str) -> Schema | None:
    """Return the schema of a file of the project, by its path from there; None for one without."""
    folder, _, name = path.rpartition("/")
    stem, _, suffix = name.rpartition(".")
    if suffix not in ("yaml", "yml"):
        return None
    if not folder:
        return _make_schema(stem)
    top = folder.partition("/")[0]
    return _make_schema(top) if top in ("tests", "external_models", "exposures") else None


@cache
def _make_schema(name: str) -> Schema | None:
    makers = {
        "config": config_schema,
        "tests": unit_tests_schema,
        "external_models": external_models_schema,
        "exposures": exposures_schema,
    }
    return makers[name]() if name in makers else None


def schemas_at(schema: Schema, path: tuple[Step, ...]) -> tuple[Schema, ...]:
    """Return the schemas of a place: several for alternatives, none for an unknown place."""
    nodes = list(_expand_alternatives(schema, schema))
    for step in path:
        nodes = [
            inner
            for node in nodes
            for child in _child_schemas(node, step)
            for inner in _expand_alternatives(schema, child)
        ]
    return tuple(nodes)


def _child_schemas(node: Schema, step: Step) -> Iterator[Schema]:
    if step == ITEM:
        if isinstance(node.get("items"), dict):
            yield node["items"]
        return
    if step in node.get("properties", {}):
        yield node["properties"][step]
    elif isinstance(node.get("additionalProperties"), dict):
        yield node["additionalProperties"]


def _expand_alternatives(schema: Schema, node: Schema) -> Iterator[Schema]:
    """Yield the node itself, and the nodes that it refers to."""
    yield node
    if reference := node.get("$ref"):
        yield from _expand_alternatives(schema, schema["$defs"][str(reference).rpartition("/")[2]])
    for key in ("anyOf", "oneOf", "allOf"):
        for option in node.get(key, ()):
            yield from _expand_alternatives(schema, option)
