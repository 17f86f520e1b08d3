"""Audits as dbt's generic tests: those that dbt has too under dbt's names, a column each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mergeplan.planner.catalog.catalog import CatalogAudit, CatalogModel
from mergeplan.planner.exports.dbt_names import DbtName
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.semantics.audited_keys import parse_columns

DBT_TESTS = {"not_null": "not_null", "unique_values": "unique", "accepted_values": "accepted_values"}


def audit_nodes(project: str, model: CatalogModel, name: DbtName) -> Iterator[dict[str, Any]]:
    for audit in model.audits:
        test_name = DBT_TESTS.get(audit.name.removesuffix("_non_blocking"), audit.name)
        arguments = dict(audit.arguments)
        for column in parse_columns(arguments.get("columns", arguments.get("column", ""))) or [""]:
            yield _test_node(project, model, name, audit, (test_name, column))


def _test_node(
    project: str, model: CatalogModel, name: DbtName, audit: CatalogAudit, test: tuple[str, str]
) -> dict[str, Any]:
    test_name, column = test
    kwargs = {key: text for key, text in audit.arguments if key not in ("columns", "column")}
    if column:
        kwargs["column_name"] = column
    title = "_".join(filter(None, (test_name, name.name, column)))
    unique_id = f"test.{project}.{title}.{digest('dbt test', model.name, test_name, repr(kwargs))[:10]}"
    return {
        "unique_id": unique_id,
        "name": title,
        "alias": title,
        "resource_type": "test",
        "package_name": project,
        "path": f"{title}.sql",
        "original_file_path": model.declared.path,
        "fqn": [project, title],
        "database": name.database or None,
        "schema": name.schema,
        "checksum": {"name": "none", "checksum": ""},
        "config": {"enabled": True, "materialized": "test", "severity": "ERROR" if audit.blocking else "WARN"},
        "column_name": column or None,
        "attached_node": None if name.is_source else name.unique_id,
        "test_metadata": {"name": test_name, "kwargs": kwargs, "namespace": None},
        "refs": [] if name.is_source else [{"name": name.name, "package": None, "version": None}],
        "sources": [name.unique_id.split(".")[2:]] if name.is_source else [],
        "depends_on": {"macros": [], "nodes": [name.unique_id]},
        "raw_code": "",
        "language": "sql",
    }
