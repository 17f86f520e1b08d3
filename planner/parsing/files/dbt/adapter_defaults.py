"""What an adapter of dbt does where a model says nothing.

The child imports this: nothing but Python's own library is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STORED = ("table", "incremental", "snapshot")


def add_adapter_defaults(adapter: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a node with the adapter's own where it has none: dbt-databricks merges, and keeps Delta."""
    settings = dict(settings)
    materialized = settings.get("materialized")
    if adapter == "databricks" and materialized in STORED:
        settings["file_format"] = settings.get("file_format") or "delta"
        if materialized == "incremental":
            settings["incremental_strategy"] = settings.get("incremental_strategy") or "merge"
    return settings
