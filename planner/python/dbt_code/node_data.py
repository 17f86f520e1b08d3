"""Parts of dbt's nodes as data."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any


def plain_value(value: Any) -> Any:
    """Return a setting as JSON has it: dbt parses the time at which batches begin."""
    return str(value) if isinstance(value, date) else value


def column_data(column: Any) -> dict[str, str]:
    return {"name": column.name, "type": column.data_type or "", "description": column.description or ""}


def freshness_data(source: Any) -> dict[str, str]:
    """Return the ages from which a source is late, and its settings about the time of rows; '' for what is not set."""
    freshness = getattr(source, "freshness", None)
    ages = {key: getattr(freshness, key, None) for key in ("warn_after", "error_after")}
    texts = {
        key: f"{age.count} {getattr(age.period, 'value', age.period)}" if age and age.count and age.period else ""
        for key, age in ages.items()
    }
    return {
        **texts, "filter": getattr(freshness, "filter", None) or "",
        "loaded_at": source.loaded_at_field or "", "query": getattr(source, "loaded_at_query", None) or "",
    }  # fmt: skip


def constraint_data(node: Any) -> Iterator[list[str]]:
    """Yield the constraints of a model and of its columns: kind, column and condition."""
    of_columns = [(column.name, column.constraints) for column in (getattr(node, "columns", {}) or {}).values()
                  if getattr(column, "constraints", None)]  # fmt: skip
    for name, constraints in [*of_columns, ("", getattr(node, "constraints", None) or [])]:
        for constraint in constraints:
            yield [str(getattr(constraint.type, "value", constraint.type)), name, constraint.expression or ""]


def owner_name(node: Any, manifest: Any) -> str:
    """Return the owner's name of a node's group; '' without one."""
    group = getattr(node, "group", None) or getattr(node.config, "group", None)
    for candidate in manifest.groups.values():
        if group and candidate.name == group:
            return str(candidate.owner.name or candidate.owner.email or candidate.name)
    return str((node.config.meta or {}).get("owner") or "") if getattr(node.config, "meta", None) else ""


def exposure_data(exposure: Any) -> dict[str, Any]:
    owner = exposure.owner
    return {
        "name": exposure.label or exposure.name, "type": str(getattr(exposure.type, "value", exposure.type)),
        "url": exposure.url or "", "owner": str(owner.name or owner.email or ""),
        "depends_on": sorted(exposure.depends_on.nodes),
    }  # fmt: skip


@contextmanager
def keep_constraints(node: Any) -> Iterator[None]:
    """Keep the `to: ref('x')` of foreign keys: dbt puts a table's name there, and cannot compile the node again."""
    references = [(part, getattr(part, "to", None)) for part in getattr(node, "all_constraints", None) or ()]
    try:
        yield
    finally:
        for part, reference in references:
            if reference:
                part.to = reference
