"""Numbers with their nouns."""

from __future__ import annotations


def count_text(number: int, noun: str, plural: str = "") -> str:
    """`1 table`, `2 tables`, `1,200 batches`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"
