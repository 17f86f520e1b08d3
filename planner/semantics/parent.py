"""The parts of a table that a query's analysis depends on: only those that the query can mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from mergeplan.planner.semantics.digests import TableDigest
from mergeplan.planner.semantics.query.unique import Keys
from mergeplan.planner.semantics.types import certain_types


@dataclass(frozen=True)
class Parent:
    """The known properties of a table that a query reads; `columns` is None if unknown.

    `volatile` are columns of a view that may differ each time they are read.
    """

    columns: tuple[str, ...] | None
    volatile: frozenset[str] = frozenset()
    volatile_rows: bool = False
    types: tuple[tuple[str, str], ...] = ()  # of the columns with a known type
    keys: Keys = ()  # each identifies a row, by the query of the model
    audited: Keys = ()  # each identifies a row, by the audits of the model
    stated: tuple[str, ...] = ()  # columns whose type comes from its query, not only from a declaration
    is_open: bool = False  # the table may have other columns besides
    is_spelled: bool = False  # an embedded query: a star over it may return names with capitals

    @property
    def certain_types(self) -> dict[str, str]:
        return certain_types(self.types)


def narrow_parents(sql: str, parents: Mapping[str, Parent]) -> dict[str, Parent]:
    """Return the parents with only those columns that a query without stars can mean, or one column if none.

    A name counts as soon as its letters are anywhere in the text, so that no parsing can miss it.
    """
    text = sql.lower()
    return {name: _narrow_parent(text, parent) for name, parent in parents.items()}


def _narrow_parent(text: str, parent: Parent) -> Parent:
    if not parent.columns:
        return parent
    named = {column for column in parent.columns if column in text or _has_spellings(column)} or {parent.columns[0]}
    return replace(
        parent,
        columns=tuple(column for column in parent.columns if column in named),
        volatile=parent.volatile & named,
        types=tuple(pair for pair in parent.types if pair[0] in named),
        stated=tuple(column for column in parent.stated if column in named),
    )


def can_mean(text: str, column: str) -> bool:
    """Return True if a text in lower case may name a column; a name with several spellings always counts."""
    return column in text or _has_spellings(column)


@lru_cache(maxsize=65536)
def _has_spellings(column: str) -> bool:
    return not column.isascii() or "`" in column or column != column.lower()


def narrow_digests(parents: Mapping[str, TableDigest], columns: Callable[[str], frozenset[str] | None]) -> list[str]:
    """Return the digests of parents as texts, in one order, of all columns (None) or those that a query can mean."""
    texts: list[str] = []
    for name in sorted(parents):
        named, table = columns(name), parents[name]
        pairs = [pair for pair in table.columns.items() if named is None or pair[0] in named]
        texts += [name, table.rows, table.order, str(len(pairs)), *(part for pair in pairs for part in pair)]
    return texts
