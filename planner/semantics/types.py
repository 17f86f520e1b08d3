"""The Spark type of a value, where it can be told for certain: some rewritings hold only between values of one type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from planner.semantics.algebra import ROW, Part, Ref, Relation, Term

_BOOLEAN = "EQ NEQ LT LTE NullSafeEQ and or not in exists Like TRUE FALSE".split()
_FIXED = {
    **dict.fromkeys([*_BOOLEAN, "is null", "in query"], "boolean"),
    **dict.fromkeys(["int", "Year", "Month", "Day", "Length", "Quarter"], "int"),
    **dict.fromkeys(["text", "Hex", "MD5"], "string"),
    **dict.fromkeys(["TsOrDsToDate", "LastDay"], "date"),
}
# Types of which equal values look alike, and which are compared as they are.
PLAIN = frozenset(("string", "boolean", "tinyint", "smallint", "int", "bigint", "date"))
_MOMENTS = frozenset(("timestamp", "timestamp_ntz"))
_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint"))  # a text is added up as floating point
COLLATED = "string collate ?"  # stands for a type that is not known but for that
_COLLATION = re.compile(r"collate\s+`?([\w?]+)`?")
_SPELLED = {"integer": "int", "long": "bigint", "text": "string"}


def type_of(value: Part) -> str | None:
    """The type as Spark writes it, in lower case; None when it is not known."""
    if isinstance(value, Ref):
        told = None if value.inner is ROW else value.source.column_type(value.inner)
        return None if told == COLLATED else told
    if not isinstance(value, Term):
        return None
    if value.op in ("cast", "try cast"):
        return spelled(str(value.parts[1]))
    if value.op == "constant":
        return type_of(value.parts[0])
    if value.op == "aggregate":
        return "bigint" if value.parts[0] == "Count" else None
    return _FIXED.get(value.op)


def stated_type(value: Part) -> str | None:
    """The type where the query itself says it, by a cast or the like: nothing rests on what others say of a table."""
    while isinstance(value, Ref) and isinstance(value.inner, (Term, Ref)):
        value = value.inner
    if isinstance(value, Term):
        return stated_type(value.parts[0]) if value.op == "constant" else type_of(value)
    return None


def are_of_one_type(values: Iterable[Part]) -> bool:
    """True when all are known to be of the same type."""
    types = {type_of(value) for value in values}
    return len(types) == 1 and None not in types


def told_type(value: Part) -> str | None:
    """What readers of a column are told of its type: where that is not known, whether it may be collated."""
    return type_of(value) or (COLLATED if is_collated(value) else None)


def is_collation(type_: str | None) -> bool:
    """True for a type of which equal values may look different by their collation."""
    return type_ is not None and any(name != "utf8_binary" for name in _COLLATION.findall(type_.lower()))


@lru_cache(maxsize=8192)
def is_collated(value: Part) -> bool:
    """True for a value that may be a text, or hold one, with a collation of its own: 'a' may equal 'A'."""
    if isinstance(value, Ref):
        return value.inner is not ROW and value.source.column_collated(value.inner)
    if isinstance(value, Relation):
        return any(map(is_collated, value.columns.values()))
    if not isinstance(value, Term):
        return False
    if value.op in ("cast", "try cast"):
        return is_collation(str(value.parts[1]))
    if value.op == "Collate":
        return not any(isinstance(each, str) and each.lower() == "utf8_binary" for each in _texts(value))
    if type_of(value) is not None or value.op in ("exists", "way"):
        return False
    return any(map(is_collated, value.parts[:1] if value.op == "window" else value.parts))


def _texts(value: Term) -> Iterator[Part]:
    for part in value.parts:
        yield from _texts(part) if isinstance(part, Term) and part.op == "text" else [part]


def is_exact(type_: str | None) -> bool:
    """True for a type whose values add up to the same sum in any order."""
    return type_ is not None and (type_ in _WHOLE or type_.startswith("decimal"))


def is_of_alike(type_: str | None) -> bool:
    """True for a type of which equal values look alike, so that a sorted list of them is one list."""
    return type_ is not None and (type_ in PLAIN or type_ in _MOMENTS or type_.startswith("decimal"))


def spelled(type_: str) -> str:
    """One spelling for a type."""
    lower = type_.strip().lower()
    return _SPELLED.get(lower, lower)
