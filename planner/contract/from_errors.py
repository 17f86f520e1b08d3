"""Conversion of errors to the contract's lines."""

from mergeplan.planner.contract.lines import ErrorLine
from mergeplan.planner.errors import AuditFailed, Located, MergeplanError


def split_place(location: Located | None) -> tuple[str, int, int]:
    place = location.place if location else None
    return (place.path, place.line, place.column) if place else ("", 0, 0)


def error_line(error: MergeplanError, exit_code: int | None = None) -> ErrorLine:
    """Return the line of an error; with its own exit code unless it is one of several that end the verb together."""
    path, line, column = split_place(error.located)
    about = error if isinstance(error, AuditFailed) else None
    return ErrorLine(
        message=error.message,
        hint=error.hint,
        path=path,
        line=line,
        column=column,
        exit_code=error.exit_code if exit_code is None else exit_code,
        kind=type(error).__name__,
        retry=error.retry,
        audit=about.audit if about else None,
        model=about.model if about else None,
    )
