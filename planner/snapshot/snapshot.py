"""Snapshots: a model at a fingerprint, and the version that names its physical table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import cast

from mergeplan.planner.fingerprint import Fingerprint, digest
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import Facet
from mergeplan.planner.model.table_order import is_in_query_order, order_columns
from mergeplan.planner.naming import DEFAULT, Naming, partition_text
from mergeplan.planner.semantics.audited_keys import Keys, keys_from_audits
from mergeplan.planner.semantics.columns import names_with_capitals
from mergeplan.planner.semantics.digests import TableDigest
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.types import certain_types

UNCUT = ("clustered", "format", "", "True")  # a table without partitions and the like, of which versions say nothing
PREVIEW = "preview_"  # how the version of a table begins that holds some days only, and is never promoted


@dataclass(frozen=True)
class Meaning:
    """The rows of a model as digests: of the rows, and by column, in order, of the values in them.

    Two tables of equal `rows` hold equal values in each column of equal digest, row by row. `volatile` columns (and
    rows) are those that may come out different when they are computed again.
    """

    rows: str
    columns: tuple[tuple[str, str], ...]
    volatile: frozenset[str] = frozenset()
    volatile_rows: bool = False
    types: tuple[tuple[str, str], ...] = ()  # of the columns of which the type is known
    held_rows: str = ""  # what a table holds instead, of which a forward-only change kept the rows; '' for any other
    held: tuple[tuple[str, str], ...] = ()
    order: str = ""  # of the rows of a view, as far as its text says; a table's rows have none
    keys: Keys = ()  # no two rows agree in all the columns of one, by the query
    relies: tuple[tuple[str, Keys], ...] = ()  # of what it reads, by which it may be that nothing is chance
    is_spelled: bool = False  # an embedded query whose star returns names of another one, maybe with capitals
    # Each says that its rows are others than those which the rules take for the same: what it replaced, and a name.
    marks: tuple[tuple[str, ...], ...] = ()

    @property
    def table_digest(self) -> TableDigest:
        """The meaning by the rules, whatever its marks say."""
        return TableDigest(self.rows, dict(self.columns), self.order)

    @property
    def marked_rows(self) -> str:
        return reduce(lambda rows, mark: digest(rows, *mark[1:])[:24], self.marks, self.rows)


ReadMeaning = Callable[[], Meaning | None]


class _Deferred:
    """A field whose value may be given as a function, which is called when the field is first read."""

    def __get__(self, snapshot: Snapshot | None, owner: type[Snapshot]) -> Meaning | None:
        if snapshot is None:
            return None  # the default
        value: Meaning | ReadMeaning | None = snapshot.__dict__["_meaning"]
        if callable(value):
            value = snapshot.__dict__["_meaning"] = value()
        return value

    def __set__(self, snapshot: Snapshot, value: Meaning | ReadMeaning | None) -> None:
        snapshot.__dict__["_meaning"] = value


DEFERRED = cast("Meaning | None", _Deferred())


@dataclass(frozen=True)
class Snapshot:
    """A model as it was when it was planned; `columns` are its output columns' names, None if they are unknown.

    `forced` says that an override or a comparison, not a rule, let it keep an earlier version's table. `stored` is its
    table's name if the project did not use default names when it was made: the table keeps that name.
    """

    model: Model
    fingerprint: Fingerprint
    version: str
    columns: tuple[str, ...] | None
    forced: bool = False
    meaning: Meaning | None = DEFERRED  # most stored meanings are never read
    stored: str = ""

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def kind(self) -> Kind:
        return self.model.kind

    @property
    def marks(self) -> tuple[tuple[str, ...], ...]:
        return self.meaning.marks if self.meaning else ()

    @property
    def is_mixed(self) -> bool:
        """True if a forward-only change kept rows in its table that its query would not return."""
        return bool(self.meaning and self.meaning.held_rows)

    @property
    def is_preview(self) -> bool:
        """True if its table shows what a forward-only change will do, on some days only."""
        return self.version.startswith(PREVIEW)

    @cached_property
    def table(self) -> str:
        """The name under which its rows are stored: an external model is its own table."""
        if self.kind.is_external:
            return self.name
        return self.stored or DEFAULT.table(self.name, self.version)

    @cached_property
    def visible_digest(self) -> TableDigest:
        """The digest that its readers see.

        Non-deterministic values stay the same in a stored table, and differ in the next one.
        """
        if self.meaning is None:
            return TableDigest(f"unknown {self.version}", {})
        if self.meaning.held_rows:
            return self._place_columns(TableDigest(self.meaning.held_rows, dict(self.meaning.held)))
        if not self.kind.is_stored:
            return replace(self.meaning.table_digest, rows=self.meaning.marked_rows)
        meaning = self.meaning
        if self.forced:  # its rows are its own, whatever its query means
            meaning = replace(meaning, volatile=frozenset(dict(meaning.columns)), volatile_rows=True)
        return self._place_columns(table_digest_at(meaning, self.version))

    def _place_columns(self, held: TableDigest) -> TableDigest:
        placed = order_columns(self.model, held.columns, self._column_types)
        return held if placed == held.names else replace(held, placed=placed)

    @property
    def _column_types(self) -> Mapping[str, str]:
        if is_in_query_order(self.model):  # as most tables are: their meanings are not decoded for this
            return {}
        return certain_types(self.meaning.types if self.meaning else ())

    @cached_property
    def table_columns(self) -> tuple[str, ...] | None:
        """Its columns in the order of its table, in which a reader's `*` has them; None if they are unknown."""
        if self.columns is None or is_in_query_order(self.model):
            return self.columns  # the types are read from a text
        return order_columns(self.model, self.columns, self._column_types)

    @cached_property
    def is_reordered(self) -> bool:
        """True if its table has its columns in another order than its query."""
        return self.table_columns != self.columns

    @cached_property
    def raw(self) -> TableDigest:
        """The meaning of its query, whatever its non-deterministic parts return."""
        return self.meaning.table_digest if self.meaning else self.visible_digest

    @cached_property
    def as_parent(self) -> Parent:
        """The facts that a query which reads it needs."""
        if self.meaning is None:
            return Parent(self.table_columns)
        keeps_rows = self.is_mixed or self.forced  # its table holds rows that are not those of its query
        keys, audited = ((), ()) if keeps_rows else (self.meaning.keys, keys_from_audits(self.model))
        if self.kind.is_stored or self.kind.is_external:
            types = self.meaning.types
            return Parent(self.table_columns, types=types, keys=keys, audited=audited, is_open=self.model.open_columns)
        chance = self.meaning.volatile, self.meaning.volatile_rows
        is_spelled = self.meaning.is_spelled or (self.kind.is_embedded and bool(names_with_capitals(self.model.sql)))
        return Parent(self.table_columns, *chance, self.meaning.types, keys, audited, is_spelled=is_spelled)

    @cached_property
    def seen(self) -> str:
        """A digest of all that a query which reads it can tell of it."""
        parent, visible = self.as_parent, self.visible_digest
        # the columns of a set in one order: it differs from process to process
        plain = replace(parent, volatile=frozenset()) if parent.volatile else parent
        parent_texts = repr(plain), repr(sorted(parent.volatile))
        return digest(
            *parent_texts, visible.rows, visible.order, *(part for pair in visible.columns.items() for part in pair)
        )


def table_digest_at(meaning: Meaning, version: str) -> TableDigest:
    rows = digest(meaning.marked_rows, version)[:24] if meaning.volatile_rows else meaning.marked_rows
    columns = {
        name: digest(column_digest, version)[:24] if name in meaning.volatile else column_digest
        for name, column_digest in meaning.columns
    }
    return TableDigest(rows, columns)


def assign_version(snapshot: Snapshot, version: str, naming: Naming = DEFAULT) -> Snapshot:
    table = naming.table(snapshot.name, version)
    has_own_name = snapshot.kind.has_view and table != DEFAULT.table(snapshot.name, version)
    return replace(snapshot, version=version, stored=table if has_own_name else "")


def version_of(model: Model, meaning: Meaning, parents: dict[str, str]) -> str:
    """Return the version of a rebuilt model: a hash of the meaning of its rows, and of the tables that a view names.

    Two builds with equal versions hold equal rows, so that a table built in one environment serves in another.
    """
    columns = (part for pair in meaning.columns for part in pair)
    named = (f"{name}={version}" for name, version in sorted(parents.items()))
    partitions = tuple(map(partition_text, model.storage.partitioned_by))
    cut = (*partitions, "clustered", *model.storage.clustered_by, "format", model.storage.table_format)
    cut = (*cut, str(model.by_time.partition_by_time_column))
    layout = [model.storage.storage_format, *(part for pair in model.storage.physical_properties for part in pair)]
    layout += ["by", *cut] if cut != UNCUT else []
    layout += model.encode_properties(Facet.LAYOUT).values()
    if model.kind.is_view:  # a view's columns are commented when it is made, and never again
        layout += [part for pair in model.metadata.column_descriptions for part in pair]
    order = ["in order", meaning.order] if meaning.order else []
    return digest(
        model.name, str(model.kind), meaning.marked_rows, *columns, *order, "over", *named, "laid out", *layout
    )[:12]
