"""adopt: tables that are in prod already, taken over without computing them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.outcome import report_outcome
from mergeplan.planner.cli.output import Output, execution_time_option, make_emitter, output_of, output_option
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.texts.adopt_text import adoption_text, survey_text
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.errors import RequestError
from mergeplan.planner.session.adoption.adopting import Adopting, adopt_tables, prepare_adoption, survey_project
from mergeplan.planner.session.adoption.adoption_checks import Declared
from mergeplan.planner.session.adoption.adoption_file import file_of, parse_declaration, read_declarations
from mergeplan.planner.session.adoption.adoption_view import adoption_view, survey_view
from mergeplan.planner.session.use_cases.applying import Record
from mergeplan.planner.session.workspace import Workspace


@click.command()
@click.option(
    "--table", "tables", multiple=True, metavar="MODEL=TABLE", help="A table with a model's rows. Repeatable."
)
@click.option("--file", "file", type=click.Path(path_type=Path), help="A YAML file that names the tables.")
@click.option("-s", "--start", metavar="DATE", help="The first day that the tables of --table hold completely.")
@click.option("-e", "--end", metavar="DATE", help="The last day that they hold completely.")
@click.option("--copy", is_flag=True, help="Copy the rows if the model cannot use the table's files in place.")
@click.option("--look-in", metavar="SCHEMA", default="", help="Look for tables in this schema, by the models' names.")
@click.option("--write", "target", type=click.Path(path_type=Path), help="Write the tables that fit to this file.")
@click.option("--dry-run", is_flag=True, help="Check and show, and do nothing.")
@click.option("--auto-apply", is_flag=True, help="Adopt without asking for confirmation.")
@click.option("--who", default="", help="The person who wants it, for the history.")
@click.option("--note", default="", help="The reason, for the history.")
@execution_time_option
@output_option
@workspace
def adopt(root: Path, gateway: str | None, output: str, **option_values: Any) -> int:
    """Take over existing tables, as the first versions of models in prod.

    Nothing is computed, and no table of yours is written or dropped. Without --table and --file it surveys
    the project.

    \b
    mergeplan adopt                             what opens, and which tables fit
    mergeplan adopt --look-in legacy --write adopt.yaml
    mergeplan adopt --file adopt.yaml --dry-run  check columns and rows
    mergeplan adopt --table shop.orders=legacy.orders --end 2026-01-31
    """
    out = output_of(output)
    declared = _collect_declarations(option_values)
    looks = declared is None or option_values["dry_run"]
    at = option_values["execution_time"]
    with open_workspace(root, gateway, "backfill", at, on_event=make_emitter(out), only_looks=looks) as work:
        if declared is None:
            return _print_survey(work, out, option_values["look_in"], option_values["target"])
        prepared = prepare_adoption(work, declared)
        result = ResultLine(ok=True, adoption=adoption_view(prepared))
        if (code := _print_adoption(out, prepared)) is not None:
            return code
        if option_values["dry_run"] or not (option_values["auto_apply"] or _confirm_adoption(out)):
            if isinstance(out, JsonLines):
                out.result(result)
            return 0
        return report_outcome(
            out, adopt_tables(work, prepared, Record(option_values["who"], option_values["note"])), result
        )


def _collect_declarations(option_values: Mapping[str, Any]) -> tuple[Declared, ...] | None:
    """Return the tables that options and a file name; None if neither was given."""
    start, end = option_values["start"], option_values["end"]
    named = tuple(parse_declaration(text, start, end, copy=option_values["copy"]) for text in option_values["tables"])
    if option_values["file"] is not None:
        return named + read_declarations(option_values["file"])
    return named or None


def _print_survey(work: Workspace, out: Output, schema: str, target: Path | None) -> int:
    survey = survey_project(work, schema.lower())
    view = survey_view(survey)
    if target is not None:
        if target.exists():
            raise RequestError(f"`{target}` is there already.", hint="Name another file, or remove it.")
        fitting = tuple(Declared(table.model, table.table) for table in view.tables if table.fits)
        target.write_text(file_of(fitting), encoding="utf-8")
    if isinstance(out, JsonLines):
        out.result(ResultLine(ok=True, adoption=view, file=str(target) if target else None))
        return 0
    for line in survey_text(view):
        click.echo(line)
    if target is not None:
        click.echo(f"Written to {target}. Next: mergeplan adopt --file {target} --dry-run")
    return 0


def _print_adoption(out: Output, preparation: Adopting) -> int | None:
    """Print the results of the checks; return the exit code if a table does not fit, None if all do."""
    view = adoption_view(preparation)
    if isinstance(out, Terminal):
        for line in adoption_text(view):
            click.echo(line)
    if not preparation.problems:
        return None
    if isinstance(out, JsonLines):
        for problem in preparation.problems:
            out.error(RequestError(problem))
        out.result(ResultLine(ok=False, adoption=view))
    return RequestError.exit_code


def _confirm_adoption(out: Output) -> bool:
    """Ask the person; a program that did not confirm in its call has not agreed."""
    if isinstance(out, JsonLines):
        return False
    try:
        return click.confirm("Adopt these tables")
    except click.Abort as aborted:
        if isinstance(aborted.__context__, KeyboardInterrupt):
            raise
        return False
