"""Dates of requests, read before a job begins: one that cannot be read is refused at once."""

from datetime import UTC, datetime

from mergeplan.planner.session.moments import parse_moment


def check_dates(*texts: str | None) -> None:
    """Raise RequestError for a text that is no date."""
    for text in texts:
        parse_moment(text, datetime.now(UTC))
