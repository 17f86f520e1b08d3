"""dbt's manifest.json (v12) and catalog.json (v1) of a catalog, for tools that read those."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from pathlib import PurePosixPath
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from mergeplan.planner.catalog.catalog import Catalog, CatalogAudit, CatalogColumn, CatalogModel
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.exposure import Exposure
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.naming import parts_of
from mergeplan.planner.semantics.audited_keys import parse_columns

DBT_TESTS = {"not_null": "not_null", "unique_values": "unique", "accepted_values": "accepted_values"}
Json = dict[str, Any]
SCHEMAS = "https://schemas.getdbt.com/dbt/{}/v{}.json"
DBT_VERSION = "1.11.0"  # whose files these are: readers look at it
TYPES = ("dashboard", "notebook", "analysis", "ml", "application")  # of exposures
UNKNOWN = "unknown"  # a column's type, which Spark alone knows
DBT_TESTS = {"not_null": "not_null", "unique_values": "unique", "accepted_values": "accepted_values"}


@dataclass(frozen=True)
class DbtName:
    """One node: its id, its name, and the relation that people read; `database` is '' in the default catalog."""

    unique_id: str
    name: str
    database: str
    schema: str
    alias: str

    @property
    def is_source(self) -> bool:
        return self.unique_id.startswith("source.")

    @property
    def relation(self) -> str:
        return ".".join(filter(None, (self.database, self.schema, self.alias)))


def dbt_manifest(catalog: Catalog) -> Json:
    """Return the manifest: models and seeds as nodes, audits as tests, external tables as sources, exposures."""
    project, names = project_name(catalog), dbt_names(catalog)
    nodes: dict[str, Json] = {}
    sources: dict[str, Json] = {}
    for name, dbt_name in names.items():
        model = catalog.models.get(name)
        if dbt_name.is_source:
            sources[dbt_name.unique_id] = _source_node(catalog, dbt_name, model)
        elif model is not None:
            nodes[dbt_name.unique_id] = _model_node(catalog, names, model)
        if model is not None:
            nodes |= {node["unique_id"]: node for node in audit_nodes(project, model, dbt_name)}
    exposures = {
        e["unique_id"]: e for e in starmap(partial(_exposure_node, catalog, names), enumerate(catalog.exposures))
    }
    parents = {uid: list(node["depends_on"].get("nodes", ())) for uid, node in {**nodes, **exposures}.items()}
    parents |= {uid: [] for uid in sources}
    empty = ("macros", "docs", "metrics", "groups", "selectors", "disabled", "group_map", "saved_queries",
             "semantic_models", "unit_tests")  # fmt: skip
    children: dict[str, list[str]] = {uid: [] for uid in parents}
    for uid, above in parents.items():
        for parent in above:
            children.setdefault(parent, []).append(uid)
    return {
        "metadata": {**_artifact_metadata(catalog, "manifest", 12), "project_name": project, "adapter_type": "spark"},
        "nodes": nodes,
        "sources": sources,
        "exposures": exposures,
        "parent_map": parents,
        "child_map": children,
        **{key: {} for key in empty},
    }


def dbt_catalog(catalog: Catalog) -> Json:
    """Return the columns of every relation, as dbt reads them; a type that only Spark knows is `unknown`."""
    tables: dict[bool, dict[str, Json]] = {True: {}, False: {}}
    for name, dbt_name in dbt_names(catalog).items():
        model = catalog.models.get(name)
        if model is not None and not model.declared.kind.is_embedded:
            tables[dbt_name.is_source][dbt_name.unique_id] = _catalog_table(model, dbt_name)
    metadata = _artifact_metadata(catalog, "catalog", 1)
    return {"metadata": metadata, "nodes": tables[False], "sources": tables[True], "errors": None}


def _artifact_metadata(catalog: Catalog, artifact: str, version: int) -> Json:
    moment = catalog.made_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "dbt_schema_version": SCHEMAS.format(artifact, version),
        "dbt_version": DBT_VERSION,
        "generated_at": moment,
        "invocation_id": str(uuid5(NAMESPACE_URL, f"{catalog.project} {catalog.environment} {moment}")),
        "env": {},
    }


def _model_node(catalog: Catalog, names: Mapping[str, DbtName], model: CatalogModel) -> Json:
    declared, name = model.declared, names[model.name]
    node = {**_common_fields(catalog, name, model), **_model_fields(catalog, model)}
    node |= {
        "resource_type": "seed" if declared.kind.is_seed else "model",
        "alias": name.alias,
        "checksum": {"name": "sha256", "checksum": hashlib.sha256(model.source.encode()).hexdigest()},
        "config": {
            "enabled": True,
            "materialized": _materialization_name(declared.kind),
            "tags": list(declared.metadata.tags),
            "meta": node["meta"],
            "unique_key": list(declared.by_key.unique_key) or None,
        },
        "raw_code": "" if declared.kind.is_seed else model.source,
        "relation_name": None if declared.kind.is_embedded else name.relation,
        "depends_on": {"macros": [], "nodes": [names[parent].unique_id for parent in model.parents]},
    }
    if declared.kind.is_seed:
        return node | {"root_path": None, "depends_on": {"macros": []}}
    parents = [names[parent] for parent in model.parents]
    return node | {
        "language": "python" if declared.python else "sql",
        "refs": [{"name": p.name, "package": None, "version": None} for p in parents if not p.is_source],
        "sources": [p.unique_id.split(".")[2:] for p in parents if p.is_source],
        "compiled": bool(model.rendered),
        "compiled_code": model.rendered or None,
        "primary_key": list(declared.metadata.grain),
    }


def _materialization_name(kind: Kind) -> str:
    if kind.is_embedded:
        return "ephemeral"
    if kind.is_view:
        return "view"
    return "seed" if kind.is_seed else "incremental" if kind.is_incremental else "table"


def _common_fields(catalog: Catalog, name: DbtName, model: CatalogModel | None) -> Json:
    project = project_name(catalog)
    path = PurePosixPath(model.declared.path) if model else PurePosixPath("external_models.yaml")
    inside = path.relative_to(path.parts[0]) if len(path.parts) > 1 else path
    return {
        "unique_id": name.unique_id,
        "name": name.name,
        "package_name": project,
        "path": str(inside),
        "original_file_path": str(path),
        "fqn": [project, *inside.with_suffix("").parts[:-1], name.name],
        "database": name.database or None,
        "schema": name.schema,
    }


def _model_fields(catalog: Catalog, model: CatalogModel) -> Json:
    declared, deployed = model.declared, model.deployed
    facts = {
        "owner": declared.metadata.owner,
        "mergeplan_kind": model.kind,
        "mergeplan_model": model.name,
        "mergeplan_cron": model.schedule,
        "mergeplan_version": deployed.version if deployed else "",
        "mergeplan_table": deployed.table if deployed else "",
    }
    return {
        "description": declared.metadata.description,
        "tags": list(declared.metadata.tags),
        "meta": {key: text for key, text in facts.items() if text},
        "columns": {column.name: _column_fields(column) for column in model.columns or ()},
        "created_at": catalog.made_at.timestamp(),
    }


def _column_fields(column: CatalogColumn) -> Json:
    return {
        "name": column.name,
        "description": column.description,
        "data_type": column.known_type or None,
        "meta": {},
        "tags": [],
    }


def _source_node(catalog: Catalog, name: DbtName, model: CatalogModel | None) -> Json:
    about = _model_fields(catalog, model) if model else {"description": "", "columns": {}, "tags": [], "meta": {}}
    return {
        **_common_fields(catalog, name, model),
        **about,
        "resource_type": "source",
        "source_name": name.unique_id.split(".")[2],
        "source_description": "",
        "loader": "",
        "identifier": name.alias,
        "relation_name": name.relation,
        "config": {"enabled": True},
    }


def _exposure_node(catalog: Catalog, names: Mapping[str, DbtName], number: int, exposure: Exposure) -> Json:
    project = project_name(catalog)
    uses = [names[name] for name in exposure.models if name in names]
    label = "".join(char if char.isalnum() else "_" for char in exposure.name)
    label += (
        f"_{number}"
        if any(earlier_exposure.name == exposure.name for earlier_exposure in catalog.exposures[:number])
        else ""
    )
    return {
        "unique_id": f"exposure.{project}.{label}",
        "name": label,
        "label": exposure.name,
        "resource_type": "exposure",
        "package_name": project,
        "path": "exposures.yaml",
        "original_file_path": "exposures.yaml",
        "fqn": [project, label],
        "type": exposure.type if exposure.type in TYPES else "application",
        "owner": {"name": exposure.owner or None, "email": None},
        **({"url": exposure.url} if exposure.url else {}),
        "meta": {"type": exposure.type} if exposure.type else {},
        "refs": [{"name": n.name, "package": None, "version": None} for n in uses if not n.is_source],
        "sources": [n.unique_id.split(".")[2:] for n in uses if n.is_source],
        "depends_on": {"macros": [], "nodes": [n.unique_id for n in uses]},
    }


def _catalog_table(model: CatalogModel, name: DbtName) -> Json:
    declared = model.declared
    return {
        "unique_id": name.unique_id,
        "metadata": {
            "type": "table" if declared.kind.is_external else "view",
            "schema": name.schema,
            "name": name.alias,
            "database": name.database or None,
            "comment": declared.metadata.description or None,
            "owner": declared.metadata.owner or None,
        },
        "columns": dict(_catalog_columns(model)),
        "stats": {},
    }


def _catalog_columns(model: CatalogModel) -> Iterator[tuple[str, Json]]:
    for number, column in enumerate(model.columns or (), start=1):
        about = {"type": column.known_type or UNKNOWN, "index": number, "name": column.name}
        yield column.name, {**about, "comment": column.description or None}


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


def project_name(catalog: Catalog) -> str:
    return _clean_name(catalog.project).strip("_") or "mergeplan"


def dbt_names(catalog: Catalog) -> Mapping[str, DbtName]:
    """Return the node of each model, and of each external table that no file declares."""
    project = project_name(catalog)
    project_models = {name: model for name, model in catalog.models.items() if not model.declared.kind.is_external}
    titles = _model_titles(project_models)
    names = {name: _model_name(project, model, titles[name]) for name, model in project_models.items()}
    for name in (*(name for name in catalog.models if name not in project_models), *catalog.outside_tables):
        database, schema, table = parts_of(name) if "." in name else ("", "default", name)
        source = _clean_name(f"{database}_{schema}" if database else schema)
        names[name] = DbtName(f"source.{project}.{source}.{table}", table, database, schema, table)
    return names


def _model_titles(names: Iterable[str]) -> Mapping[str, str]:
    """Name each model by its table; add the schema, or a digest, where that is ambiguous."""
    tables = Counter(_clean_name(parts_of(name)[2]) for name in names)
    whole = Counter(_clean_name(name.replace(".", "__")) for name in names)

    def title(name: str) -> str:
        table, full = _clean_name(parts_of(name)[2]), _clean_name(name.replace(".", "__"))
        if tables[table] == 1:
            return table
        return full if whole[full] == 1 and full not in tables else f"{full}_{digest('dbt', name)[:8]}"

    return {name: title(name) for name in names}


def _model_name(project: str, model: CatalogModel, title: str) -> DbtName:
    view = model.deployed.view if model.deployed and model.deployed.view else model.name
    sort = "seed" if model.declared.kind.is_seed else "model"
    return DbtName(f"{sort}.{project}.{title}", title, *parts_of(view))


def _clean_name(text: str) -> str:
    return re.sub(r"\W", "_", text)
