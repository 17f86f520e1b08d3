"""The tables of dbt's `manifest.json` as external tables, with missing types from `catalog.json`. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.model import Column
from mergeplan.planner.parsing.files.dbt.manifest_types import CatalogFile, Made, Metadata, Words
from mergeplan.planner.parsing.files.typed_json import JsonPart, Text, null_default, read_json
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
    """Return the tables by name, with types from `catalog` (catalog.json); raise ProjectError for another text."""
    manifest = read_json(TablesFile, path, text, hint="dbt writes it to `target/manifest.json`: run `dbt parse`.")
    types = read_json(CatalogFile, "catalog.json", catalog).types() if catalog else {}
    adapter = manifest.metadata.adapter_type
    dialect = "" if adapter in SPARKS else adapter
    built = [(id, node) for id, node in manifest.nodes.items() if node.resource_type in BUILT]
    parts = [(id, node) for id, node in built if node.config.materialized not in NO_TABLE]
    parts += manifest.sources.items()  # which other tools load
    tables = (_read_table(path, node, types.get(id, {}), dialect) for id, node in parts)
    return {table.name: table for table in tables if table is not None}


class TableColumn(JsonPart):
    """A column as YAML describes it: its name is the key."""

    data_type: Text = ""
    description: Text = ""


class TableConfig(JsonPart):
    """The materialization of a node in dbt."""

    materialized: Text = ""


class TablePart(JsonPart):
    """A node or a source, limited to the properties of a table."""

    resource_type: Text = ""
    config: Annotated[TableConfig, null_default(TableConfig())] = TableConfig()
    db_schema: Text = Field(default="", alias="schema")
    identifier: Text = ""
    alias: Text = ""
    name: Text = ""
    description: Text = ""
    tags: Words = ()
    columns: Annotated[dict[str, TableColumn], null_default({})] = Field(default={})


class TablesFile(JsonPart):
    """A manifest.json of any adapter."""

    metadata: Made = Metadata()
    nodes: dict[str, TablePart]
    sources: Annotated[dict[str, TablePart], null_default({})] = Field(default={})


def _read_table(path: str, node: TablePart, column_types: Mapping[str, str], dialect: str) -> DbtTable | None:
    name = _table_name(path, node)
    if name is None:
        return None
    columns_by_name = {key.lower(): column for key, column in node.columns.items()}
    types = {**{key: column.data_type for key, column in columns_by_name.items() if column.data_type}, **column_types}
    names = list(column_types or columns_by_name)
    whole = bool(names) and all(types.get(column) for column in names)
    words = {key: column.description.strip() for key, column in columns_by_name.items()}
    columns = tuple(Column(column, types[column], words.get(column, "")) for column in names) if whole else ()
    return DbtTable(name, columns, node.description.strip(), node.tags, dialect)


def _table_name(path: str, node: TablePart) -> str | None:
    parts = (node.db_schema, node.identifier or node.alias or node.name)
    if not all(parts):
        return None
    bare = ".".join(re.sub('[`"]', "", part) for part in parts)
    try:
        return model_name(bare, Place(path))
    except ProjectError:
        return None
