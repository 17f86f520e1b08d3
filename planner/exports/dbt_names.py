"""How dbt would call the models of a catalog: unique ids, names and relations."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mergeplan.planner.catalog.catalog import Catalog, CatalogModel
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.naming import parts_of


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
