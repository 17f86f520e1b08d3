"""Calls of audits: checks the name and the arguments, and builds the query of a built-in audit."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import lru_cache

from sqlglot import exp

from mergeplan.planner.errors import MergeplanError, Place, ProjectError
from mergeplan.planner.model.model import Audit, AuditCall
from mergeplan.planner.parsing.definitions.audits.builtin_audits import ALIASES, BUILT_IN, BuiltIn
from mergeplan.planner.parsing.macros.expand import DATES, spark_tree
from mergeplan.planner.parsing.macros.splicing import splice_names
from mergeplan.planner.parsing.sql.tokens import did_you_mean

NON_BLOCKING = "_non_blocking"


def find_builtin(name: str) -> BuiltIn | None:
    """The built-in audit of that name, `_non_blocking` or not; None when there is none."""
    short = name.removesuffix(NON_BLOCKING)
    return BUILT_IN.get(ALIASES.get(short, short))


def check_call(
    call: AuditCall, audits: Mapping[str, Audit], place: Callable[[], Place], tried: Container[AuditCall] = ()
) -> None:
    """ProjectError at the place when the audit does not exist, or lacks an argument, or is given one it does not take.

    The place is looked for only then. Calls of built-in audits that were `tried` before make a query.
    """
    if wrong := _wrong(call, audits, tried):
        raise ProjectError(wrong[0], place=place(), hint=wrong[1])


def _wrong(call: AuditCall, audits: Mapping[str, Audit], tried: Container[AuditCall]) -> tuple[str, str] | None:
    """What is wrong with a call, and a hint; None when it is right."""
    own, known = audits.get(call.name), find_builtin(call.name)
    if own is not None:
        if own.standalone:
            return f"The audit `{call.name}` is a standalone audit.", "Remove it from `audits`: it runs on its own."
        taken, needed = parameters(own), parameters(own) - {name for name, _ in own.defaults}
        taken |= {name for name, _ in own.defaults}
    elif known is not None:
        taken, needed = {*known.required, *known.optional}, {*known.required}
    else:
        return f"There is no audit `{call.name}`.", did_you_mean(call.name, [*audits, *BUILT_IN], most=12)
    arguments = {name for name, _ in call.arguments}
    for name in sorted(arguments - taken):
        hint = did_you_mean(name, taken) or "It takes none."
        return f"The audit `{call.name}` takes no argument `{name}`.", hint
    for name in sorted(needed - arguments):
        return f"The audit `{call.name}` needs the argument `{name}`.", ""
    if own is not None and (message := _not_a_name(own.sql, (*own.defaults, *call.arguments))):
        return f"The audit `{call.name}`: {message}", "Give it like `column := id` or `source := shop.items`."
    if known is not None and own is None and call not in tried and (message := _refusal(call)):
        return f"The audit `{call.name}`: {message}", ""
    return None


def parameters(audit: Audit) -> set[str]:
    """The `@names` in an audit's query that are neither dates nor `@this_model`."""
    names = {
        identifier.name[1:]
        for identifier in spark_tree(audit.sql).find_all(exp.Identifier)
        if identifier.name.startswith("@")
    }
    return names - DATES - {"this_model"}


def builtin_query(call: AuditCall) -> str:
    """The Spark SQL of a built-in audit's call, over `@this_model`; ValueError for an argument of the wrong form."""
    known = find_builtin(call.name)
    if known is None:
        raise ValueError(f"There is no built-in audit `{call.name}`.")
    return known.query({name: spark_tree(text) for name, text in call.arguments})


@lru_cache(maxsize=4096)
def _not_a_name(sql: str, arguments: tuple[tuple[str, str], ...]) -> str:
    """Why an argument cannot stand where a name is wanted; '' when each can."""
    try:
        splice_names(sql, {name: spark_tree(text) for name, text in arguments})
    except ValueError as error:
        return str(error)
    return ""


@lru_cache(maxsize=4096)
def _refusal(call: AuditCall) -> str:
    """Why no query can be made of a built-in audit's call; '' when one can. Many models call one audit alike."""
    try:
        builtin_query(call)
    except (ValueError, MergeplanError) as error:
        return error.message if isinstance(error, MergeplanError) else str(error)
    return ""
