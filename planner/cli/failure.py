"""Reports of errors to a person or a program."""

import tempfile
import traceback

import click

from mergeplan.planner.errors import MergeplanError, ProjectErrors
from mergeplan.planner.wording import visible_text

EXIT_DEFECT = 3


def report_error(error: MergeplanError, *, as_json: bool) -> None:
    """Print an expected error: each of several on its own line, with its place and what to do."""
    errors = error.errors if isinstance(error, ProjectErrors) else (error,)
    if as_json:
        from mergeplan.planner.cli.json_errors import report_errors

        report_errors(errors, error.exit_code)
        return
    for failure in errors:
        where = f"{failure.place}: " if failure.place else ""
        click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(visible_text(f"{where}{failure.message}" + (f" {failure.hint}" if failure.hint else "")), err=True)


def report_defect(error: Exception, *, as_json: bool) -> None:
    """Print that the fault is ours, in a sentence, and write the trace to a file for the developers."""
    with tempfile.NamedTemporaryFile("w", prefix="mergeplan-", suffix=".log", delete=False) as log:
        traceback.print_exception(error, file=log)
    first_line = (str(error).strip().splitlines() or [""])[0][:300]
    message = f"mergeplan failed: {type(error).__name__}: {first_line}"
    hint = f"Internal error in mergeplan, not in your project; see {log.name}."
    if as_json:
        from mergeplan.planner.cli.json_errors import error_lines

        error_lines(message, hint, EXIT_DEFECT, "Defect")
    else:
        click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(f"{message}. {hint}", err=True)
