"""Dates as a person writes them, as moments."""

from datetime import datetime

from mergeplan.planner.errors import RequestError
from mergeplan.planner.parsing.sql.dates import end_instant, parse_instant


def parse_moment(text: str | None, now: datetime, *, end: bool = False) -> datetime | None:
    """Parse a date as a moment in UTC; a bare day as an end includes that day. Raise RequestError if it is none."""
    if text is None:
        return None
    try:
        return (end_instant if end else parse_instant)(text, now)
    except ValueError as error:
        raise RequestError(str(error)) from None
