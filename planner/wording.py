"""Texts of numbers, sizes, durations and lists: the same on the terminal, in a notebook and on a pull request."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

PLAIN_WORDS = {
    "Input should be": "must be", "a valid integer": "a whole number", "a valid boolean": "`true` or `false`",
    "a valid number": "a number", "a valid string": "a text", "a valid (tuple|list)": "a list",
    "a valid dictionary( or instance of .*)?": "a mapping of `key: value` lines",
}  # fmt: skip


def count_noun(number: int, noun: str, plural: str = "") -> str:
    """Return a text such as `1 table`, `2 tables` or `1,200 batches`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def first_names(names: Sequence[str], most: int) -> str:
    """Return a text such as `a, b and 3 more`."""
    more_text = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more_text


def join_names(names: Sequence[str]) -> str:
    """Return a text such as `a, b and c`."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])


def size_text(size: float) -> str:
    """Return a text such as `512 B` or `1.2 GiB`, in Spark's units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def duration_text(seconds: float) -> str:
    """Return a text such as `3 s`, `12 min` or `2.5 h`; a part of a second counts as one."""
    if seconds < 90:
        return f"{max(1, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def age_text(seconds: float) -> str:
    """Return a text such as `5 minutes`, `1 day` or `1 day 6 hours`, in its two largest units.

    >>> age_text(108_000), age_text(3_600), age_text(30), age_text(-90_000)
    ('1 day 6 hours', '1 hour', '0 minutes', '1 day 1 hour ahead')
    """
    minutes = int(abs(seconds) // 60)
    counts = ((minutes // 1440, "day"), (minutes // 60 % 24, "hour"), (minutes % 60, "minute"))
    first = next((index for index, (count, _) in enumerate(counts) if count), 2)
    parts = [count_noun(count, unit) for count, unit in counts[first : first + 2] if count]
    return " ".join(parts or ["0 minutes"]) + (" ahead" if seconds <= -60 else "")


def lateness_text(warn_after: float, error_after: float) -> str:
    """Return a text such as `6 hours (warning), 1 day` for ages in seconds; 0 is none."""
    warn = f"{age_text(warn_after)} (warning)" if warn_after else ""
    return ", ".join(filter(None, (warn, age_text(error_after) if error_after else "")))


def validation_text(error: Mapping[str, Any]) -> str:
    """Return the reason of a validation error, such as `must be a whole number`."""
    text = str(error["msg"]).removeprefix("Value error, ").partition(", unable to")[0]
    for words, plain in PLAIN_WORDS.items():
        text = re.sub(words, plain, text)
    return text.rstrip(".")


def printable_text(text: str) -> str:
    """Return the text without control characters and direction overrides; line ends stay."""
    if text.isprintable():
        return text
    shown = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return "".join(char for char in shown if char == "\n" or char.isprintable())


def visible_text(text: str) -> str:
    """Return the text with control and invisible characters as escapes; line ends and tabs stay.

    >>> visible_text("a\\u200b"), visible_text("b\\x1b[31m")
    ('a\\\\u200b', 'b\\\\x1b[31m')
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text
    )


def shorten_name(name: str, width: int) -> str:
    """Return the end of a name that is longer than a column, because the end distinguishes models."""
    return name if len(name) <= width else f"…{name[1 - width :]}"
