"""The JSON Schemas of the project's other YAML files: unit tests, external models and exposures."""

from typing import Any

from mergeplan.planner.contract.base import DIALECT

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_TEXT_OR_TEXTS = {"anyOf": [_TEXT, _TEXTS]}
_TEXT_BY_NAME = {"type": "object", "additionalProperties": _TEXT}


_ROWS = {"type": "array", "items": {"type": "object"}, "description": "Rows, each with `column: value`."}
_RELATION = {
    "rows": {"description": "Rows, each with `column: value`; with `format: csv`, their text."},
    "query": {**_TEXT, "description": "A query that returns the rows."},
    "columns": {**_TEXT_BY_NAME, "description": "The types of columns, where the rows do not show them."},
    "partial": {"type": "boolean", "description": "Whether columns that the rows leave out are not compared."},
    "format": {"enum": ["yaml", "csv"], "description": "The format of `rows` or of the file."},
    "path": {**_TEXT, "description": "A file with the rows, from the project's folder or from that of the test."},
    "csv_settings": {
        "type": "object",
        "properties": {
            "sep": {**_TEXT, "description": "The separator: one character."},
            "delimiter": {**_TEXT, "description": "The separator: one character."},
            "quotechar": {**_TEXT, "description": "The quote: one character."},
            "na_values": {"description": "Texts that are NULL."},
            "skip_blank_lines": {"type": "boolean", "description": "Whether empty lines are left out."},
        },
        "additionalProperties": False,
        "description": "How the CSV is written.",
    },
}
_ROWS_BY_NAME = {"type": "object", "additionalProperties": {"$ref": "#/$defs/Rows"}}
_TEST = {
    "model": {**_TEXT, "description": "The model that is tested: `schema.model`."},
    "macro": {**_TEXT, "description": "The macro that is tested, in place of a model."},
    "call": {**_TEXT, "description": "SQL that calls the macro: `@macro(a, 1)`, or a query with it."},
    "description": {**_TEXT, "description": "The description of the test."},
    "this": {"$ref": "#/$defs/Rows", "description": "The rows that the model's table holds before the load."},
    "inputs": {**_ROWS_BY_NAME, "description": "The rows of the tables that the model reads, by table."},
    "outputs": {
        "type": "object",
        "properties": {
            "query": {"$ref": "#/$defs/Rows", "description": "The rows that the model returns."},
            "table": {"$ref": "#/$defs/Rows", "description": "The rows that its table holds after the load."},
            "text": {**_TEXT, "description": "The SQL that the call of the macro becomes."},
            "ctes": {**_ROWS_BY_NAME, "description": "The rows that its CTEs return, by CTE."},
            "partial": {"type": "boolean", "description": "Whether columns that the rows leave out are not compared."},
        },
        "additionalProperties": False,
        "description": "The rows that are expected.",
    },
    "vars": {
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
        "description": "Variables, and the dates `start`, `end` and `execution_time`.",
    },
    "gateway": {**_TEXT, "description": "A gateway of config.yaml."},
    "schema": {**_TEXT, "description": "Accepted, no effect here."},
    "default_catalog": {**_TEXT, "description": "The default catalog, which is that of the project."},
    "freeze_time": {"description": "The time that `CURRENT_DATE` and its like have."},
}
_EXTERNAL_MODEL = {
    "name": {**_TEXT, "description": "The table: `schema.table`."},
    "description": {**_TEXT, "description": "The description of the table."},
    "columns": {**_TEXT_BY_NAME, "description": "The columns with their types, by name."},
    "partial_columns": {"type": "boolean", "description": "Whether the table may have columns that are not listed."},
    "column_descriptions": {**_TEXT_BY_NAME, "description": "The descriptions of the columns, by name."},
    "owner": {**_TEXT, "description": "The owner of the table."},
    "tags": {**_TEXT_OR_TEXTS, "description": "Words by which models are selected."},
    "grain": {**_TEXT_OR_TEXTS, "description": "The columns that identify a row."},
    "grains": {**_TEXT_OR_TEXTS, "description": "Several grains."},
    "freshness": {
        "type": "object",
        "properties": {
            "warn_after": {**_TEXT, "description": "The age, such as `6 hours`, after which it warns."},
            "error_after": {**_TEXT, "description": "The age, such as `1 day`, after which it fails."},
            "loaded_at": {**_TEXT, "description": "The time of a row; without it the last write counts."},
            "filter": {**_TEXT, "description": "The rows that count."},
            "query": {**_TEXT, "description": "A query of the newest time, in place of `loaded_at`."},
        },
        "additionalProperties": False,
        "description": "The ages from which the table is late.",
    },
    "references": {"description": "Accepted, no effect here."},
    "start": {"description": "The first moment that the table has rows for."},
    "dialect": {**_TEXT, "description": "The SQL dialect in which types are written."},
    "stamp": {**_TEXT, "description": "Any text; another one says that the table holds other rows."},
    "gateway": {**_TEXT, "description": "The gateway whose catalog has the table; by default each."},
    "audits": {
        "type": "array",
        "items": {"anyOf": [_TEXT, {"type": "object", "properties": {"name": _TEXT}, "required": ["name"]}]},
        "description": "The audits of its rows.",
    },
}
_EXPOSURE = {
    "name": {**_TEXT, "description": "The name of the exposure."},
    "models": {**_TEXTS, "description": "The models that it uses: `schema.model`."},
    "type": {**_TEXT, "description": "The type, such as `dashboard`."},
    "owner": {**_TEXT, "description": "The owner."},
    "url": {**_TEXT, "pattern": "^https?://", "description": "Its address."},
    "description": {**_TEXT, "description": "The description."},
}


def unit_tests_schema() -> dict[str, Any]:
    test = {**_object_schema(_TEST, "outputs"), "description": "A unit test."}
    relation = {"type": "object", "properties": _RELATION, "additionalProperties": False}
    return {
        "$schema": DIALECT,
        "title": "Unit tests of a mergeplan project",
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/UnitTest"},
        "$defs": {"UnitTest": test, "Rows": {"anyOf": [_ROWS, relation]}},
    }


def external_models_schema() -> dict[str, Any]:
    return _array_schema("external_models.yaml of a mergeplan project", _object_schema(_EXTERNAL_MODEL, "name"))


def exposures_schema() -> dict[str, Any]:
    return _array_schema("exposures.yaml of a mergeplan project", _object_schema(_EXPOSURE, "name", "models"))


FILE_SCHEMAS = {"tests": unit_tests_schema, "external_models": external_models_schema, "exposures": exposures_schema}


def _object_schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _array_schema(title: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": DIALECT, "title": title, "type": "array", "items": item}
