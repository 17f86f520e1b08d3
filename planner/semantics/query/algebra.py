"""The relational algebra of queries, without aliases, CTE names and the order in which a query is written.

A relation is a block of rows and, for each output column, a value of every row. A block is the product of its sources,
extended by lateral joins and filtered by predicates: nested subqueries, CTEs, inner joins and filters become one block.
An operation that cannot be flattened (an aggregation, a set operation, LIMIT...) is a source with its own block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeAlias, Union

Part: TypeAlias = Union["Term", "Ref", "Block", "Relation", str]
Value: TypeAlias = Union["Term", "Ref"]
Names: TypeAlias = "dict[Source, str]"
NOTHING: frozenset[Source] = frozenset()


class Opaque(Exception):
    """A part of a query that cannot be translated: callers must assume that everything that it reads matters.

    Its text is a noun phrase that a user reads: `a recursive CTE`. `construct` is the innermost expression around it.
    """

    construct: str = ""

    @property
    def obstacle(self) -> str:
        """The construct that cannot be followed: `a subquery inside a lambda (in `x -> ...`)`."""
        return f"{self} (in `{self.construct}`)" if self.construct else str(self)


# Compared by identity: equality of meaning is what `digests` computes, and comparing trees would be exponential.
@dataclass(frozen=True, eq=False)
class Term:
    """An operation over values; `volatile` if it is non-deterministic."""

    op: str
    parts: tuple[Part, ...] = ()
    own_volatile: bool = False

    @cached_property
    def volatile(self) -> bool:
        return self.own_volatile or any(not isinstance(part, str) and part.volatile for part in self.parts)

    @cached_property
    def size(self) -> int:
        """The number of terms when it is written out: one value that is used twice counts twice."""
        return 1 + sum(part.size for part in self.parts if isinstance(part, (Term, Ref, Relation)))

    @cached_property
    def free(self) -> frozenset[Source]:
        """The sources of enclosing blocks that it refers to."""
        return NOTHING.union(*(part.free for part in self.parts if not isinstance(part, str)))


ROW = Term("row")  # inside a source: the row itself, whatever its columns; what COUNT(*) and windows see
# Of an expression that is followed. A column of a subquery is expanded wherever it is used, so that each level may
# double the one below.
TERMS_MAX = 100_000


@dataclass(frozen=True, eq=False)
class Ref:
    """A value of a source's row: `inner` is a value inside the source, or the name of its column."""

    source: Source
    inner: Part

    @cached_property
    def size(self) -> int:
        """The number of terms and references when it is written out."""
        return 1 + (self.inner.size if isinstance(self.inner, (Term, Ref)) else self.source.column_size(self.inner))

    @cached_property
    def volatile(self) -> bool:
        # Which rows there are is the block's volatility; here only the value counts.
        return self.inner is not ROW and self.source.column_volatile(self.inner)

    @cached_property
    def free(self) -> frozenset[Source]:
        return frozenset((self.source,)) | self.source.free | self.source.free_of(self.inner)


class Digesting(Protocol):
    """The digests of `digests.py` that a source needs to compute those of its rows and values."""

    def hash_texts(self, *texts: str) -> str: ...

    def table_rows(self, name: str) -> str: ...

    def table_column(self, name: str, column: str) -> str: ...

    def part(self, part: Part, names: Names) -> str:
        """Return the digest of a value, under the names of the sources around it."""

    def block(self, block: Block, names: Names) -> str: ...

    def inside(self, block: Block, names: Names) -> Names: ...

    def around(self, names: Names) -> Names:
        """Return names as they are known one block further in."""


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """One occurrence of rows in a block; a table that is read twice is two sources."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The parts that it consists of."""

    @property
    def inner_sources(self) -> frozenset[Source]:
        """The sources inside it, which its parts may refer to."""
        return NOTHING

    @property
    def volatile(self) -> bool:
        """True if its rows may differ when it is read again."""
        return any(not isinstance(part, str) and part.volatile for part in self.parts)

    @property
    def is_single(self) -> bool:
        """True if it always has one row, so that a product with it has the same number of rows."""
        return False

    @property
    def finds_at_most_one(self) -> bool:
        """True if it has at most one row for each row of the block around it."""
        return False

    def column_volatile(self, inner: Part) -> bool:
        """Return True if a value of its rows is non-deterministic."""
        return not isinstance(inner, str) and inner.volatile

    def column_size(self, name: Part) -> int:
        """Return the size of a column that has only a name here."""
        return 0

    def column_type(self, inner: Part) -> str | None:
        """Return the Spark type of a value of its rows, or None if it is unknown."""
        return None

    def explicit_column_type(self, name: Part) -> str | None:
        """Return the type that a query gives to a column that has only a name here, or None if it is unknown."""
        return None

    # the values of which a column that has only a name here is made
    def columns_inside(self, name: Part) -> tuple[Value, ...]:
        return ()

    @abstractmethod
    def column_collated(self, inner: Part) -> bool:
        """Return True if a value of its rows may be a string with a collation."""

    # Cached: without it every enclosing block would walk the whole tree below again.
    @cached_property
    def free(self) -> frozenset[Source]:
        return NOTHING.union(*(part.free for part in self.parts if not isinstance(part, str))) - self.inner_sources

    def free_of(self, inner: Part) -> frozenset[Source]:
        """Return the sources of outer blocks that a value inside it refers to, besides the source itself."""
        return NOTHING

    @abstractmethod
    def rows(self, digests: Digesting, names: Names) -> str: ...

    @abstractmethod
    def column(self, digests: Digesting, names: Names, inner: Part) -> str:
        """Return the digest of a value inside it."""


@dataclass(frozen=True, eq=False)
class LateralJoin:
    """Rows that are appended to each row of a block, depending on that row; `outer`: NULLs if there are none."""

    source: Source
    outer: bool = False

    # A lookup changes no number of rows, so that it counts only where its columns are used, and may be dropped
    # elsewhere.
    @property
    def is_lookup(self) -> bool:
        """True if each row stays one row."""
        return self.outer and self.source.finds_at_most_one


@dataclass(frozen=True, eq=False)
class Block:
    """The product of sources, extended by lateral joins, filtered by `where`; without sources: one row."""

    sources: tuple[Source, ...] = ()
    steps: tuple[LateralJoin, ...] = ()
    where: tuple[Value, ...] = ()

    @cached_property
    def volatile(self) -> bool:
        """True if its rows may differ when it is read again."""
        return any(source.volatile for source in self.all_sources) or any(value.volatile for value in self.where)

    @cached_property
    def all_sources(self) -> tuple[Source, ...]:
        return (*self.sources, *(step.source for step in self.steps))

    @cached_property
    def free(self) -> frozenset[Source]:
        """The sources of enclosing blocks that it refers to."""
        inside = (*self.all_sources, *self.where)
        return NOTHING.union(*(part.free for part in inside)) - frozenset(self.all_sources)

    @cached_property
    def is_plain(self) -> bool:
        """True if its rows are exactly those of one source."""
        return len(self.sources) == 1 and not self.steps and not self.where

    def add_predicates(self, predicates: Iterable[Value]) -> Block:
        return replace(self, where=(*self.where, *predicates))

    def add_step(self, step: LateralJoin) -> Block:
        return replace(self, steps=(*self.steps, step))

    def times(self, other: Block) -> Block:
        """Return the product with another block.

        Joins and predicates refer to their own side only, so they may come after it.
        """
        return Block(self.sources + other.sources, self.steps + other.steps, self.where + other.where)


@dataclass(frozen=True, eq=False)
class Relation:
    """The result of a query: rows, and by name, in order, the value of each output column."""

    block: Block
    columns: Mapping[str, Value] = field(default_factory=dict)

    @cached_property
    def size(self) -> int:
        return sum(value.size for value in self.columns.values())

    @cached_property
    def volatile(self) -> bool:
        return self.block.volatile or any(value.volatile for value in self.columns.values())

    @cached_property
    def free(self) -> frozenset[Source]:
        """The sources of enclosing blocks that it refers to."""
        values = NOTHING.union(*(value.free for value in self.columns.values()))
        return (values | self.block.free) - frozenset(self.block.all_sources)
