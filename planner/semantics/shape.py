"""The provable properties of a query: its `Shape`, and the source of the shape.

If nothing can be proved, `known` is False, and callers must assume that every column of every parent matters. A wrong
"it does not read that" would leave wrong rows in prod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from mergeplan.planner.semantics.digests import SORTED, Digests, TableDigest
from mergeplan.planner.semantics.parent import Parent, can_mean, narrow_digests
from mergeplan.planner.semantics.query.algebra import Relation, Term
from mergeplan.planner.semantics.query.stored_algebra import decode_relation, encode_relation
from mergeplan.planner.semantics.query.unique import Keys
from mergeplan.planner.semantics.shape_memory import NO_MEMORY, ShapeMemory


@dataclass(frozen=True)
class Reads:
    """The columns that a query reads of one parent: `rows` in FROM, WHERE and the like; `outputs` for a column."""

    rows: frozenset[str] = frozenset()
    outputs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    every: bool = False  # all of it, or it cannot be determined


@dataclass(frozen=True)
class Shape:
    """A query in canonical form: equal `text`s over the same parents return the same rows.

    `relation` is its algebra, None if its columns cannot be followed. `volatile` are non-deterministic outputs;
    `unresolved` is a column that certainly exists in no parent.
    """

    known: bool
    text: str
    columns: tuple[str, ...] | None
    own: TableDigest | None = None  # for any rows of the tables; None if its columns cannot be followed
    stated: tuple[tuple[str, str], ...] = ()  # of the columns whose type comes from the query itself
    way: tuple[str, ...] = ()  # its written form, which decides the order of a view's rows, and the tables in it
    has_order: bool = False
    frame: Mapping[str, str] = field(default_factory=dict)  # clause -> digest
    volatile: frozenset[str] = frozenset()
    volatile_rows: bool = True
    reads: Mapping[str, Reads] = field(default_factory=dict)
    bounded: Mapping[str, frozenset[str]] = field(default_factory=dict)  # parent -> columns filtered by the interval
    day: tuple[str, str] | None = None  # the parent and its column with a row's day
    types: tuple[tuple[str, str], ...] = ()  # of the columns with a known type
    keys: Keys = ()  # each identifies a row, by the query and its parents
    relies: tuple[tuple[str, Keys], ...] = ()  # the parents' keys that make results deterministic
    unresolved: str | None = None
    named: frozenset[str] = frozenset()  # the columns that its text names, of whatever table
    reads_batch: bool = True  # it has dates of the interval
    whole_days: bool = False  # `volatile` and `by_batch` hold only for intervals of whole days
    by_batch: bool = True  # what it returns for two intervals may differ from what it returns for both as one
    obstacle: str = ""  # the construct because of which there is no `relation`, as a noun phrase
    spelled: str = ""  # the text of an embedded query whose star returns names of another one, in an unknown case
    itself: Reads | None = None  # of its own table, as it was before the batch, where it is followed over that too
    source: Source | None = field(default=None, compare=False, repr=False, metadata={"json": False})

    @property
    def relation(self) -> Relation | None:
        """Its algebra, None if its columns cannot be followed."""
        return self.source.find_relation() if self.own and self.source else None

    def compute_digest(self, parents: Mapping[str, TableDigest]) -> TableDigest:
        source = self.source if self.own else None
        table_digest = source.memory.recall(TableDigest, source.digest_key(parents)) if source else None
        if table_digest is None:
            table_digest = self._relation_digest(parents)
            if table_digest is None:
                # of an untranslated query, any change of its parents is a change
                digests = Digests(parents)
                whole = [
                    part
                    for name in sorted(parents)
                    for part in (name, parents[name].rows, *(x for pair in parents[name].columns.items() for x in pair))
                ] + [part for name in sorted(parents) if (part := parents[name].order)]
                if self.source is None or not self.source.narrowed:  # it may take columns by their place
                    whole += [part for name in sorted(parents) for part in parents[name].placed]
                rows = digests.hash_texts("opaque", self.text, *whole)
                return TableDigest(rows, {name: digests.hash_texts("column of", name) for name in self.columns or ()})
            if source:
                source.memory.remember(source.digest_key(parents), table_digest)
        return table_digest

    def _relation_digest(self, parents: Mapping[str, TableDigest]) -> TableDigest | None:
        """Return the digests by its algebra, or None without one or if the stack is too deep to follow it again."""
        with suppress(RecursionError):
            digests, relation = Digests(parents), self.relation
            if relation is not None:
                closed_digest = close_over_itself(digests.relation(relation), self.itself)
                return replace(closed_digest, order=self._order_text(parents, digests))
        return None

    @property
    def order(self) -> str:
        """The written form that decides the order of its rows, whatever it reads."""
        return self._order_text({}, Digests())

    def _order_text(self, parents: Mapping[str, TableDigest], digests: Digests) -> str:
        if not self.way:
            return ""
        above = [parents[name].order for name in self.way if name in parents]
        is_sorted = self.has_order or any(order.startswith(SORTED) for order in above)
        return f"{SORTED if is_sorted else ''}{digests.part(Term('way', self.way), {})}"


def close_over_itself(held: TableDigest, own: Reads | None) -> TableDigest:
    """Return the digests of a table whose batches read it, by those of one batch over the table before it.

    Rows and columns that are computed from columns of the table are unchanged if these are unchanged too.
    """
    if own is None:
        return held
    digests = Digests()

    def close(digest: str, read: frozenset[str]) -> str:
        made_from = sorted(expand_own_columns(own, read))
        parts = (part for name in made_from for part in (name, held.columns.get(name, "")))
        return digests.hash_texts("over itself", digest, *parts) if read else digest

    columns = {name: close(digest, own.outputs.get(name, frozenset())) for name, digest in held.columns.items()}
    return replace(held, rows=close(held.rows, own.rows), columns=columns)


def expand_own_columns(own: Reads, columns: frozenset[str]) -> frozenset[str]:
    """Return the columns of a model's own table that these are computed from over all batches, including them."""
    names, waiting = set[str](), [*columns]
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += own.outputs.get(name, ())
    return frozenset(names)


@dataclass(frozen=True)
class Source:
    """A shape's query, the parents that it can mean, and the memory; `analyse` returns its algebra, None if opaque."""

    sql: str
    parents: tuple[tuple[str, Parent], ...]
    time_column: str
    narrowed: bool
    memory: ShapeMemory
    analyse: Callable[[], Relation | None] = field(compare=False, repr=False)

    def find_relation(self) -> Relation | None:
        """Return the algebra, remembered or else analysed; None if it cannot be followed."""
        relation = self.memory.recall(Relation, self.memory.key("algebra", *self.key_parts), decode_relation)
        if relation is None and (relation := self.analyse()) is not None:
            self.remember_relation(relation)
        return relation

    def remember_relation(self, relation: Relation) -> None:
        """Store the algebra unless a collation, or its depth, makes that impossible."""
        if self.memory is NO_MEMORY or "collate" in "".join(self.key_parts).lower():
            return
        with suppress(RecursionError):
            self.memory.texts.put(self.memory.key("algebra", *self.key_parts), encode_relation(relation))

    def digest_key(self, parents: Mapping[str, TableDigest]) -> str:
        text = self.sql.lower()

        def named(name: str) -> frozenset[str] | None:
            columns = parents[name].columns
            return frozenset(column for column in columns if can_mean(text, column)) if self.narrowed else None

        return self.memory.key("digest", *self.key_parts, *narrow_digests(parents, named))

    @cached_property
    def key_parts(self) -> tuple[str, ...]:
        # the columns of a set in one order: it differs from process to process
        parent_facts = (
            (name, replace(parent, volatile=frozenset()), sorted(parent.volatile)) for name, parent in self.parents
        )
        return self.sql, self.time_column, repr(tuple(parent_facts))
