"""Cells of a seed as its project's format reads them: which are NULL, and how dbt's agate reads numbers and moments.

A cell that Spark casts to the same value stays as it is written: the hashes of a seed are those of its cells.
"""

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from mergeplan.planner.model.model import Seed

CellReader = Callable[[str], str | None]

_PLAIN = re.compile(r"[+-]?[0-9]+")
_PLAIN_FRACTION = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_CURRENCIES = "؋$ƒ៛¥₡₱£€¢﷼₪₩₭₮₦฿₤₫"
_EXPONENT_MAX = 400  # of a number whose digits are written out; no bigint or double is that long
_OFFSET = re.compile(r"(?P<moment>.*?\d:\d\d(:\d\d)?)(?P<fraction>\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)?", re.IGNORECASE)


def cell_reader(seed: Seed, type_: str) -> CellReader:
    """Return the function that reads the cells of a column of this type, '' for one of which it is not known."""
    nulls = frozenset(seed.na_values)
    if not seed.is_dbt:
        return lambda cell: None if cell in nulls else cell
    read = _DBT_READERS.get(type_.lower(), str)
    return lambda cell: None if cell.strip().lower() in nulls else read(cell)


def _read_whole(cell: str) -> str:
    return cell if _PLAIN.fullmatch(cell) else _read_decimal(cell)


def _read_fraction(cell: str) -> str:
    return cell if _PLAIN_FRACTION.fullmatch(cell) else _read_decimal(cell)


def _read_decimal(cell: str) -> str:
    """Return a number as agate reads it: without a percent sign, currencies, and commas between thousands."""
    text = cell.strip().strip("%")
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    try:
        number = Decimal(sign + text.strip(_CURRENCIES).replace(",", ""))
    except InvalidOperation:
        return cell
    if not number.is_finite() or abs(number.adjusted()) > _EXPONENT_MAX:
        return cell
    return f"{number:f}" if number % 1 else str(int(number))


def _read_boolean(cell: str) -> str:
    return cell.replace(",", "").strip()


def _read_moment(cell: str) -> str:
    """Return a moment as dbt-spark sends it: without its offset from UTC, in milliseconds."""
    match = _OFFSET.fullmatch(cell.strip())
    return cell if match is None else match["moment"] + (match["fraction"] or "")[:4]


_DBT_READERS: dict[str, Callable[[str], str]] = {
    "bigint": _read_whole,
    "double": _read_fraction,
    "boolean": _read_boolean,
    "timestamp": _read_moment,
}
