"""create_test: a unit test made of rows that tables hold now; the model itself computes the expected rows."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import click
import yaml

from mergeplan.planner.apply.unit_tests import compute_outputs
from mergeplan.planner.checks.unit_tests import cte_names, has_known_columns
from mergeplan.planner.cli.click_options import options_from
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.engine.protocol import Rows
from mergeplan.planner.errors import Place, RequestError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.unit_tests import Surroundings, TestRows, UnitTest, read_tests
from mergeplan.planner.parsing.sql.names import model_name, without_default
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.parsing.sql.yaml_documents import read_document
from mergeplan.planner.project.unit_tests import check_table
from mergeplan.planner.session.workspace import Workspace

Written = dict[str, object]


@dataclass(frozen=True)
class NewTest:
    queries: tuple[tuple[str, str], ...]
    this: str | None
    variables: tuple[tuple[str, str], ...]
    path: str | None
    name: str | None
    include_ctes: bool
    overwrite: bool


@click.command()
@click.argument("model")
@click.option(
    "-q", "--query", "queries", nargs=2, multiple=True, metavar="TABLE SQL", help="The rows of a table that it reads."
)
@click.option("--this", metavar="SQL", help="The rows that its own table holds; expect the table after a load, too.")
@click.option("-v", "--var", "variables", nargs=2, multiple=True, metavar="KEY VALUE", help="start, end, a variable...")
@click.option("--path", help="The file, below tests/; `test_<model>.yaml` otherwise.")
@click.option("-n", "--name", help="The test's name; `test_<model>` otherwise.")
@click.option("--include-ctes", is_flag=True, help="Expect the rows of each CTE, too.")
@click.option("-o", "--overwrite", is_flag=True, help="Replace an existing file.")
@workspace
def create_test(model: str, root: Path, gateway: str | None, **option_values: Any) -> int:
    """Write a unit test of MODEL: the queries return its input, and the model computes its expected output.

    \b
    mergeplan create_test shop.total \\
        --query shop.daily "select * from shop.daily limit 3"
    mergeplan create_test shop.daily --var start 2026-01-01 \\
        --query shop.items "select * from shop.items"
    """
    new_test = options_from(NewTest, option_values)
    with open_workspace(root, gateway, only_looks=True) as work:
        name = without_default(model.lower(), work.project.catalogs.default)
        selected_model = work.project.models.get(name)
        if selected_model is None:
            work.project.refused.check_model(name)
            raise RequestError(f"There is no model `{model}`.", hint=did_you_mean(model, work.project.models))
        short = selected_model.name.rpartition(".")[2]
        title = new_test.name or f"test_{short}"
        file = _resolve_file(work, new_test.path or f"test_{short}.yaml", new_test.overwrite)
        _check_name(work, title, file)
        work.look()
        body = _build_test_body(work, selected_model, title, file, new_test)
        shown = file.relative_to(work.settings.root)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_format_test(title, body), "utf-8")
    click.echo(f"Wrote {shown}: {title}. Run it with: mergeplan test {shown.as_posix()}::{title}")
    return 0


def _build_test_body(work: Workspace, model: Model, title: str, file: Path, options: NewTest) -> Written:
    catalog = work.project.catalogs.default
    named = ((_resolve_input_name(model, table, catalog), sql) for table, sql in options.queries)
    inputs = {name: _query_input(work, name, sql) for name, sql in named}
    body: Written = {"model": model.name, "inputs": inputs, "outputs": {"query": []}}
    if options.this is not None:
        body |= {"this": _row_dicts(work.engine.fetch(options.this)), "outputs": {"query": [], "table": []}}
    if options.variables:
        body["vars"] = {key: yaml.safe_load(value) if value else value for key, value in options.variables}
    test = _parse_test(work, title, file, body)
    check_table(test, model)
    body["outputs"] = _compute_outputs(work, model, test, ctes=options.include_ctes)
    return body


def _compute_outputs(work: Workspace, model: Model, test: UnitTest, *, ctes: bool) -> Written:
    if ctes:
        test = replace(test, ctes={cte: TestRows() for cte in cte_names(model)})
    rows_by_output = {
        output: _row_dicts(rows) for output, rows in compute_outputs(work.engine, work.project, test).items()
    }
    shown: Written = {name: rows_by_output.pop(name) for name in ("query", "table") if name in rows_by_output}
    return {**({"ctes": rows_by_output} if rows_by_output else {}), **shown}


def _parse_test(work: Workspace, title: str, file: Path, body: Written) -> UnitTest:
    dialects = {name: model.dialect for name, model in work.project.models.items()}
    around = Surroundings(dialects, work.project.config.gateways, lambda path, _: path, work.now)
    (test,) = read_tests(
        read_document(file.relative_to(work.settings.root).as_posix(), _format_test(title, body)), around
    )
    return test


def _format_test(title: str, body: Written) -> str:
    return str(yaml.safe_dump({title: body}, sort_keys=False, allow_unicode=True, width=120))


def _resolve_file(work: Workspace, path: str, overwrite: bool) -> Path:
    """Return the file to write; raise RequestError if it is not in tests/, is no YAML, or exists already."""
    tests = (work.project.root / "tests").resolve()
    file = (tests / path.removeprefix("tests/")).resolve()
    if not file.is_relative_to(tests) or PurePosixPath(path).suffix not in (".yaml", ".yml"):
        raise RequestError(f"`{path}` is no YAML file in tests/.", hint="Write `--path test_orders.yaml`.")
    if file.exists() and not overwrite:
        raise RequestError(f"`{path}` exists already: nothing was written.", hint="Give `--overwrite` or `--path`.")
    return file


def _check_name(work: Workspace, title: str, file: Path) -> None:
    for test in work.project.tests:
        if test.name == title and (work.project.root / test.path).resolve() != file:
            raise RequestError(f"The test `{title}` is already defined at {test.place}.", hint="Give it a `--name`.")


def _resolve_input_name(model: Model, table: str, catalog: str) -> str:
    name = model_name(table, Place("--query"), catalog)
    if name not in model.depends_on and not (model.reads_itself and name == model.name):
        raise RequestError(f"{model.name} does not read `{table}`.", hint=did_you_mean(name, model.depends_on))
    return name


def _query_input(work: Workspace, table: str, sql: str) -> Written | list[Written]:
    """Return the rows that a query finds, with their types if nothing else defines them."""
    columns = {column.name: column.type for column in work.engine.schema(sql)}
    rows = _row_dicts(work.engine.fetch(sql))
    return rows if has_known_columns(work.engine, work.project, table) else {"columns": columns, "rows": rows}


def _row_dicts(rows: Rows) -> list[Written]:
    names = [name.lower() for name in rows.columns]
    return [{name: _plain_value(cell) for name, cell in zip(names, row, strict=True)} for row in rows.rows]


def _plain_value(value: object) -> object:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).replace(tzinfo=None).isoformat(sep=" ")
        case date():
            return value
        case dict():
            return {str(key): _plain_value(entry) for key, entry in value.items()}
        case tuple() if names := getattr(value, "__fields__", None):
            return {name: _plain_value(field_value) for name, field_value in zip(names, value, strict=True)}
        case list() | tuple():
            return [_plain_value(element) for element in value]
        case bytes() | bytearray():
            raise RequestError("A test cannot hold a column of bytes.", hint="Leave it out of the query.")
        case _:
            return str(value)
