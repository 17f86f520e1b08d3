"""What a person or a program reads when something went wrong."""

from __future__ import annotations

import json
import sys
import tempfile
import traceback

import click

from planner.errors import MergeplanError, Place, ProjectErrors

EXIT_DEFECT = 3


def report(error: MergeplanError, *, as_json: bool) -> None:
    """Say an expected error: each of several on its own line, with its place and what to do."""
    errors = error.errors if isinstance(error, ProjectErrors) else (error,)
    if as_json:
        for each in errors:
            _line(each.message, each.hint, error.exit_code, type(each).__name__, each.place, each.retry)
        _end()
        return
    for each in errors:
        where = f"{each.place}: " if each.place else ""
        click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(f"{where}{each.message}" + (f" {each.hint}" if each.hint else ""), err=True)


def report_defect(error: Exception, *, as_json: bool) -> None:
    """Say that the fault is ours, in a sentence, and keep the trace in a file for whoever mends it."""
    with tempfile.NamedTemporaryFile("w", prefix="mergeplan-", suffix=".log", delete=False) as log:
        traceback.print_exception(error, file=log)
    message = f"mergeplan failed: {type(error).__name__}: {_first_line(error)}"
    hint = f"This is a defect of mergeplan, not of your project; the details are in {log.name}."
    if as_json:
        error_lines(message, hint, EXIT_DEFECT, "Defect")
    else:
        click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(f"{message}. {hint}", err=True)


def error_lines(message: str, hint: str, exit_code: int, kind: str) -> None:
    """The JSON lines of an error that has no place."""
    _line(message, hint, exit_code, kind, None)
    _end()


def _line(message: str, hint: str, exit_code: int, kind: str, place: Place | None, retry: bool = False) -> None:
    path, line, column = (place.path, place.line, place.column) if place else ("", 0, 0)
    event = {"event": "error", "message": message, "path": path, "line": line, "column": column}
    error_line = {**event, "hint": hint, "exit_code": exit_code, "kind": kind, "retry": retry}
    print(json.dumps(error_line), flush=True)  # noqa: T201


def _end() -> None:
    print(json.dumps({"event": "result", "ok": False, "applied": False}), flush=True)  # noqa: T201
    sys.stdout.flush()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:300]
