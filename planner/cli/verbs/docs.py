"""docs: the catalog of the project as a static site, as one file, or as a document for programs."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.from_catalog import catalog_view
from mergeplan.planner.errors import RequestError
from mergeplan.planner.exports.dbt_manifest import dbt_catalog, dbt_manifest
from mergeplan.planner.session.use_cases.catalog import make_catalog
from mergeplan.planner.site.pages import write_single_file, write_site
from mergeplan.planner.snapshot.environment import PROD, parse_environment_name
from mergeplan.planner.wording import count_noun

FORMATS = ("site", "json", "dbt")


@click.command()
@click.option("--format", "form", type=click.Choice(FORMATS), default="site", help="Pages, a document, or dbt's files.")
@click.option("--output", type=click.Path(path_type=Path), help="The folder or file to write; default: `catalog`.")
@click.option("--single-file", is_flag=True, help="Write the site as one HTML file.")
@click.option(
    "--environment",
    default=PROD,
    show_default=True,
    help="The environment whose tables, versions and intervals to show.",
)
@workspace
def docs(root: Path, gateway: str | None, **option_values: Any) -> int:
    """Write the catalog of the models: columns, lineage, queries, schedules, tests, and what the tables hold.

    \b
    mergeplan docs
    mergeplan docs --output public --environment dev
    mergeplan docs --single-file --output catalog.html
    mergeplan docs --format json --output catalog.json
    mergeplan docs --format dbt --output dbt-artifacts
    """
    output, form = option_values["output"], option_values["form"]
    single = option_values["single_file"]
    if single and form != "site":
        raise RequestError(f"`--single-file` does not go with `--format {form}`.", hint="It is a form of the site.")
    if str(output) in FORMATS and not output.exists():
        raise RequestError(f"`--output {output}` would be a folder.", hint=f"For the form, write `--format {output}`.")
    environment = parse_environment_name(option_values["environment"])
    with open_workspace(root, gateway, only_looks=True) as work:
        catalog = make_catalog(work, environment)
    name = "single" if single else form
    target = output or Path(DEFAULTS[name])
    click.echo(f"{count_noun(len(catalog.models), 'model')}: {WRITERS[name](catalog, target)}")
    return 0


def _write_site(catalog: Catalog, folder: Path) -> str:
    write_site(catalog, folder)
    return f"open {folder / 'index.html'}"


def _write_single_file(catalog: Catalog, path: Path) -> str:
    write_single_file(catalog, path)
    return f"open {path}"


def _write_json(catalog: Catalog, path: Path) -> str:
    path.write_text(f"{catalog_view(catalog).model_dump_json()}\n", encoding="utf-8")
    return str(path)


def _write_dbt(catalog: Catalog, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name, artifact in (("manifest", dbt_manifest(catalog)), ("catalog", dbt_catalog(catalog))):
        (folder / f"{name}.json").write_text(f"{json.dumps(artifact)}\n", encoding="utf-8")
    return f"{folder / 'manifest.json'}, {folder / 'catalog.json'}"


WRITERS: Mapping[str, Callable[[Catalog, Path], str]] = {
    "site": _write_site,
    "single": _write_single_file,
    "json": _write_json,
    "dbt": _write_dbt,
}
DEFAULTS = {"site": "catalog", "single": "catalog.html", "json": "catalog.json", "dbt": "dbt-artifacts"}
