"""Masks sample rows, which everybody may see: values become `a***` or `###.##`, so that no value can be read."""

import re
from collections.abc import Collection
from datetime import date, datetime
from decimal import Decimal
from typing import get_args

from mergeplan.planner.engine.protocol import Rows, Value
from mergeplan.planner.parsing.files.schema import Samples

SHORT = 4  # letters; of a shorter string not even the first letter is shown


def parse_samples(word: str | None) -> Samples | None:
    """Return the given setting of `show_samples`; None if it is not given."""
    return next((mode for mode in get_args(Samples) if mode == word), None)


def mask_rows(rows: Rows, samples: Samples, figures: Collection[str] = ()) -> Rows:
    """Return the rows, masked as `samples` requires; the aggregates in `figures` reveal no row, and are not masked."""
    if samples == "full":
        return rows
    if samples == "none":
        return Rows(rows.columns, ())
    masked = (
        tuple(cell if name in figures else mask_value(cell) for name, cell in zip(rows.columns, row, strict=True))
        for row in rows.rows
    )
    return Rows(rows.columns, tuple(masked))


def mask_value(value: Value) -> Value:
    """Return a value's shape: NULL and an empty string as they are, of a string the first letter and the length."""
    match value:
        case None:
            return None
        case bool():
            return "true or false"
        case int() | float() | Decimal() | date() | datetime():
            return re.sub(r"\d", "#", str(value))
        case str():
            first = value[0] if len(value) >= SHORT and value[0].isalnum() else ""
            return f"{first}*** ({len(value)})" if value else ""
        case bytes() | bytearray():
            return f"*** ({len(value)} bytes)"
        case dict() | list():
            return f"*** ({len(value)} of them)"
        case _:
            return "***"
