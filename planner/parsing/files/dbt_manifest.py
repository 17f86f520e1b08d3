"""dbt's `manifest.json`: the tables that a dbt project builds or reads, as external tables of ours. Pure.

Only what stands in it is taken: a column without a type gets the one that `catalog.json`, beside it, has for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.model import Column
from mergeplan.planner.parsing.sql.names import model_name

BUILT = ("model", "seed", "snapshot")
NO_TABLE = ("ephemeral",)
SPARKS = ("spark", "databricks")


@dataclass(frozen=True)
class DbtTable:
    """A table of a dbt project; `columns` is () unless the type of each is known."""

    name: str
    columns: tuple[Column, ...] = ()
    description: str = ""
    tags: tuple[str, ...] = ()
    dialect: str = ""  # of the types; '' for Spark's


def dbt_tables(path: str, text: str, catalog: str | None = None) -> Mapping[str, DbtTable]:
    """The tables by name; ProjectError for what is no manifest. `catalog` is the text of catalog.json."""
    manifest = _json(path, text)
    if not isinstance(manifest.get("nodes"), dict) or not isinstance(manifest.get("sources", {}), dict):
        hint = "dbt writes it to `target/manifest.json`: run `dbt parse`."
        raise ProjectError("This is not dbt's manifest.json: it has no `nodes`.", place=Place(path), hint=hint)
    types = catalog_types(_json("catalog.json", catalog)) if catalog else {}
    adapter = str((manifest.get("metadata") or {}).get("adapter_type") or "")
    dialect = "" if adapter in SPARKS else adapter
    tables = (_table(path, id, node, types.get(id, {}), dialect) for id, node in _nodes(manifest))
    return {table.name: table for table in tables if table is not None}


def _json(path: str, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ProjectError("This is not JSON.", place=Place(path)) from None
    if not isinstance(content, dict):
        raise ProjectError("This is not a JSON object.", place=Place(path))
    return content


def _nodes(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What is a table in the warehouse: sources too, which others load."""
    for id, node in manifest["nodes"].items():
        config = node.get("config") or {} if isinstance(node, dict) else {}
        if node.get("resource_type") in BUILT and config.get("materialized") not in NO_TABLE:
            yield id, node
    yield from ((id, node) for id, node in manifest.get("sources", {}).items() if isinstance(node, dict))


def catalog_types(catalog: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
    """Node -> column -> type."""
    types: dict[str, dict[str, str]] = {}
    for nodes in (catalog.get("nodes"), catalog.get("sources")):
        for id, node in (nodes or {}).items():
            listed = sorted((node.get("columns") or {}).values(), key=lambda column: column.get("index", 0))
            types[id] = {str(column["name"]).lower(): str(column["type"]) for column in listed}
    return types


def _table(
    path: str, id: str, node: Mapping[str, Any], column_types: Mapping[str, str], dialect: str
) -> DbtTable | None:
    name = _name(path, node)
    if name is None:
        return None
    said = {str(key).lower(): column for key, column in (node.get("columns") or {}).items()}
    types = {
        **{key: str(column["data_type"]) for key, column in said.items() if column.get("data_type")},
        **column_types,
    }
    names = list(column_types or said)
    whole = bool(names) and all(types.get(column) for column in names)
    columns = tuple(Column(column, types[column], _text(said.get(column, {}))) for column in names) if whole else ()
    tags = tuple(str(tag) for tag in node.get("tags") or ())
    return DbtTable(name, columns, _text(node), tags, dialect)


def _name(path: str, node: Mapping[str, Any]) -> str | None:
    """`schema.table` as Spark sees it; None for a name that no table of ours can have."""
    table = node.get("identifier") or node.get("alias") or node.get("name")
    parts = (node.get("schema"), table)
    if not all(isinstance(part, str) and part for part in parts):
        return None
    bare = ".".join(re.sub('[`"]', "", str(part)) for part in parts)
    try:
        return model_name(bare, Place(path))
    except ProjectError:
        return None


def _text(node: Mapping[str, Any]) -> str:
    return str(node.get("description") or "").strip()
