"""Two sets of rows compared as multisets: NULL equals NULL, and a number is equal however it is written."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from mergeplan.planner.engine.protocol import Rows, Value


@dataclass(frozen=True)
class RowDifference:
    """A row that is missing, one that is unexpected, or a pair of similar rows that differ."""

    columns: tuple[str, ...]  # of both rows
    expected: tuple[Value, ...] | None
    actual: tuple[Value, ...] | None
    differing: tuple[str, ...] = ()  # columns; all when there is only one row

    @property
    def text(self) -> str:
        if self.expected is None and self.actual is None:
            return f"  columns: {', '.join(self.differing)}"
        if self.expected is None:
            return f"  unexpected: {_row_text(self.columns, self.actual or ())}"
        if self.actual is None:
            return f"  missing: {_row_text(self.columns, self.expected)}"
        pairs = zip(self.columns, self.expected, self.actual, strict=True)
        cells = ", ".join(
            f"{name}: expected {_cell_text(expected_cell)}, got {_cell_text(actual_cell)}"
            for name, expected_cell, actual_cell in pairs
            if name in self.differing
        )
        equal_cells = [
            (name, cell) for name, cell in zip(self.columns, self.expected, strict=True) if name not in self.differing
        ]
        where = (
            f" (where {_row_text([name for name, _ in equal_cells], [cell for _, cell in equal_cells])})"
            if equal_cells
            else ""
        )
        return f"  {cells}{where}"


def compare_rows(
    expected_rows: Rows, actual: Rows, types: Mapping[str, str], partial: bool
) -> tuple[RowDifference, ...]:
    """Return the differences of the rows, () if there are none; `partial` compares the expected columns only."""
    odd = [f"`{name}` is expected and does not exist" for name in expected_rows.columns if name not in actual.columns]
    if not partial:
        odd += [f"`{name}` is not expected" for name in actual.columns if name not in expected_rows.columns]
    if odd:
        return (RowDifference((), None, None, tuple(odd)),)
    columns = expected_rows.columns
    order = [actual.columns.index(name) for name in columns]
    kinds = [types.get(name, "string") for name in columns]
    expected_keyed = [(_row_key(row, kinds), row) for row in expected_rows.rows]
    actual_keyed = [
        (_row_key(row, kinds), row) for row in (tuple(row[index] for index in order) for row in actual.rows)
    ]
    lonely = Counter(key for key, _ in expected_keyed)
    lonely.subtract(key for key, _ in actual_keyed)
    missing = _pick_rows(expected_keyed, +lonely)
    unexpected = _pick_rows(actual_keyed, -lonely)
    return tuple(_pair_rows(columns, missing, unexpected))


Keyed = tuple[tuple[str, ...], tuple[Value, ...]]


def _row_key(row: Sequence[Value], kinds: Sequence[str]) -> tuple[str, ...]:
    return tuple(canonical_text(value, kind) for value, kind in zip(row, kinds, strict=True))


def canonical_text(value: Value, kind: str) -> str:
    """Return a value as text, the same text for all equal values of a Spark type."""
    if value is None:
        return "NULL"
    base = kind.partition("(")[0].partition("<")[0]
    if base in ("float", "double"):
        return _float_text(value)
    if base in ("tinyint", "smallint", "int", "bigint", "decimal"):
        return _decimal_text(value)
    if base == "boolean":
        return str(value).lower()
    if base == "timestamp" or base == "timestamp_ntz":
        return _time_text(value)
    if base in ("array", "struct", "map"):
        return json.dumps(_plain_value(value), sort_keys=True, default=str)
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)


def _float_text(value: Value) -> str:
    """Return nine digits, because the others depend on the order of additions."""
    try:
        return f"{float(str(value)) + 0.0:.9g}"
    except ValueError:
        return str(value)


def _decimal_text(value: Value) -> str:
    try:
        number = Decimal(str(int(value)) if isinstance(value, bool) else str(value))
    except InvalidOperation:
        return str(value)
    return str(number.normalize() + 0)


def _time_text(value: Value) -> str:
    try:
        if isinstance(value, datetime):
            read = value
        elif isinstance(value, date):
            read = datetime(value.year, value.month, value.day)
        else:
            read = datetime.fromisoformat(str(value).upper())
    except ValueError:
        return str(value)
    return read.replace(tzinfo=None).isoformat(sep=" ")


def _plain_value(value: object) -> object:
    """Return nested values as lists and mappings; a Spark row knows its fields' names."""
    if isinstance(value, dict):
        return {str(key): _plain_value(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        fields = getattr(value, "__fields__", None)
        return (
            dict(zip(fields, map(_plain_value, value), strict=True))
            if fields
            else [_plain_value(inner) for inner in value]
        )
    if isinstance(value, list):
        return [_plain_value(inner) for inner in value]
    if isinstance(value, float | Decimal):
        return _float_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return _float_text(value) if abs(value) < 10**9 else str(value)
    return value.isoformat(sep=" ") if isinstance(value, datetime) else value


def _pick_rows(rows: Sequence[Keyed], lonely: Counter[tuple[str, ...]]) -> list[Keyed]:
    selection = []
    for key, row in rows:
        if lonely[key] > 0:
            lonely[key] -= 1
            selection.append((key, row))
    return selection


def _pair_rows(columns: tuple[str, ...], missing: list[Keyed], unexpected_rows: list[Keyed]) -> list[RowDifference]:
    differences = []
    for key, row in missing:
        likeness = [
            sum(a == b for a, b in zip(key, unexpected_key, strict=True)) for unexpected_key, _ in unexpected_rows
        ]
        best = max(range(len(unexpected_rows)), key=lambda index: likeness[index], default=None)
        if best is None or not likeness[best]:
            differences.append(RowDifference(columns, row, None, columns))
            continue
        unexpected_key, actual = unexpected_rows.pop(best)
        differing = tuple(name for name, a, b in zip(columns, key, unexpected_key, strict=True) if a != b)
        differences.append(RowDifference(columns, row, actual, differing))
    return differences + [RowDifference(columns, None, row, columns) for _, row in unexpected_rows]


def _row_text(columns: Sequence[str], row: Sequence[Value]) -> str:
    return ", ".join(f"{name}={_cell_text(cell)}" for name, cell in zip(columns, row, strict=True))


def _cell_text(value: Value) -> str:
    return "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
