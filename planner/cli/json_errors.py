"""Print errors as JSON lines; imported only with `--output json`, so that start-up stays fast."""

from collections.abc import Iterable

from mergeplan.planner.contract.from_errors import error_line
from mergeplan.planner.contract.lines import ErrorLine
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.wire import Line, serialize_line
from mergeplan.planner.errors import MergeplanError


def report_errors(errors: Iterable[MergeplanError], exit_code: int) -> None:
    _print_errors(*(error_line(error, exit_code) for error in errors))


def error_lines(message: str, hint: str, exit_code: int, kind: str) -> None:
    _print_errors(ErrorLine(message=message, hint=hint, exit_code=exit_code, kind=kind))


def _print_errors(*errors: ErrorLine) -> None:
    lines: tuple[Line, ...] = (*errors, ResultLine(ok=False))
    for error_row in lines:
        print(serialize_line(error_row), flush=True)  # noqa: T201
