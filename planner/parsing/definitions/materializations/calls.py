"""The calls by which a custom materialization writes, each as the kind that does the same."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.parsing.definitions.materializations.values import (
    SOURCE,
    TARGET,
    NotUnderstood,
    RunValue,
    Scope,
    Value,
    code_excerpt,
    column_names,
    value_of,
)

_COLUMNS = ("columns_to_types", "source_columns")
WRITES: dict[str, tuple[Kind, tuple[str, ...]]] = {  # with the names of arguments by position
    "self.adapter.replace_query": (Kind.FULL, ("table_name", "query_or_df", "columns_to_types")),
    "self._replace_query_for_model": (Kind.FULL, ("model", "table_name", "query_or_df", "render_kwargs")),
    "self.adapter.insert_append": (Kind.INCREMENTAL_UNMANAGED, ("table_name", "query_or_df", "columns_to_types")),
    "self.adapter.insert_overwrite_by_partition": (
        Kind.INCREMENTAL_BY_PARTITION, ("table_name", "query_or_df", "partitioned_by", "columns_to_types"),
    ),
    "self.adapter.insert_overwrite_by_time_partition": (
        Kind.INCREMENTAL_BY_TIME_RANGE,
        ("table_name", "query_or_df", "start", "end", "time_formatter", "time_column", "columns_to_types"),
    ),
    "self.adapter.merge": (
        Kind.INCREMENTAL_BY_UNIQUE_KEY,
        ("table_name", "query_or_df", "columns_to_types", "unique_key", "when_matched", "merge_filter"),
    ),
}  # fmt: skip
_SAME = {
    "target_columns_to_types": "columns_to_types", "target_table": "table_name", "source_table": "query_or_df",
    "name": "table_name",
}  # fmt: skip
_MODELS = """table_format storage_format partitioned_by partition_interval_unit clustered_by column_descriptions
    columns_to_types""".split()
# The values with which an argument says nothing more than the model does.
_USUAL: dict[str, tuple[Value, ...]] = {
    **{name: (RunValue(name),) for name in ("table_name", "query_or_df", "model", "render_kwargs", "start", "end")},
    **{name: (RunValue(f"model.{name}"), None) for name in _MODELS},
    "columns_to_types": (
        RunValue(TARGET),
        RunValue("model.columns_to_types"),
        RunValue("model.columns_to_types_or_raise"),
        None,
    ),
    "source_columns": (RunValue(SOURCE), None),
    "time_formatter": (RunValue("model.convert_to_time_column"),),
    "table_description": (RunValue("model.description"), None),
    "table_properties": (RunValue("model.physical_properties"), RunValue("physical_properties"), None),
    "physical_properties": (RunValue("model.physical_properties"), RunValue("physical_properties"), None),
    "when_matched": (RunValue("model.when_matched"), None),  # which only a kind of SQLMesh's own has
    "merge_filter": (RunValue("model.merge_filter"), None),
    "track_rows_processed": (True, False),
    "skip_grants": (True, False),
}
_OPTIONAL: dict[Kind, tuple[str, ...]] = {
    Kind.FULL: (*_MODELS, "source_columns", "table_description", "table_properties", "physical_properties",
                "skip_grants"),
    Kind.INCREMENTAL_UNMANAGED: (*_COLUMNS, "track_rows_processed"),
    Kind.INCREMENTAL_BY_PARTITION: _COLUMNS,
    Kind.INCREMENTAL_BY_TIME_RANGE: _COLUMNS,
    Kind.INCREMENTAL_BY_UNIQUE_KEY: (*_COLUMNS, "when_matched", "merge_filter", "physical_properties"),
}  # fmt: skip
_KEYS = {Kind.INCREMENTAL_BY_UNIQUE_KEY: "unique_key", Kind.INCREMENTAL_BY_TIME_RANGE: "time_column"}
_REST = ("self._replace_query_for_model", "self.adapter.insert_overwrite_by_time_partition")  # may take **kwargs


@dataclass(frozen=True)
class Write:
    """A write as the kind that does the same, with the columns that it needs: a unique key, a time column."""

    kind: Kind
    columns: tuple[str, ...] = ()


def write_of(path: str, call: ast.Call, scope: Scope) -> Write:
    """Return the write of a call; raise NotUnderstood for an argument that differs from the model."""
    kind, positions = WRITES[path]
    spread = [keyword.value for keyword in call.keywords if keyword.arg is None]
    if spread and (path not in _REST or value_of(spread[0], scope) != RunValue("kwargs") or len(spread) > 1):
        raise _not_read(call, "**", spread[0])
    arguments = _read_arguments(path, call)
    values = {name: value_of(argument, scope) for name, argument in arguments.items()}
    needed = {*positions} - {*_OPTIONAL[kind], "render_kwargs"} - ({"start", "end"} if spread else set())
    if missing := sorted(needed - values.keys()):
        raise NotUnderstood(call, f"{code_excerpt(call.func)} is called without `{missing[0]}`")
    key = _KEYS.get(kind, "")
    columns = _key_columns(key, arguments[key], values.pop(key)) if key else ()
    for name, value in values.items():
        if not any(type(value) is type(usual) and value == usual for usual in _USUAL[name]):
            raise _not_read(call, name, arguments[name])
    return Write(kind, columns)


def _read_arguments(path: str, call: ast.Call) -> Mapping[str, ast.expr]:
    kind, positions = WRITES[path]
    arguments: dict[str, ast.expr] = {}
    pairs = [
        *((positions[index] if index < len(positions) else "", argument) for index, argument in enumerate(call.args)),
        *((_SAME.get(keyword.arg, keyword.arg), keyword.value) for keyword in call.keywords if keyword.arg),
    ]
    for name, value in pairs:
        is_known = name in positions or name in _OPTIONAL[kind]
        if not is_known or name in arguments or isinstance(value, ast.Starred):
            raise _not_read(call, name, value)
        arguments[name] = value
    return arguments


def _not_read(call: ast.Call, name: str, value: ast.expr) -> NotUnderstood:
    text = f"`{name}={code_excerpt(value)[1:]}" if name else code_excerpt(value)
    return NotUnderstood(value, f"{text} of {code_excerpt(call.func)} is no argument that mergeplan reads")


def _key_columns(key: str, node: ast.expr, value: Value) -> tuple[str, ...]:
    if value == RunValue(f"model.{key}"):
        raise NotUnderstood(node, f"`model.{key}` is empty for a model of kind CUSTOM")
    if key == "unique_key":
        return column_names(node, value)
    if not isinstance(value, str | exp.Column):
        raise NotUnderstood(node, f"{code_excerpt(node)} is not a column")
    return column_names(node, (value,))
