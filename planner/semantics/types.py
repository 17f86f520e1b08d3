"""The Spark type of a value, if it is certain: some rewritings hold only between values of one type."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from mergeplan.planner.semantics.query.algebra import ROW, Part, Ref, Relation, Term
from mergeplan.planner.semantics.result_types import FIXED, WHOLE, result_type

COLLATED = "string collate ?"  # an unknown type that may have a collation
PADDED = "char(?)"  # an unknown type with a CHAR in it
UNKNOWN = (COLLATED, PADDED)
_COLLATION = re.compile(r"collate\s+`?([\w?]+)`?")
_SPELLED = {"integer": "int", "long": "bigint", "text": "string"}


def type_of(value: Part) -> str | None:
    """Return the type as Spark writes it, in lower case, or None if it is unknown."""
    if isinstance(value, Ref):
        column_type = None if value.inner is ROW else value.source.column_type(value.inner)
        return None if column_type in UNKNOWN else column_type
    if not isinstance(value, Term):
        return None
    if value.op in ("cast", "try cast"):
        return normalize_type(str(value.parts[1]))
    if value.op == "constant":
        return type_of(value.parts[0])
    if value.op == "concat":
        return "string" if _is_string(value) else None
    if value.op == "ConcatWs":
        return None if any(map(is_collated, value.parts)) else "string"
    return FIXED.get(value.op) or _result_type(value)


@lru_cache(maxsize=8192)
def _result_type(operation: Term) -> str | None:
    """Return the type of an operation over values whose type comes from the query: a computed type is certain."""
    return result_type(operation, explicit_type)


@lru_cache(maxsize=8192)
def _is_string(concatenation: Term) -> bool:
    """Return True for a concatenation with a string of the query, which makes it one, and without collations."""
    strings = any(explicit_type(part) == "string" for part in concatenation.parts)
    return strings and not any(map(is_collated, concatenation.parts))


def explicit_type(value: Part) -> str | None:
    """Return the type that the query itself, not a table's declaration, gives a value by a cast, or None."""
    while isinstance(value, Ref) and isinstance(value.inner, (Term, Ref)):
        value = value.inner
    if isinstance(value, Ref):
        return value.source.explicit_column_type(value.inner)
    if isinstance(value, Term):
        return explicit_type(value.parts[0]) if value.op == "constant" else type_of(value)
    return None


def are_of_one_type(values: Iterable[Part]) -> bool:
    types = {type_of(value) for value in values}
    return len(types) == 1 and None not in types


def reader_type(value: Part) -> str | None:
    """Return the type of a column for its readers or, if unknown, whether it may have a collation or a CHAR."""
    return type_of(value) or (COLLATED if is_collated(value) else PADDED if is_padded(value, unknown=False) else None)


def certain_types(types: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the types of columns, without unknown ones that may have a collation or a CHAR."""
    return {name: type_ for name, type_ in types if type_ not in UNKNOWN}


def is_collation(type_: str | None) -> bool:
    """Return True for a type with a collation under which equal strings may look different."""
    return type_ is not None and any(name != "utf8_binary" for name in _COLLATION.findall(type_.lower()))


@lru_cache(maxsize=8192)
def is_collated(value: Part) -> bool:
    """Return True for a value that may be, or contain, a string with a collation, for which 'a' may equal 'A'."""
    if isinstance(value, Ref):
        return value.inner is not ROW and value.source.column_collated(value.inner)
    if isinstance(value, Relation):
        return any(map(is_collated, value.columns.values()))
    if not isinstance(value, Term):
        return False
    if value.op in ("cast", "try cast"):
        return is_collation(str(value.parts[1]))
    if value.op == "Collate":
        return not any(isinstance(text, str) and text.lower() == "utf8_binary" for text in _flatten_texts(value))
    # a known type has no collation; comparisons and written forms return no string of their operands
    if type_of(value) is not None or value.op in ("exists", "way"):
        return False
    return any(map(is_collated, value.parts[:1] if value.op == "window" else value.parts))


@lru_cache(maxsize=8192)
def is_padded(value: Part, *, unknown: bool = True) -> bool:
    """Return True for a column of type CHAR, beside which only some comparisons add spaces to the other text.

    A column of an unknown type may be one; `unknown` is what counts for it.
    """
    if isinstance(value, Term):
        # a field of STRUCT(c) is a CHAR as `c` is one, wherever it is taken out
        carries = value.op in ("field", "Struct") or value.op.startswith("generator ")
        return carries and any(map(_holds_char, value.parts))
    if not isinstance(value, Ref) or value.inner is ROW:
        return False
    if not isinstance(value.inner, str):
        return is_padded(value.inner, unknown=unknown)
    column_type, inside = value.source.column_type(value.inner), value.source.columns_inside(value.inner)
    if column_type in (None, COLLATED) and not inside:
        return unknown
    return (column_type or "").startswith("char(") or any(is_padded(part, unknown=unknown) for part in inside)


@lru_cache(maxsize=8192)
def _holds_char(part: Part) -> bool:
    if isinstance(part, (Term, Relation)):
        return any(map(_holds_char, part.parts if isinstance(part, Term) else part.columns.values()))
    return isinstance(part, Ref) and is_padded(part, unknown=False)


def _flatten_texts(value: Term) -> Iterator[Part]:
    for part in value.parts:
        yield from _flatten_texts(part) if isinstance(part, Term) and part.op == "text" else [part]


def is_exact(type_: str | None) -> bool:
    """Return True for a type whose sums do not depend on the order of addition."""
    return type_ is not None and (type_ in WHOLE or type_.startswith("decimal"))


def normalize_type(type_: str) -> str:
    lower = type_.strip().lower()
    return _SPELLED.get(lower, lower)
