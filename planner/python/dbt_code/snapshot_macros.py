"""The macros by which dbt makes a snapshot's rows: a project that has its own makes other rows."""

from __future__ import annotations

import re
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError

SNAPSHOT_MACROS = re.compile(  # of dbt, by which a snapshot's rows are made
    r"\w*snapshot\w*|current_timestamp\w*|equals|unique_key_\w+|get_dbt_valid_to_current|get_true_sql|create_columns"
)


def refuse_own_macros(node: Any, manifest: Any, adapter: Any) -> None:
    """CompileError for a snapshot that macros of the project's own would make in another way than dbt's."""
    dispatched = [name for rule in adapter.config.dispatch or [] for name in rule.get("search_order", [])]
    own = {adapter.config.project_name, node.package_name, *dispatched} - {"dbt", f"dbt_{adapter.type()}", "dbt_spark"}
    named = {(macro.package_name, re.sub(r"^[a-z]+__", "", macro.name)) for macro in manifest.macros.values()}
    dbts = {name for package, name in named if package == "dbt" and SNAPSHOT_MACROS.fullmatch(name)}
    if changed := sorted(name for package, name in named if package in own and name in dbts):
        raise CompileError(
            f"It is made by the macro `{changed[0]}` of the project's own, which mergeplan does not follow"
        )
    deletes = getattr(node.config, "hard_deletes", None) or (node.config.extra or {}).get("hard_deletes")
    if str(getattr(deletes, "value", deletes)) == "new_record" and adapter.type() != "spark":
        raise CompileError("What `hard_deletes: new_record` makes was compared with that of dbt-spark only")
    equals = getattr(getattr(adapter, "behavior", None), "enable_truthy_nulls_equals_macro", None)
    if isinstance(node.config.unique_key, list) and getattr(equals, "no_warn", False):
        raise CompileError("Keys that are NULL are equal by the flag `enable_truthy_nulls_equals_macro`")
