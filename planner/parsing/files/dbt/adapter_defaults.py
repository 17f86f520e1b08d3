"""The defaults of a dbt adapter for settings that a model leaves out.

The child imports this: nothing but Python's own library is used.
"""

from collections.abc import Mapping
from typing import Any

OF_DATABRICKS = frozenset(  # which the macros of dbt-spark do not read
    """matched_condition not_matched_condition not_matched_by_source_action not_matched_by_source_condition
    skip_matched_step skip_not_matched_step merge_with_schema_evolution target_alias source_alias
    null_safe_key""".split()
)
MERGE = "macro.dbt_databricks.databricks__get_merge_sql"
STORED = ("table", "materialized_view", "incremental", "snapshot")


def add_adapter_defaults(adapter: str, settings: Mapping[str, Any], merge: str) -> dict[str, Any]:
    """Return the settings of a node with the adapter's defaults: dbt-databricks merges and uses Delta.

    `merge` is the text of dbt-databricks' macro for MERGE, which compares keys by `<=>` since its version 1.9.
    """
    is_databricks = adapter == "databricks"
    settings = {name: value for name, value in settings.items() if is_databricks or name not in OF_DATABRICKS}
    materialized = settings.get("materialized")
    if is_databricks and materialized in STORED:
        settings["file_format"] = settings.get("file_format") or "delta"
        if materialized == "incremental":
            settings["incremental_strategy"] = settings.get("incremental_strategy") or "merge"
            settings["null_safe_key"] = "<=>" in merge
    return settings
