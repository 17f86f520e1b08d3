"""Values, blocks and relations: a query as data, free of aliases, CTE names and the order in which things are written.

A relation is a block of rows and, for each output column, a value that every row of the block has. A block multiplies
its sources, appends to each row what its steps find for it, and keeps the rows for which all predicates are true: any
nest of subqueries, CTEs, inner joins and filters becomes one block. What cannot be flattened (an aggregation, a set
operation, LIMIT...) is a source of its own, with a block inside.
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
    """A part of a query whose meaning is not known here: whoever meets it must assume that everything matters."""


@dataclass(frozen=True, eq=False)
class Term:
    """An operation over values; `volatile` when computing it again over the same rows may answer otherwise."""

    op: str
    parts: tuple[Part, ...] = ()
    own_volatile: bool = False

    @cached_property
    def volatile(self) -> bool:
        return self.own_volatile or any(not isinstance(part, str) and part.volatile for part in self.parts)

    @cached_property
    def free(self) -> frozenset[Source]:
        """The sources of enclosing blocks that it speaks of."""
        return NOTHING.union(*(part.free for part in self.parts if not isinstance(part, str)))


ROW = Term("row")  # inside a source: the row itself, whatever its columns


@dataclass(frozen=True, eq=False)
class Ref:
    """A value that a row of a source has: `inner` is a value inside the source, or the name of its column."""

    source: Source
    inner: Part

    @cached_property
    def volatile(self) -> bool:
        return self.inner is not ROW and self.source.column_volatile(self.inner)

    @cached_property
    def free(self) -> frozenset[Source]:
        return frozenset((self.source,)) | self.source.free | self.source.free_of(self.inner)


class Digesting(Protocol):
    """What a source asks of the digests, to say what its rows and values mean (`digests.py`)."""

    def of(self, *texts: str) -> str:
        """One digest of texts."""

    def table_rows(self, name: str) -> str:
        """What a table holds."""

    def table_column(self, name: str, column: str) -> str:
        """A column of a table."""

    def part(self, part: Part, names: Names) -> str:
        """A value, with the names that the sources around it have."""

    def block(self, block: Block, names: Names) -> str:
        """The rows of a block."""

    def inside(self, block: Block, names: Names) -> Names:
        """The names that hold inside a block."""

    def around(self, names: Names) -> Names:
        """Names as they are known one block further in."""


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """One appearance of rows in a block; two appearances of one table are two sources."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """What it is made of."""

    @property
    def bound(self) -> frozenset[Source]:
        """The sources that its parts may speak of and that are its own."""
        return NOTHING

    @property
    def volatile(self) -> bool:
        """True when its rows may be others when it is read again."""
        return any(not isinstance(part, str) and part.volatile for part in self.parts)

    @property
    def is_single(self) -> bool:
        """True when it has one row, whatever the tables hold: to multiply by it changes no number of rows."""
        return False

    @property
    def finds_at_most_one(self) -> bool:
        """True when it never has two rows for one row of the block around it."""
        return False

    def column_volatile(self, inner: Part) -> bool:
        """True when a value of its rows may be another one when it is computed again."""
        return not isinstance(inner, str) and inner.volatile

    def column_type(self, inner: Part) -> str | None:
        """The Spark type of a value of its rows; None when it is not known."""
        return None

    @abstractmethod
    def column_collated(self, inner: Part) -> bool:
        """True when a value of its rows may be a text with a collation of its own."""

    @cached_property
    def free(self) -> frozenset[Source]:
        return NOTHING.union(*(part.free for part in self.parts if not isinstance(part, str))) - self.bound

    def free_of(self, inner: Part) -> frozenset[Source]:
        """What a value inside it reads of the blocks around it, over and above itself."""
        return NOTHING

    @abstractmethod
    def rows(self, digests: Digesting, names: Names) -> str:
        """The digest of what decides its rows."""

    @abstractmethod
    def column(self, digests: Digesting, names: Names, inner: Part) -> str:
        """The digest of a value inside it."""


@dataclass(frozen=True, eq=False)
class LateralJoin:
    """Rows appended to each row of a block, found by looking at that row; `outer`: one of NULLs where none is found."""

    source: Source
    outer: bool = False

    @property
    def is_lookup(self) -> bool:
        """True when each row stays one row."""
        return self.outer and self.source.finds_at_most_one


@dataclass(frozen=True, eq=False)
class Block:
    """The rows of sources multiplied, extended by steps, kept where all `where` are true; no source at all: one row."""

    sources: tuple[Source, ...] = ()
    steps: tuple[LateralJoin, ...] = ()
    where: tuple[Value, ...] = ()

    @cached_property
    def volatile(self) -> bool:
        """True when reading it again may find other rows."""
        return any(source.volatile for source in self.all_sources) or any(value.volatile for value in self.where)

    @cached_property
    def all_sources(self) -> tuple[Source, ...]:
        return (*self.sources, *(step.source for step in self.steps))

    @cached_property
    def free(self) -> frozenset[Source]:
        """What it reads of enclosing blocks."""
        inside = (*self.all_sources, *self.where)
        return NOTHING.union(*(each.free for each in inside)) - frozenset(self.all_sources)

    @cached_property
    def is_plain(self) -> bool:
        """True when its rows are just those of one source."""
        return len(self.sources) == 1 and not self.steps and not self.where

    def kept(self, predicates: Iterable[Value]) -> Block:
        """The block with more predicates."""
        return replace(self, where=(*self.where, *predicates))

    def with_step(self, step: LateralJoin) -> Block:
        return replace(self, steps=(*self.steps, step))

    def times(self, other: Block) -> Block:
        """Each row with each row of the other: steps and predicates speak of their own rows only, so they may wait."""
        return Block(
            self.sources + other.sources,
            self.steps + other.steps,
            self.where + other.where,
        )


@dataclass(frozen=True, eq=False)
class Relation:
    """A query's answer: rows, and by name, in order, the value of each output column."""

    block: Block
    columns: Mapping[str, Value] = field(default_factory=dict)

    @cached_property
    def volatile(self) -> bool:
        return self.block.volatile or any(value.volatile for value in self.columns.values())

    @cached_property
    def free(self) -> frozenset[Source]:
        """What it reads of enclosing blocks."""
        values = NOTHING.union(*(value.free for value in self.columns.values()))
        return (values | self.block.free) - frozenset(self.block.all_sources)
