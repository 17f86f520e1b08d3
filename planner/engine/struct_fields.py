"""Structs on their way into a table: their fields go by their names, where Spark's casts take them by their place."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import ParseError, exp

from mergeplan.planner.model.model import Column
from mergeplan.planner.naming import field_names, quote_column, quote_fields


def place_fields(query: str, query_columns: Sequence[Column], columns: Sequence[Column], *, ignores: bool) -> str:
    """Return the query with the fields of structs as the table's columns have them, at any depth.

    If the model `ignores` changes, a field that is gone is NULL, and a new one is left out. Otherwise a struct whose
    fields have other names is left to Spark, which casts it by place or refuses it.
    """
    placing = _Placing(ignores)
    types = {column.name.lower(): column.type for column in columns}
    values = {c.name: quote_column(c.name) for c in query_columns}
    placed = {c.name: placing.place(values[c.name], c.type, types.get(c.name.lower(), "")) for c in query_columns}
    if placed == values:
        return query
    outputs = ", ".join(f"{value} AS {values[name]}" for name, value in placed.items())
    return f"SELECT {outputs} FROM (\n{query.rstrip().rstrip(';')}\n)"


@dataclass(frozen=True)
class _Placing:
    ignores: bool

    def place(self, value: str, source: str, target: str) -> str:
        if source == target or "struct<" not in target.lower():
            return value
        source_type, target_type = _read_type(source), _read_type(target)
        return self._convert(value, source_type, target_type, 0) if source_type and target_type else value

    def _convert(self, value: str, source: exp.DataType, target: exp.DataType, depth: int) -> str:
        if source.this != target.this or not source.expressions:
            return value
        if source.this is exp.DType.STRUCT:
            return self._convert_struct(value, source, target, depth)
        if source.this is exp.DType.MAP:
            for name in ("keys", "values"):
                value = self._convert_parts(value, source, target, depth, f"transform_{name}")
            return value
        return self._convert_parts(value, source, target, depth, "transform")

    def _convert_parts(self, value: str, source: exp.DataType, target: exp.DataType, depth: int, function: str) -> str:
        position = 0 if function == "transform_keys" else -1
        inner, inner_target = source.expressions[position], target.expressions[position]
        if not isinstance(inner, exp.DataType) or not isinstance(inner_target, exp.DataType):
            return value
        part = f"key{depth}" if function == "transform_keys" else f"item{depth}"
        placed = self._convert(part, inner, inner_target, depth + 1)
        names = f"item{depth}" if function == "transform" else f"(key{depth}, item{depth})"
        return value if placed == part else f"{function}({value}, {names} -> {placed})"

    def _convert_struct(self, value: str, source: exp.DataType, target: exp.DataType, depth: int) -> str:
        fields, target_fields = _fields_of(source), _fields_of(target)
        is_alike = fields.keys() == target_fields.keys() or (self.ignores and fields.keys() & target_fields.keys())
        if len(fields) < len(source.expressions) or not is_alike:
            return value
        values = {name: f"{value}.{quote_column(name)}" for name in fields}
        placed = {
            name: self._convert(values[name], fields[name], kind, depth) if name in fields else "NULL"
            for name, kind in target_fields.items()
        }
        if list(placed.items()) == list(values.items()):
            return value
        pairs = ", ".join(f"{exp.Literal.string(name).sql('spark')}, {text}" for name, text in placed.items())
        return f"if({value} IS NULL, NULL, named_struct({pairs}))"


def _read_type(text: str) -> exp.DataType | None:
    """Return a type as a tree; None for one of which the parser would lose fields."""
    try:
        built = exp.DataType.build(quote_fields(text), dialect="spark")
    except (ParseError, ValueError):
        return None
    is_whole = len(list(built.find_all(exp.ColumnDef))) == len(field_names(text))
    return built if is_whole else None


def _fields_of(struct: exp.DataType) -> dict[str, exp.DataType]:
    fields = (field for field in struct.expressions if isinstance(field, exp.ColumnDef))
    return {field.name.lower(): field.kind for field in fields if field.kind}
