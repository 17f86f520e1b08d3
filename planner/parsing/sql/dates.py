"""Dates as people write them in a project or on the command line: ISO, or simply relative to now."""

import re
from datetime import UTC, date, datetime, timedelta

_AGO = re.compile(r"(\d+)\s+(minute|hour|day|week|month|year)s?(?:\s+ago)?")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}")
FIXED_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_EXAMPLES = "Write it like `2024-01-31`, `2024-01-31 06:00:00`, `yesterday` or `2 weeks ago`."


def parse_instant(text: str, now: datetime) -> datetime:
    """Return the moment (UTC) of a text, midnight for days and longer units; raise ValueError if it is no date."""
    words = " ".join(text.lower().split())
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if words in ("today", "yesterday", "tomorrow"):
        return midnight + timedelta(days={"today": 0, "yesterday": -1, "tomorrow": 1}[words])
    if words == "now":
        return now.astimezone(UTC)
    if match := _AGO.fullmatch(words):
        return _subtract_units(int(match[1]), match[2], now.astimezone(UTC), midnight)
    try:
        # a long run of digits is epoch milliseconds, as in SQLMesh
        is_epoch = re.fullmatch(r"\d{10,14}", words)
        read = datetime.fromtimestamp(int(words) / 1000, UTC) if is_epoch else datetime.fromisoformat(words.upper())
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"`{text}` is not a date. {_EXAMPLES}") from None
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


def end_instant(text: str, now: datetime) -> datetime:
    """Return the exclusive end that a text names, for a day the next midnight; raise ValueError if it is no date."""
    words = text.strip().lower()
    ago = _AGO.fullmatch(words)
    is_day_ago = ago is not None and ago[2] not in ("minute", "hour")
    whole_day = _DAY.fullmatch(words) or words in ("today", "yesterday", "tomorrow") or is_day_ago
    return parse_instant(text, now) + timedelta(days=1 if whole_day else 0)


def is_relative(text: str) -> bool:
    """Return True for a text that names another moment tomorrow: `yesterday`, `2 weeks ago`."""
    words = " ".join(text.lower().split())
    return words in ("today", "yesterday", "tomorrow", "now") or _AGO.fullmatch(words) is not None


def text_of(value: object) -> str:
    """Return a date from YAML (date, datetime, number or text) as text for `parse_instant`."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else str(value)


def _subtract_units(count: int, unit: str, now: datetime, midnight: datetime) -> datetime:
    try:
        if unit in ("minute", "hour"):
            return now - count * FIXED_UNITS[unit]
        if unit in FIXED_UNITS:
            return midnight - count * FIXED_UNITS[unit]
        months = midnight.year * 12 + midnight.month - 1 - count * (12 if unit == "year" else 1)
        first = midnight.replace(year=months // 12, month=months % 12 + 1, day=1)
    except (OverflowError, ValueError):
        raise ValueError(f"{count} {unit}s ago is before the year 1.") from None
    # the 31st of a month that has 30 days is its last day
    following = (first + timedelta(days=32)).replace(day=1)
    return min(first + timedelta(days=midnight.day - 1), following - timedelta(days=1))
