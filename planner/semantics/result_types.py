"""The Spark type of what an operation returns, where the types of its operands decide it in every version and under
every setting. Of decimals that is only known where one is picked, summed or averaged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from mergeplan.planner.semantics.query.algebra import Part, Relation, Term

TypeOf = Callable[[Part], str | None]
WHOLE = ("tinyint", "smallint", "int", "bigint")  # from the narrowest to the widest
# Types whose equal values are identical, and which are compared without a cast.
PLAIN = frozenset(("string", "boolean", "date", *WHOLE))
_MOMENTS = frozenset(("timestamp", "timestamp_ntz"))
_FLOATS = frozenset(("float", "double"))
_NUMBERS = frozenset((*WHOLE, *_FLOATS))
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_WIDEST = 38  # digits of a decimal
_ALWAYS = {
    **dict.fromkeys(("RowNumber", "Rank", "DenseRank", "Ntile"), "int"),
    **dict.fromkeys(("CumeDist", "PercentRank"), "double"),
    **dict.fromkeys(("Count", "CountIf", "ApproxDistinct"), "bigint"),
}
_PICKS = frozenset("Max Min First Last FirstValue LastValue NthValue AnyValue ArgMax ArgMin Lag Lead".split())
_OF_STRINGS = frozenset("Upper Lower Trim Substring Replace Left Right Initcap RegexpReplace Pad SplitPart".split())
_OF_ALL = frozenset(("Coalesce", "Greatest", "Least"))
_ARITHMETIC = frozenset(("Add", "Sub", "Mul", "Mod"))


def is_of_alike(type_: str | None) -> bool:
    """True for a type of which equal values look alike, so that a sorted list of them is one list."""
    return type_ is not None and (type_ in PLAIN or type_ in _MOMENTS or type_.startswith("decimal"))


def is_null(value: Part) -> bool:
    """True for the literal NULL, which is of any type."""
    return isinstance(value, Term) and value.op == "NULL"


def common_type(types: Iterable[str | None]) -> str | None:
    """The type to which Spark brings values of several types that become one column; None where it is not certain.

    Of others than these Spark merges more than their names, or decides by its settings.
    """
    different = set(types)
    if len(different) == 1:
        (type_,) = different
        return type_ if is_of_alike(type_) or type_ in _FLOATS else None
    if different and different <= {*WHOLE}:
        return max((type_ for type_ in different if type_), key=WHOLE.index)
    return "double" if "double" in different and different <= {*WHOLE, "double"} else None


def result_type(term: Term, type_of: TypeOf) -> str | None:
    """The type of an operation's result, by the types of its operands."""
    if term.op == "case":
        return _common([*term.parts[1:-1:2], term.parts[-1]], type_of)
    if term.op in ("aggregate", "window function") and term.parts:
        return _function_type(str(term.parts[0]), arguments(term.parts[1:]), type_of)
    if term.op in ("window", "filter", "IgnoreNulls", "RespectNulls"):
        return type_of(next(part for part in term.parts if not isinstance(part, str)))
    if term.op == "scalar":
        (relation,) = term.parts
        columns = [*relation.columns.values()] if isinstance(relation, Relation) else []
        return type_of(columns[0]) if len(columns) == 1 else None
    if term.op in ("DateDiff", "TimestampDiff"):
        return "bigint" if "unit" in term.parts else "int"
    values = [part for part in term.parts if not isinstance(part, str)]
    if term.op in _OF_ALL:
        return _common(values, type_of)
    if term.op == "Div":
        return "double" if values and {type_of(value) for value in values} <= _NUMBERS else None
    if term.op in _ARITHMETIC or term.op in ("Neg", "Abs"):
        type_ = common_type(map(type_of, values)) if values else None
        return type_ if type_ in _NUMBERS else None
    if term.op in _OF_STRINGS:
        return "string" if _is_of_string(term, type_of) else None
    return None


def arguments(parts: Iterable[Part]) -> Mapping[str, list[Part]]:
    """The arguments of a function by name, from the parts of its term."""
    named: dict[str, list[Part]] = {}
    name = ""
    for part in parts:
        if name:
            named[name] += [part] if part != "end" else []
            name = name if part != "end" else ""
        elif isinstance(part, str):
            name = part
            named[name] = []
        else:
            break  # what follows the arguments
    return named


def _function_type(name: str, named: Mapping[str, list[Part]], type_of: TypeOf) -> str | None:
    """The type of an aggregate, or of a function of a window."""
    if name in _ALWAYS:
        return _ALWAYS[name]
    picked = named.get("this") or [""]
    type_ = type_of(picked[0])
    if name in _PICKS:
        is_plain = type_ in _FLOATS or is_of_alike(type_)
        return type_ if is_plain and not named.keys() & {"default", "expressions"} else None
    if name in ("Sum", "Avg") and set(named) == {"this"}:
        return _sum_type(type_) if name == "Sum" else _average_type(type_)
    return None


def _sum_type(type_: str | None) -> str | None:
    if match := _DECIMAL.fullmatch(type_ or ""):
        return f"decimal({min(int(match[1]) + 10, _WIDEST)}, {match[2]})"
    return "bigint" if type_ in WHOLE else "double" if type_ in _FLOATS else None


def _average_type(type_: str | None) -> str | None:
    if match := _DECIMAL.fullmatch(type_ or ""):
        return f"decimal({min(int(match[1]) + 4, _WIDEST)}, {min(int(match[2]) + 4, _WIDEST)})"
    return "double" if type_ in _NUMBERS else None


def _common(values: Iterable[Part], type_of: TypeOf) -> str | None:
    return common_type({type_of(value) for value in values if not is_null(value)})


def _is_of_string(term: Term, type_of: TypeOf) -> bool:
    """True for a function of a string, which for other types would return other ones, beside values of no collation."""
    this = arguments(term.parts).get("this") or [""]
    types = [type_of(part) for part in term.parts if not isinstance(part, str)]
    return type_of(this[0]) == "string" and all(type_ in _FLOATS or is_of_alike(type_) for type_ in types)
