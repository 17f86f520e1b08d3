"""The Spark type of a value, where it can be told for certain: some rewritings hold only between values of one type."""

from __future__ import annotations

from collections.abc import Iterable

from planner.meaning.terms import ROW, Part, Ref, Term

_BOOLEAN = "EQ NEQ LT LTE NullSafeEQ and or not in exists Like TRUE FALSE".split()
_FIXED = {
    **dict.fromkeys([*_BOOLEAN, "is null", "in query"], "boolean"),
    **dict.fromkeys(["int", "Year", "Month", "Day", "Length", "Quarter"], "int"),
    **dict.fromkeys(["text", "Hex", "MD5"], "string"),
    **dict.fromkeys(["TsOrDsToDate", "LastDay"], "date"),
}
# Types of which equal values look alike, and which are compared as they are.
PLAIN = frozenset(("string", "boolean", "tinyint", "smallint", "int", "bigint", "date"))
_SPELLED = {"integer": "int", "long": "bigint", "text": "string"}


def type_of(value: Part) -> str | None:
    """The type as Spark writes it, in lower case; None when it is not known."""
    if isinstance(value, Ref):
        return None if value.inner is ROW else value.source.column_type(value.inner)
    if not isinstance(value, Term):
        return None
    if value.op in ("cast", "try cast"):
        return spelled(str(value.parts[1]))
    if value.op == "constant":
        return type_of(value.parts[0])
    if value.op == "aggregate":
        return "bigint" if value.parts[0] == "Count" else None
    return _FIXED.get(value.op)


def are_of_one_type(values: Iterable[Part]) -> bool:
    """True when all are known to be of the same type."""
    types = {type_of(value) for value in values}
    return len(types) == 1 and None not in types


def is_exact(type_: str | None) -> bool:
    """True for a type whose values add up to the same sum in any order."""
    return type_ is not None and (type_ in PLAIN or type_.startswith("decimal"))


def spelled(type_: str) -> str:
    """One spelling for a type."""
    lower = type_.strip().lower()
    return _SPELLED.get(lower, lower)
