"""The checks of a model: audits of its rows, its contract, and the rules of the linter that it ignores."""

from dataclasses import dataclass

from mergeplan.planner.model.property import Facet, declare


@dataclass(frozen=True)
class AuditCall:
    """An audit that a model names, with its arguments as (name, Spark SQL) pairs."""

    name: str
    arguments: tuple[tuple[str, str], ...] = ()
    blocking: bool | None = None  # None: as the audit itself says
    query: str = ""  # of the project's own audit, so that an edit of it is an edit of the model; '' for a built-in


@dataclass(frozen=True)
class Checks:
    audits: tuple[AuditCall, ...] = ()
    contract: bool = declare(False, Facet.METADATA, "the query must return just the columns of `columns`", pinned=True)
    ignored_rules: tuple[str, ...] = ()  # of the linter, in lower case; `all` for all of them
