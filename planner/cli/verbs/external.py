"""create_external_models: the tables that are read but not defined, written down as Spark's catalog has them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import yaml

from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.output import output_option
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.errors import ProjectError, QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.parsing.files.dbt_manifest import DbtTable, dbt_tables
from mergeplan.planner.replace_file import replace_file
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.wording import count_noun

FILE = "external_models.yaml"
MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


@click.command("create_external_models")
@click.option("--strict", is_flag=True, help="Write nothing when one of the tables is not in the catalog.")
@click.option(
    "--dbt-manifest",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="dbt's target/manifest.json: its columns come first.",
)
@output_option
@workspace
def create_external_models(
    strict: bool, dbt_manifest: Path | None, root: Path, gateway: str | None, output: str
) -> int:
    """Add the tables that models read and no file defines to external_models.yaml, with the columns that Spark knows.

    Existing entries do not change. With --gateway the tables are written down as that gateway's.

    \b
    mergeplan create_external_models
    mergeplan create_external_models --strict
    mergeplan create_external_models --dbt-manifest ../dbt/target/manifest.json
    """
    built = _load_dbt_tables(dbt_manifest) if dbt_manifest else {}
    with open_workspace(root, gateway) as work:
        columns_by_table, missing = _look_up_columns(work, built)
        if strict and missing:
            raise _unknown_table_error(work, missing[0])
        yml_file = work.settings.root / "external_models.yml"
        file = yml_file if yml_file.is_file() else work.settings.root / FILE
        if columns_by_table:
            _append_tables(file, columns_by_table, built, gateway)
    if output == "json":
        added = ResultLine(ok=True, file=file.name, tables=tuple(sorted(columns_by_table)), missing=tuple(missing))
        JsonLines().result(added)
        return 0
    for name in missing:
        click.echo(f"{name} is not in the catalog: left out.")
    click.echo(f"{count_noun(len(columns_by_table), 'table')} added to {file.name}.")
    return 0


def _load_dbt_tables(manifest: Path) -> Mapping[str, DbtTable]:
    catalog = manifest.with_name("catalog.json")
    text = catalog.read_text(encoding="utf-8") if catalog.is_file() else None
    return dbt_tables(manifest.name, manifest.read_text(encoding="utf-8"), text)


def _look_up_columns(
    work: Workspace, built_tables: Mapping[str, DbtTable]
) -> tuple[Mapping[str, Sequence[Column]], list[str]]:
    columns_by_table: dict[str, Sequence[Column]] = {}
    missing = []
    for name in sorted(work.external_tables):
        if name in built_tables and built_tables[name].columns:
            columns_by_table[name] = built_tables[name].columns
            continue
        if work.project.catalogs.catalog_of(name) is None:
            missing.append(name)
            continue
        try:
            columns_by_table[name] = work.engine.table_columns(name)
        except QueryError as error:
            if error.condition not in MISSING:
                raise
            missing.append(name)
    return columns_by_table, missing


def _unknown_table_error(work: Workspace, name: str) -> ProjectError:
    reader = next(model for model in work.project.models.values() if name in model.depends_on)
    message = f"`{reader.name}` reads `{name}`, which is neither a model nor in Spark's catalog."
    return ProjectError(message, place=reader.locate(name), hint="Nothing was written.")


def _dbt_properties(table: DbtTable) -> dict[str, object]:
    properties: dict[str, object] = {
        "description": table.description,
        "tags": list(table.tags),
        "dialect": table.dialect if table.columns else "",  # other types are those of Spark's catalog
    }
    return {key: value for key, value in properties.items() if value}


def _append_tables(
    file: Path,
    columns_by_table: Mapping[str, Sequence[Column]],
    built_tables: Mapping[str, DbtTable],
    gateway: str | None,
) -> None:
    old_text = file.read_text(encoding="utf-8").rstrip("\n") if file.is_file() else ""
    items = []
    for name, columns in sorted(columns_by_table.items()):
        item: dict[str, object] = {"name": name, **({"gateway": gateway} if gateway else {})}
        item |= _dbt_properties(built_tables[name]) if name in built_tables else {}
        item["columns"] = {column.name: column.type for column in columns}
        if described := {column.name: column.comment for column in columns if column.comment}:
            item["column_descriptions"] = described
        items.append(item)
    new_text = yaml.safe_dump(items, sort_keys=False, allow_unicode=True, width=120)
    replace_file(file, f"{old_text}\n{new_text}" if old_text.strip() not in ("", "[]") else new_text)
