"""The types of computations with decimals that fit the digits of a decimal; settings decide how others are cut."""

import re
from collections.abc import Collection, Mapping
from functools import reduce

_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_NUMBER = re.compile(r"-?(\d+)\.(\d+)")
_WIDEST = 38  # digits of a decimal
_OF_WHOLE: Mapping[str, tuple[int, int]] = {"tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (20, 0)}


def read_decimal(type_: str | None) -> tuple[int, int] | None:
    """Return the digits of a decimal and its digits after the point, or None."""
    match = _DECIMAL.fullmatch(type_ or "")
    return (int(match[1]), int(match[2])) if match else None


def literal_type(text: str) -> str | None:
    """Return the type of a number that is written with a point and without an exponent, or None."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    digits = len((match[1] + match[2]).lstrip("0"))
    return _write_decimal(max(digits, len(match[2])), len(match[2]))


def widest_decimal(types: Collection[str | None]) -> str | None:
    pairs = _read_digits(types)
    return _write_decimal(*reduce(_widen_digits, pairs)) if pairs else None


def decimal_sum(types: Collection[str | None]) -> str | None:
    """Return the type of the sum or difference of two values, decimals or a column of whole numbers."""
    wide = read_decimal(widest_decimal(types))
    return _write_decimal(wide[0] + 1, wide[1]) if wide else None


def decimal_product(types: Collection[str | None]) -> str | None:
    pairs = _read_digits(types)
    return _write_decimal(sum(digits for digits, _ in pairs) + 1, sum(scale for _, scale in pairs)) if pairs else None


def sum_of_decimals(type_: str | None) -> str | None:
    pair = read_decimal(type_)
    return f"decimal({min(pair[0] + 10, _WIDEST)}, {pair[1]})" if pair else None


def average_of_decimals(type_: str | None) -> str | None:
    pair = read_decimal(type_)
    return f"decimal({min(pair[0] + 4, _WIDEST)}, {min(pair[1] + 4, _WIDEST)})" if pair else None


def _read_digits(types: Collection[str | None]) -> list[tuple[int, int]]:
    """Return the digits and the scale of each type; none unless all are numbers and one is a decimal."""
    pairs = [pair for type_ in types if (pair := read_decimal(type_) or _OF_WHOLE.get(type_ or ""))]
    return pairs if len(pairs) == len(types) and any(map(read_decimal, types)) else []


def _widen_digits(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    scale = max(one[1], other[1])
    return max(one[0] - one[1], other[0] - other[1]) + scale, scale


def _write_decimal(digits: int, scale: int) -> str | None:
    return f"decimal({digits}, {scale})" if digits <= _WIDEST else None
