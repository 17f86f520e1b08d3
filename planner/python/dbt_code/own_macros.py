"""The macros by which dbt makes the rows of a table: a project that has its own makes other rows."""

from __future__ import annotations

import re
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError

_VIEW = r"materialization_view|create_view_as|create_or_replace_view|get_create_view_as_sql|is_incremental"
_TABLE = r"materialization_table|create_table_as|get_create_table_as_sql|is_incremental"
ROWS = {  # type of a node, or materialization of a model -> the macros of dbt and its adapters that make its rows
    "view": re.compile(_VIEW),
    "table": re.compile(_TABLE),
    "ephemeral": re.compile("is_incremental"),
    "model": re.compile(
        rf"{_VIEW}|{_TABLE}|materialization_incremental|create_temporary_view"
        r"|get_(incremental|insert|delete_insert|merge)\w*_sql"
        r"|get_replace_where_sql|get_merge_unique_key_match|get_select_subquery|dbt_\w+_get_incremental_sql"
    ),
    "seed": re.compile(r"materialization_seed|(create|load|reset)_csv_\w+"),
    "snapshot": re.compile(
        r"\w*snapshot\w*|current_timestamp\w*|equals|unique_key_\w+|get_dbt_valid_to_current|get_true_sql|create_columns"
    ),
}
_FIRST = re.compile(r"^[a-z]+__")  # of a macro's name that is dispatched: the adapter
_LAST = re.compile(r"(?<=^materialization_)(\w+)_[a-z]+$")


def general_names(manifest: Any) -> set[tuple[str, str]]:
    """The macros of a manifest that may make rows: each package, and the name without that of an adapter."""
    named = {(macro.package_name, _general_name(macro.name)) for macro in manifest.macros.values()}
    return {(package, name) for package, name in named if any(made_by.fullmatch(name) for made_by in ROWS.values())}


def refuse_own_macros(node: Any, kind: str, named: set[tuple[str, str]], adapter: Any) -> None:
    """CompileError for a node that macros of the project's own would make in another way than dbt's.

    `named` are those of `general_names`.
    """
    of_dbt = {"dbt", "dbt_spark", f"dbt_{adapter.type()}"}
    dispatched = [name for rule in adapter.config.dispatch or [] for name in rule.get("search_order", [])]
    own = {adapter.config.project_name, node.package_name, *dispatched} - of_dbt
    made_by = ROWS.get(str(getattr(node.config, "materialized", "")), ROWS[kind])
    dbts = {name for package, name in named if package in of_dbt and made_by.fullmatch(name)}
    if changed := sorted(name for package, name in named if package in own and name in dbts):
        raise CompileError(
            f"It is made by the macro `{changed[0]}` of the project's own, which mergeplan does not follow"
        )


def refuse_unlike_snapshot(node: Any, adapter: Any) -> None:
    """CompileError for a snapshot of which the rows are others than those that were compared with dbt's."""
    deletes = getattr(node.config, "hard_deletes", None) or (node.config.extra or {}).get("hard_deletes")
    if str(getattr(deletes, "value", deletes)) == "new_record" and adapter.type() != "spark":
        raise CompileError("What `hard_deletes: new_record` makes was compared with that of dbt-spark only")
    equals = getattr(getattr(adapter, "behavior", None), "enable_truthy_nulls_equals_macro", None)
    if isinstance(node.config.unique_key, list) and getattr(equals, "no_warn", False):
        raise CompileError("Keys that are NULL are equal by the flag `enable_truthy_nulls_equals_macro`")


def _general_name(name: str) -> str:
    """The name of a macro, or a materialization, without that of the adapter that it is for."""
    return _LAST.sub(r"\1", _FIRST.sub("", name))
