"""Texts of numbers, sizes, durations and lists: the same on the terminal, in a notebook and on a pull request."""

from __future__ import annotations

from collections.abc import Sequence


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


def printable_text(text: str) -> str:
    """Return the text without control characters and direction overrides; line ends stay."""
    if text.isprintable():
        return text
    shown = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return "".join(char for char in shown if char == "\n" or char.isprintable())


def shorten_name(name: str, width: int) -> str:
    """Return the end of a name that is longer than a column, because the end distinguishes models."""
    return name if len(name) <= width else f"…{name[1 - width :]}"
