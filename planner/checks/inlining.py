"""Rows of a unit test as a query of Spark, each cell of its column's type."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime

from sqlglot import exp

from mergeplan.planner.naming import quote_column, quote_field

UNTYPED = "void"  # of a column that is NULL in each row and whose type nobody knows


def render_rows(types: Mapping[str, str], rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows of YAML, perhaps none, as a Spark query: cells cast to their column's type, a missing one NULL."""
    cells = ", ".join("(" + ", ".join(_text_cell(row.get(name)) for name in types) + ")" for row in (rows or ({},)))
    texts = ", ".join(f"`#{index}`" for index in range(len(types)))
    casts = (_cast_sql(f"`#{index}`", kind) for index, kind in enumerate(types.values()))
    shown = ", ".join(f"{cast} AS {quote_column(name)}" for cast, name in zip(casts, types, strict=True))
    return f"SELECT {shown} FROM VALUES {cells} AS `#given`({texts})" + ("" if rows else " WHERE FALSE")


def _text_cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list | dict):
        text = json.dumps(value, default=str)
    else:
        text = value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
    return exp.Literal.string(text).sql("spark")


def _cast_sql(column: str, kind: str) -> str:
    if kind == UNTYPED:
        return "NULL"
    if kind.startswith(("array<", "struct<", "map<")):
        return f"FROM_JSON(CAST({column} AS STRING), {exp.Literal.string(kind).sql('spark')})"
    return f"CAST({column} AS {kind})"


def type_of(values: Sequence[object]) -> str:
    kinds = {_type_of_one(value) for value in values if value is not None}
    if kinds <= {"bigint", "double"} and len(kinds) == 2:
        return "double"
    return kinds.pop() if len(kinds) == 1 else "string"


def _type_of_one(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "bigint"
        case float():
            return "double"
        case datetime():
            return "timestamp"
        case date():
            return "date"
        case list():
            return f"array<{type_of(value)}>"
        case dict():
            return f"struct<{','.join(f'{quote_field(str(key))}:{type_of([inner])}' for key, inner in value.items())}>"
        case _:
            return "string"
