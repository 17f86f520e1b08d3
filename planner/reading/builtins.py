"""The audits that every project has: what they are called, which arguments they take, which rows they look for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from planner.errors import MergeplanError, Place, ProjectError
from planner.model import Audit, AuditCall
from planner.reading.macros import DATES, spark_tree
from planner.reading.sqltext import did_you_mean

Arguments = Mapping[str, exp.Expr]
NON_BLOCKING = "_non_blocking"


@dataclass(frozen=True)
class BuiltIn:
    """Required and optional arguments, and the query over `@this_model` that finds the bad rows."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    query: Callable[[Arguments], str]


def built_in(name: str) -> BuiltIn | None:
    """The built-in audit of that name, `_non_blocking` or not; None when there is none."""
    return BUILT_IN.get(name.removesuffix(NON_BLOCKING))


def check_call(call: AuditCall, audits: Mapping[str, Audit], place: Place) -> None:
    """ProjectError at `place` when the audit does not exist, or lacks an argument, or is given one it does not take."""
    own, known = audits.get(call.name), built_in(call.name)
    if own is not None:
        taken, needed = parameters(own), parameters(own) - {name for name, _ in own.defaults}
        taken |= {name for name, _ in own.defaults}
    elif known is not None:
        taken, needed = {*known.required, *known.optional}, {*known.required}
    else:
        hint = did_you_mean(call.name, [*audits, *BUILT_IN])
        raise ProjectError(f"There is no audit `{call.name}`.", place=place, hint=hint)
    given = {name for name, _ in call.arguments}
    for name in sorted(given - taken):
        hint = did_you_mean(name, taken) or "It takes none."
        raise ProjectError(f"The audit `{call.name}` takes no argument `{name}`.", place=place, hint=hint)
    for name in sorted(needed - given):
        raise ProjectError(f"The audit `{call.name}` needs the argument `{name}`.", place=place)
    if known is not None and own is None:
        _try(call, known, place)


def parameters(audit: Audit) -> set[str]:
    """The `@names` in an audit's query that are neither dates nor `@this_model`."""
    found = {each.name[1:] for each in spark_tree(audit.sql).find_all(exp.Identifier) if each.name.startswith("@")}
    return found - DATES - {"this_model"}


def built_in_query(call: AuditCall) -> str:
    """The Spark SQL of a built-in audit's call, over `@this_model`; ValueError for an argument of the wrong form."""
    known = built_in(call.name)
    if known is None:
        raise ValueError(f"There is no built-in audit `{call.name}`.")
    return known.query({name: spark_tree(text) for name, text in call.arguments})


def _try(call: AuditCall, known: BuiltIn, place: Place) -> None:
    try:
        built_in_query(call)
    except (ValueError, MergeplanError) as error:
        message = error.message if isinstance(error, MergeplanError) else str(error)
        raise ProjectError(f"The audit `{call.name}`: {message}", place=place) from None


def _list(argument: exp.Expr) -> list[str]:
    """`(a, b)`, `array(a, b)` or `a` as texts."""
    if isinstance(argument, exp.Tuple | exp.Array):
        return [each.sql("spark") for each in argument.expressions]
    return [(argument.this if isinstance(argument, exp.Paren) else argument).sql("spark")]


def _columns(arguments: Arguments, name: str = "columns") -> list[str]:
    found = _list(arguments[name])
    if not found or not all(isinstance(spark_tree(each), exp.Column) for each in found):
        raise ValueError(f"`{name}` must be a column or columns, like `(id, name)`.")
    return found


def _values(arguments: Arguments) -> str:
    return ", ".join(_list(arguments["is_in"]))


def _number(arguments: Arguments, name: str) -> str:
    text = arguments[name].sql("spark")
    if not isinstance(arguments[name], exp.Literal | exp.Neg) or arguments[name].is_string:
        raise ValueError(f"`{name}` must be a number, not `{text}`.")
    return text


def _where(condition: str, arguments: Arguments) -> str:
    """All rows of the model for which the condition holds, among those that `condition := ...` lets in."""
    only = f"({arguments['condition'].sql('spark')}) AND " if "condition" in arguments else ""
    return f"SELECT * FROM @this_model WHERE {only}({condition})"


def _not_null(arguments: Arguments) -> str:
    return _where(" OR ".join(f"{column} IS NULL" for column in _columns(arguments)), arguments)


def _repeated(columns: list[str], arguments: Arguments) -> str:
    """Each combination of values that occurs more than once; NULLs count as equal."""
    listed = ", ".join(columns)
    only = f"WHERE {arguments['condition'].sql('spark')} " if "condition" in arguments else ""
    return f"SELECT {listed}, COUNT(*) AS num_rows FROM @this_model {only}GROUP BY {listed} HAVING COUNT(*) > 1"


def _unique_values(arguments: Arguments) -> str:
    columns = _columns(arguments)
    if len(columns) == 1:
        return _repeated(columns, arguments)
    parts = (
        f"SELECT '{column}' AS column_name, CAST({column} AS STRING) AS text, num_rows FROM ({repeated})"
        for column in columns
        if (repeated := _repeated([column], arguments))
    )
    return " UNION ALL ".join(parts)


def _forall(arguments: Arguments) -> str:
    return _where(" OR ".join(f"NOT ({each})" for each in _list(arguments["criteria"])), arguments)


def _number_of_rows(arguments: Arguments) -> str:
    threshold = _number(arguments, "threshold")
    only = f" WHERE {arguments['condition'].sql('spark')}" if "condition" in arguments else ""
    return f"SELECT COUNT(*) AS num_rows FROM @this_model{only} HAVING COUNT(*) <= {threshold}"


def _accepted_values(arguments: Arguments) -> str:
    return _where(f"NOT ({_columns(arguments, 'column')[0]} IN ({_values(arguments)}))", arguments)


def _not_accepted_values(arguments: Arguments) -> str:
    return _where(f"{_columns(arguments, 'column')[0]} IN ({_values(arguments)})", arguments)


def _accepted_range(arguments: Arguments) -> str:
    column = _columns(arguments, "column")[0]
    strict = "inclusive" in arguments and arguments["inclusive"].sql("spark").lower() == "false"
    low, high = ("<=", ">=") if strict else ("<", ">")
    limits = [
        f"{column} {sign} {arguments[name].sql('spark')}"
        for name, sign in (("min_v", low), ("max_v", high))
        if name in arguments
    ]
    if not limits:
        raise ValueError("`min_v` or `max_v` is needed.")
    return _where(" OR ".join(limits), arguments)


def _not_empty_string(arguments: Arguments) -> str:
    return _where(f"{_columns(arguments, 'column')[0]} = ''", arguments)


def _at_least_one(arguments: Arguments) -> str:
    column = _columns(arguments, "column")[0]
    only = f" WHERE {arguments['condition'].sql('spark')}" if "condition" in arguments else ""
    return f"SELECT COUNT({column}) AS num_values FROM @this_model{only} HAVING COUNT({column}) = 0"


_CONDITION = ("condition",)

BUILT_IN: dict[str, BuiltIn] = {
    "not_null": BuiltIn(("columns",), _CONDITION, _not_null),
    "unique_values": BuiltIn(("columns",), _CONDITION, _unique_values),
    "unique_combination_of_columns": BuiltIn(
        ("columns",), _CONDITION, lambda arguments: _repeated(_columns(arguments), arguments)
    ),
    "accepted_values": BuiltIn(("column", "is_in"), _CONDITION, _accepted_values),
    "not_accepted_values": BuiltIn(("column", "is_in"), _CONDITION, _not_accepted_values),
    "accepted_range": BuiltIn(("column",), ("min_v", "max_v", "inclusive", *_CONDITION), _accepted_range),
    "not_empty_string": BuiltIn(("column",), _CONDITION, _not_empty_string),
    "at_least_one": BuiltIn(("column",), _CONDITION, _at_least_one),
    "forall": BuiltIn(("criteria",), _CONDITION, _forall),
    "number_of_rows": BuiltIn(("threshold",), _CONDITION, _number_of_rows),
}
