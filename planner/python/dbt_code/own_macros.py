"""The macros by which dbt makes the rows of a table: a project with its own versions makes other rows."""

import re
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError

_VIEW = r"materialization_view|create_view_as|create_or_replace_view|get_create_view_as_sql|is_incremental"
_TABLE = r"materialization_table|create_table_as|get_create_table_as_sql|is_incremental"
ROWS = {  # type of a node, or materialization of a model -> the macros of dbt and its adapters that make its rows
    "view": re.compile(_VIEW),
    "table": re.compile(_TABLE),
    "materialized_view": re.compile(r"\w*materialized_view\w*|should_full_refresh|is_incremental"),
    "ephemeral": re.compile("is_incremental"),
    "model": re.compile(
        rf"{_VIEW}|{_TABLE}|materialization_incremental|create_temporary_view"
        r"|get_(incremental|insert|delete_insert|merge)\w*_sql"
        r"|get_replace_where_sql|get_merge_unique_key_match|get_merge_update_columns|get_select_subquery"
        r"|dbt_\w+_get_incremental_sql|should_full_refresh"
    ),
    "seed": re.compile(r"materialization_seed|(create|load|reset)_csv_\w+|get_csv_sql|get_seed_column_quoted_csv"),
    "snapshot": re.compile(
        r"\A\w*?snapshot\w*|current_timestamp\w*|equals|unique_key_\w+|get_dbt_valid_to_current|get_true_sql|create_columns"
        r"|create_table_as|create_view_as|create_temporary_view|strategy_dispatch|get_list_of_column_names"
    ),
    "contract": re.compile("get_select_subquery|get_column_names"),  # what puts the columns in the contract's order
}
_TIME = re.compile(r"current_timestamp\w*|snapshot_get_time")  # of the run, as dbt writes it into a snapshot
_FIRST = re.compile(r"^[a-z]+__")  # of a macro's name that is dispatched: the adapter
_MATERIALIZATION = re.compile("materialization_")
_LAST = re.compile(r"(?<=^materialization_)(\w+)_[a-z]+$")


class OwnMacros:
    """The macros of one project, and the macros of dbt that they replace."""

    def __init__(self, manifest: Any, adapter: Any) -> None:
        self._manifest, self._adapter = manifest, adapter
        named = {(macro.package_name, _general_name(macro.name)) for macro in manifest.macros.values()}
        self._named = {pair for pair in named if any(made_by.fullmatch(pair[1]) for made_by in ROWS.values())}
        self._of_dbt = {"dbt", "dbt_spark", f"dbt_{adapter.type()}"}
        self._own_materializations: dict[str, set[str]] = {}

    def refuse(self, node: Any, kind: str) -> None:
        """Raise CompileError for a node that the project's own macros would make differently from dbt's."""
        config = self._adapter.config
        rules = [rule for rule in config.dispatch or [] if rule.get("macro_namespace") in self._of_dbt]
        dispatched = [name for rule in rules for name in rule.get("search_order", [])]
        own_packages = {config.project_name, node.package_name, *dispatched} - self._of_dbt
        materialized = str(getattr(node.config, "materialized", ""))
        made_by = [ROWS.get(materialized, ROWS[kind])]
        made_by += [ROWS["contract"]] if getattr(getattr(node.config, "contract", None), "enforced", False) else []
        has_time = kind != "snapshot" or _writes_time(node.config)
        of_dbt = {
            name
            for package, name in self._named
            if package in self._of_dbt and any(pattern.fullmatch(name) for pattern in made_by)
            if has_time or not _TIME.fullmatch(name)
        }
        of_own = {name for package, name in self._named if package in own_packages and not _MATERIALIZATION.match(name)}
        if changed := (of_own | self._own_materialization(materialized)) & of_dbt:
            message = f"It is made by the macro `{min(changed)}` of the project's own, which mergeplan does not follow"
            raise CompileError(message)

    def _own_materialization(self, name: str) -> set[str]:
        """Return the materialization of that name if dbt chooses one that is not its own.

        A materialization for the adapter has precedence over one for any adapter, wherever they are defined.
        """
        if name not in self._own_materializations:
            find = self._manifest.find_materialization_macro_by_name
            chosen = find(self._adapter.config.project_name, name, self._adapter.type())
            is_own = chosen is not None and chosen.package_name not in self._of_dbt
            self._own_materializations[name] = {_general_name(chosen.name)} if is_own else set()
        return self._own_materializations[name]


def refuse_unlike_snapshot(node: Any, adapter: Any) -> None:
    """Raise CompileError for a snapshot whose rows differ from those that were compared with dbt's."""
    if _hard_deletes(node.config) == "new_record" and adapter.type() != "spark":
        raise CompileError("The result of `hard_deletes: new_record` was compared with that of dbt-spark only")
    equals = getattr(getattr(adapter, "behavior", None), "enable_truthy_nulls_equals_macro", None)
    if isinstance(node.config.unique_key, list) and getattr(equals, "no_warn", False):
        raise CompileError("Keys that are NULL are equal by the flag `enable_truthy_nulls_equals_macro`")


def _writes_time(config: Any) -> bool:
    """Return True for a snapshot whose rows have the time of a run: that of a deleted row, or of all its versions."""
    has_times = bool(_snapshot_setting(config, "updated_at"))
    closes = _hard_deletes(config) != "ignore" or bool(_snapshot_setting(config, "invalidate_hard_deletes"))
    return closes or not has_times


def _hard_deletes(config: Any) -> str:
    deletes = _snapshot_setting(config, "hard_deletes")
    return str(getattr(deletes, "value", deletes) or "ignore")


def _snapshot_setting(config: Any, name: str) -> Any:
    """Return a setting of a snapshot, which versions of dbt keep at different places."""
    return getattr(config, name, None) or (getattr(config, "extra", None) or {}).get(name)


def _general_name(name: str) -> str:
    return _LAST.sub(r"\1", _FIRST.sub("", name))
