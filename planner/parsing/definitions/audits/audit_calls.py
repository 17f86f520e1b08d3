"""Check the calls of audits and bind each to its audit, so that only names and dates are left to splice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from sqlglot import exp

from mergeplan.planner.errors import Located, MergeplanError, ProjectError
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.model import Audit
from mergeplan.planner.parsing.definitions.audits.builtin_audits import ALIASES, BUILT_IN
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.macros.splicing import splice_names
from mergeplan.planner.parsing.sql.macro_scope import DATES
from mergeplan.planner.parsing.sql.names import table_key
from mergeplan.planner.parsing.sql.tokens import did_you_mean

NON_BLOCKING = "_non_blocking"


@dataclass(frozen=True)
class BoundAudit:
    """A call of an audit with its arguments in the query, over `@this_model`."""

    sql: str  # Spark SQL
    text: str = ""  # the query as it runs: see Model
    arguments: Mapping[str, exp.Expr] = field(default_factory=dict)  # their values, which may contain dates
    figures: tuple[str, ...] = ()  # the columns that reveal no single row
    is_own: bool = False  # an audit of the project

    @property
    def tables(self) -> frozenset[str]:
        names = (table_key(table).lower() for table in spark_tree(self.sql).find_all(exp.Table))
        return frozenset(filter(None, names))


def bind_standalone(audit: Audit) -> BoundAudit:
    return BoundAudit(audit.sql, audit.text, {name: spark_tree(text) for name, text in audit.defaults})


def _builtin_name(name: str) -> str:
    short = name.removesuffix(NON_BLOCKING)
    return ALIASES.get(short, short)


def is_blocking(call: AuditCall, audits: Mapping[str, Audit]) -> bool:
    """Return the call's own setting, else the audit's; a built-in blocks unless its name ends in `_non_blocking`."""
    if call.blocking is not None:
        return call.blocking
    audit = audits.get(call.name)
    return audit.blocking if audit else not call.name.endswith(NON_BLOCKING)


def bind_call(call: AuditCall, audits: Mapping[str, Audit], place: Located) -> BoundAudit:
    """Return the call bound to its audit; raise ProjectError as `check_call` does."""
    check_call(call, audits, place)
    return _bind_arguments(call, audits.get(call.name))


def check_call(call: AuditCall, audits: Mapping[str, Audit], place: Located) -> None:
    """Raise ProjectError at a call of an unknown audit, with wrong arguments, or that yields no query."""
    if wrong := _find_call_error(call, audits):
        raise ProjectError(wrong[0], place=place, hint=wrong[1])


def _find_call_error(call: AuditCall, audits: Mapping[str, Audit]) -> tuple[str, str] | None:
    project_audit, builtin = audits.get(call.name), BUILT_IN.get(_builtin_name(call.name))
    if project_audit is not None:
        if project_audit.standalone:
            return f"The audit `{call.name}` is a standalone audit.", "Remove it from `audits`: it runs on its own."
        taken = parameters(project_audit)
        needed = parameters(project_audit) - {name for name, _ in project_audit.defaults}
        taken |= {name for name, _ in project_audit.defaults}
    elif builtin is not None:
        taken, needed = {*builtin.required, *builtin.optional}, {*builtin.required}
    else:
        return f"There is no audit `{call.name}`.", did_you_mean(call.name, [*audits, *BUILT_IN], most=12)
    arguments = {name for name, _ in call.arguments}
    for name in sorted(arguments - taken):
        hint = did_you_mean(name, taken) or "It takes none."
        return f"The audit `{call.name}` takes no argument `{name}`.", hint
    for name in sorted(needed - arguments):
        return f"The audit `{call.name}` needs the argument `{name}`.", ""
    if message := _binding_error(call, project_audit):
        hint = "Give it like `column := id` or `source := shop.items`." if project_audit else ""
        return f"The audit `{call.name}`: {message}", hint
    return None


def parameters(audit: Audit) -> set[str]:
    """Return the `@names` in an audit's query that are neither dates nor `@this_model`."""
    identifiers = spark_tree(audit.sql).find_all(exp.Identifier)
    names = {identifier.name[1:] for identifier in identifiers if identifier.name.startswith("@")}
    return names - DATES - {"this_model"}


@lru_cache(maxsize=4096)
def _bind_arguments(call: AuditCall, own: Audit | None) -> BoundAudit:
    """Return the call with its arguments, cached for the many models that use it; raise ValueError for a wrong form."""
    trees = {name: spark_tree(text) for name, text in call.arguments}
    if own is None:
        builtin = BUILT_IN[_builtin_name(call.name)]
        return BoundAudit(builtin.query(trees), arguments=trees, figures=builtin.figures)
    arguments = {**{name: spark_tree(text) for name, text in own.defaults}, **trees}
    text = splice_names(own.text, arguments) if own.text else ""
    return BoundAudit(splice_names(own.sql, arguments), text, arguments, is_own=True)


@lru_cache(maxsize=4096)
def _binding_error(call: AuditCall, own: Audit | None) -> str:
    try:
        _bind_arguments(call, own)
    except (ValueError, MergeplanError) as error:
        return error.message if isinstance(error, MergeplanError) else str(error)
    return ""
