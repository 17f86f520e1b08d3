"""The sources of a block's rows: tables, and the parts of a query that cannot be flattened into one block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from mergeplan.planner.semantics import types as value_types
from mergeplan.planner.semantics.query.algebra import (
    NOTHING,
    ROW,
    Block,
    Digesting,
    Names,
    Part,
    Ref,
    Relation,
    Source,
    Term,
    Value,
)
from mergeplan.planner.semantics.query.row_order import RowProvenance
from mergeplan.planner.semantics.result_types import common_type, is_null


@dataclass(frozen=True, eq=False)
class TableSource(Source):
    """A table that a query names; the digests know its rows and columns."""

    name: str
    volatile_columns: frozenset[str] = frozenset()
    volatile_rows: bool = False
    types: tuple[tuple[str, str], ...] = ()  # of the columns of which the type is known
    keys: tuple[tuple[str, ...], ...] = ()  # no two rows agree in all the columns of one, by the query that made it
    audited: tuple[tuple[str, ...], ...] = ()  # the same, enforced by audits
    stated: tuple[str, ...] = ()  # columns whose type the query that made it gives them

    @property
    def parts(self) -> tuple[Part, ...]:
        return ()

    @property
    def volatile(self) -> bool:
        return self.volatile_rows

    def column_volatile(self, inner: Part) -> bool:
        return inner in self.volatile_columns

    def column_type(self, inner: Part) -> str | None:
        return dict(self.types).get(str(inner))

    def explicit_column_type(self, name: Part) -> str | None:
        column_type = self.column_type(name) if name in self.stated else None
        return value_types.normalize_type(column_type) if column_type else None

    def column_collated(self, inner: Part) -> bool:
        return value_types.is_collation(self.column_type(inner))

    def rows(self, digests: Digesting, names: Names) -> str:
        return digests.table_rows(self.name)

    def column(self, digests: Digesting, names: Names, inner: Part) -> str:
        assert isinstance(inner, str)
        return digests.table_column(self.name, inner)


@dataclass(frozen=True, eq=False)
class _Over(Source):
    """A source that contains a block; the values inside it are values of that block."""

    block: Block

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.block,)

    def column_collated(self, inner: Part) -> bool:
        return value_types.is_collated(inner)

    @property
    def inner_sources(self) -> frozenset[Source]:
        return frozenset(self.block.all_sources)

    def column_type(self, inner: Part) -> str | None:
        return value_types.type_of(inner)

    def column(self, digests: Digesting, names: Names, inner: Part) -> str:
        return digests.part(inner, digests.inside(self.block, names))


@dataclass(frozen=True, eq=False)
class Sealed(_Over):
    """A block as a source, which must not be merged into the block around it: the right side of an outer join."""

    @cached_property
    def finds_at_most_one(self) -> bool:
        """True for groups whose keys are all compared with outer values of the same type: '1' and '01' both equal 1."""
        group = self.block.sources[0] if len(self.block.sources) == 1 and not self.block.steps else None
        if not isinstance(group, Group) or group.sets:
            return False
        equated = [
            side
            for value in self.block.where
            if isinstance(value, Term) and value_types.are_of_one_type(value.parts)
            for side in _equality_keys(group, value)
        ]
        return all(is_constant(key) or any(key is key_part for key_part in equated) for key in group.keys)

    def rows(self, digests: Digesting, names: Names) -> str:
        return digests.block(self.block, names)


@dataclass(frozen=True, eq=False)
class Group(_Over):
    """One row for each combination of the keys, or a single row without keys.

    Without keys there is one row even if the block has none. `sets` are the grouping sets of ROLLUP and the like.
    DISTINCT is a group of all its columns. Neither the order of keys nor a repeated key matters.
    """

    keys: tuple[Value, ...]
    # the written query, which decides which of several equal keys represents the group; None where none has a collation
    provenance: RowProvenance | None
    sets: Value | None = None

    @property
    def is_single(self) -> bool:
        return not self.keys and self.sets is None

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.block, *self.keys, *((self.sets,) if self.sets else ()))

    def column(self, digests: Digesting, names: Names, inner: Part) -> str:
        value = super().column(digests, names, inner)
        if not _is_key(inner):
            return value
        # Not the value itself: a key is one of several equal values (-0.0 becomes 0.0), and NULL in a subtotal.
        if not value_types.is_collated(inner):
            return digests.hash_texts("key", value)
        assert self.provenance is not None
        return digests.hash_texts("key", value, digests.part(self.provenance.rows_trace, {}))

    def column_volatile(self, inner: Part) -> bool:
        return super().column_volatile(inner) or (_is_key(inner) and value_types.is_collated(inner))

    def rows(self, digests: Digesting, names: Names) -> str:
        inside = digests.inside(self.block, names)
        sets = digests.part(self.sets, inside) if self.sets else ""
        splitting = [key for key in self.keys if sets or not is_constant(key)]  # a constant key splits no group
        keys = sorted({digests.part(key, inside) for key in splitting})
        kind = "of some" if self.keys else "of any"  # without keys there is one group even of no rows
        return digests.hash_texts("group", kind, digests.block(self.block, names), sets, *keys)


@dataclass(frozen=True, eq=False)
class Limit(_Over):
    """The first rows in some order: the order of ties is undefined, so its rows are non-deterministic."""

    order: tuple[Value, ...]
    count: tuple[Value, ...]  # LIMIT and OFFSET
    provenance: Term  # the written query, which decides which rows come first

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.block, *self.order, *self.count)

    @property
    def volatile(self) -> bool:
        return True

    def rows(self, digests: Digesting, names: Names) -> str:
        inside = digests.inside(self.block, names)
        order = [digests.part(value, inside) for value in self.order]
        count = [digests.part(value, inside) for value in self.count]
        provenance = digests.part(self.provenance, inside)
        # The written form is part of it: two queries with the same rows may deliver them in another order.
        return digests.hash_texts("limit", digests.block(self.block, names), *order, "count", *count, "way", provenance)


@dataclass(frozen=True, eq=False)
class Generated(Source):
    """The rows that a generator such as explode makes of one row; an unknown function may be one.

    `call` decides how many rows there are; the values inside are names of the generated columns (`value`, `pos`), or
    values of the original row.
    """

    call: Value

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.call,)

    @property
    def volatile(self) -> bool:
        # An unknown function that may generate rows is assumed to generate as many each time: its value is volatile
        # already.
        return self.call.volatile and not (isinstance(self.call, Term) and self.call.op == "maybe rows")

    def column_size(self, name: Part) -> int:
        return self.call.size

    def column_type(self, inner: Part) -> str | None:
        return value_types.PADDED if value_types.is_padded(self.call, unknown=False) else None

    def column_volatile(self, inner: Part) -> bool:
        return self.call.volatile or super().column_volatile(inner)

    def column_collated(self, inner: Part) -> bool:
        return value_types.is_collated(self.call) or value_types.is_collated(inner)

    def free_of(self, inner: Part) -> frozenset[Source]:
        return NOTHING if isinstance(inner, str) else inner.free

    def rows(self, digests: Digesting, names: Names) -> str:
        return digests.hash_texts("generated", digests.part(self.call, names))

    def column(self, digests: Digesting, names: Names, inner: Part) -> str:
        return digests.hash_texts("generated column", digests.part(self.call, names), digests.part(inner, names))


@dataclass(frozen=True, eq=False)
class Values(Source):
    """The rows of VALUES: their number, and each column's values in an order that does not depend on the text."""

    table: tuple[tuple[Value, ...], ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(value for row in self.table for value in row)

    def column_volatile(self, inner: Part) -> bool:
        return any(row[int(str(inner))].volatile for row in self.table)

    def column_type(self, inner: Part) -> str | None:
        return self.explicit_column_type(inner)

    def explicit_column_type(self, name: Part) -> str | None:
        cells = [row[int(str(name))] for row in self.table]
        return common_type({value_types.explicit_type(cell) for cell in cells if not is_null(cell)})

    def column_collated(self, inner: Part) -> bool:
        return any(value_types.is_collated(row[int(str(inner))]) for row in self.table)

    @property
    def volatile(self) -> bool:
        return False

    def _sort_rows(self, digests: Digesting, names: Names) -> list[tuple[str, ...]]:
        """Return the rows by the first unique column, or else by all, so that an edit of another reorders no rows."""
        rows = [tuple(digests.part(value, names) for value in row) for row in self.table]
        columns = list(zip(*rows, strict=True))
        key = next((i for i, cells in enumerate(columns) if len(set(cells)) == len(rows)), None)
        return sorted(rows, key=(lambda row: row) if key is None else (lambda row: (row[key],)))

    def rows(self, digests: Digesting, names: Names) -> str:
        # Only the number: the cells are in the columns' digests, so that an edited cell changes one column.
        return digests.hash_texts("values", str(len(self.table)))

    def column(self, digests: Digesting, names: Names, inner: Part) -> str:
        index = int(str(inner))
        cells = [row[index] for row in self.table]
        first = ["first", digests.part(cells[0], names)] if _counts_first(cells) else []
        return digests.hash_texts("cells", *(row[index] for row in self._sort_rows(digests, names)), *first)


@dataclass(frozen=True, eq=False)
class Full(Source):
    """FULL JOIN of two blocks; it is symmetric."""

    left: Sealed
    right: Sealed
    on: tuple[Value, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.left.block, self.right.block, *self.on)

    @property
    def inner_sources(self) -> frozenset[Source]:
        return frozenset((self.left, self.right, *self.left.block.all_sources, *self.right.block.all_sources))

    @property
    def volatile(self) -> bool:
        return any(part.volatile for part in (self.left, self.right, *self.on))

    def _names_inside(self, digests: Digesting, names: Names) -> Names:
        # Named after their content, so that `a FULL JOIN b` and `b FULL JOIN a` have the same names.
        sides = sorted((self.left, self.right), key=lambda side: side.rows(digests, names))
        return digests.around(names) | dict(zip(sides, ("one", "other"), strict=True))

    def column_type(self, inner: Part) -> str | None:
        return value_types.type_of(inner)

    def column_collated(self, inner: Part) -> bool:
        return value_types.is_collated(inner)

    def rows(self, digests: Digesting, names: Names) -> str:
        on = sorted({digests.part(value, self._names_inside(digests, names)) for value in self.on})
        sides = sorted((self.left.rows(digests, names), self.right.rows(digests, names)))
        return digests.hash_texts("full", *sides, *on)

    def column(self, digests: Digesting, names: Names, inner: Part) -> str:
        return digests.part(inner, self._names_inside(digests, names))


@dataclass(frozen=True, eq=False)
class Union(Source):
    """UNION ALL: the rows of all branches, in no order; column `2` is the third one of each branch."""

    branches: tuple[Relation, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(branch.block for branch in self.branches)

    def column_volatile(self, inner: Part) -> bool:
        return any(column_at(branch, inner).volatile for branch in self.branches)

    def column_size(self, name: Part) -> int:
        return sum(column_at(branch, name).size for branch in self.branches)

    def column_collated(self, inner: Part) -> bool:
        return any(value_types.is_collated(column_at(branch, inner)) for branch in self.branches)

    def column_type(self, inner: Part) -> str | None:
        return self._column_types[int(str(inner))]

    def explicit_column_type(self, name: Part) -> str | None:
        return self._explicit_types[int(str(name))]

    # Cached: a union of unions would compute the innermost one again at each level.
    @cached_property
    def _column_types(self) -> list[str | None]:
        return self._merge_types(value_types.type_of)

    @cached_property
    def _explicit_types(self) -> list[str | None]:
        return self._merge_types(value_types.explicit_type)

    def _merge_types(self, read: Callable[[Part], str | None]) -> list[str | None]:
        columns = zip(*(branch.columns.values() for branch in self.branches), strict=True)
        types = [{read(value) for value in values if not is_null(value)} for values in columns]
        return [next(iter(column)) if len(column) == 1 else common_type(column) for column in types]

    def _sort_branches(self, digests: Digesting, names: Names) -> list[Relation]:
        # By rows and columns: two branches over the same rows differ in what they select.
        return sorted(self.branches, key=lambda b: (digests.block(b.block, names), *columns_of(b, digests, names)))

    def rows(self, digests: Digesting, names: Names) -> str:
        return digests.hash_texts(
            "union", *(digests.block(b.block, names) for b in self._sort_branches(digests, names))
        )

    def column(self, digests: Digesting, names: Names, inner: Part) -> str:
        parts = [self._branch_column(branch, digests, names, inner) for branch in self._sort_branches(digests, names)]
        if _counts_first(self.columns_inside(inner)):
            first = self.branches[0]
            parts += ["first", digests.block(first.block, names), self._branch_column(first, digests, names, inner)]
        return digests.hash_texts("union column", *parts)

    def _branch_column(self, branch: Relation, digests: Digesting, names: Names, inner: Part) -> str:
        return digests.part(column_at(branch, inner), digests.inside(branch.block, names))

    def columns_inside(self, name: Part) -> tuple[Value, ...]:
        return tuple(column_at(branch, name) for branch in self.branches)


@dataclass(frozen=True, eq=False)
class Compound(Source):
    """An operation on whole rows of relations (EXCEPT, INTERSECT, PIVOT): every column affects every row."""

    op: str
    relations: tuple[Relation, ...]
    arguments: tuple[Value, ...] = ()
    own_volatile: bool = False

    @property
    def parts(self) -> tuple[Part, ...]:
        columns = (value for relation in self.relations for value in relation.columns.values())
        return (*(relation.block for relation in self.relations), *columns, *self.arguments)

    def column_size(self, name: Part) -> int:
        return self._size

    @cached_property
    def _size(self) -> int:
        return sum(value.size for relation in self.relations for value in relation.columns.values())

    @property
    def inner_sources(self) -> frozenset[Source]:
        return NOTHING.union(*(relation.block.all_sources for relation in self.relations))

    @property
    def volatile(self) -> bool:
        return self.own_volatile or super().volatile

    def column_collated(self, inner: Part) -> bool:
        return any(map(value_types.is_collated, self.relations))

    def rows(self, digests: Digesting, names: Names) -> str:
        wholes = []
        for relation in self.relations:
            # The outputs of set operations have the names of the first query; those of PIVOT contain column names.
            titles = relation.columns if self.op not in ("EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL") else ()
            block, columns = digests.block(relation.block, names), columns_of(relation, digests, names)
            wholes.append(digests.hash_texts(block, *columns, "named", *titles))
        arguments = [digests.part(value, self._names_inside(digests, names)) for value in self.arguments]
        if self.op.startswith("INTERSECT"):  # commutative, unlike EXCEPT
            wholes.sort()
        return digests.hash_texts(self.op, *wholes, "said", *arguments)

    def _names_inside(self, digests: Digesting, names: Names) -> Names:
        for relation in self.relations:
            names = names | digests.inside(relation.block, names)
        return names

    def column(self, digests: Digesting, names: Names, inner: Part) -> str:
        # By position only: the digest of the rows contains every column already.
        first = self.relations[0]
        is_named = self.op.startswith("INTERSECT") and _counts_first([column_at(r, inner) for r in self.relations])
        parts = columns_of(first, digests, names)[int(str(inner))] if is_named else ""
        return digests.hash_texts("column", str(inner), *([digests.block(first.block, names), parts] if parts else []))

    def columns_inside(self, name: Part) -> tuple[Value, ...]:
        return tuple(value for relation in self.relations for value in relation.columns.values())


def _counts_first(values: Sequence[Value]) -> bool:
    """Return True if values that become one column may get their type from the first one.

    That one names the fields of structs, which have no other type beside them. Its CHAR(n) decides how the column is
    compared.
    """
    types = {value_types.type_of(value) for value in values}
    has_fields = all(type_ is None or "<" in type_ for type_ in types)
    return has_fields or (len(types) > 1 and any(map(value_types.is_padded, values)))


def _is_key(inner: Part) -> bool:
    return not (isinstance(inner, Term) and inner.op == "aggregate") and inner is not ROW


def _equality_keys(group: Group, predicate: Value) -> list[Part]:
    if not isinstance(predicate, Term) or predicate.op != "EQ":
        return []
    one, two = predicate.parts
    pairs = ((one, two), (two, one))
    return [
        key.inner
        for key, operand in pairs
        if isinstance(key, Ref) and key.source is group and (isinstance(operand, str) or group not in operand.free)
    ]


def column_at(relation: Relation, inner: Part) -> Value:
    """Return the column of a relation at a position, counted from 0 and given as text."""
    return list(relation.columns.values())[int(str(inner))]


def columns_of(relation: Relation, digests: Digesting, names: Names) -> list[str]:
    inside = digests.inside(relation.block, names)
    return [digests.part(value, inside) for value in relation.columns.values()]


def is_constant(value: Part) -> bool:
    """Return True for a value that is the same in every row and run: literals, deterministic functions of them."""
    if isinstance(value, Term):
        return not value.volatile and value.op not in NOT_CONSTANT and all(is_constant(p) for p in value.parts)
    return isinstance(value, str)


NOT_CONSTANT = frozenset(("window", "scalar", "exists", "in query", "maybe rows", "date", "aggregate"))


def rebase_relation(relation: Relation, source: Source) -> Relation:
    return Relation(Block((source,)), {name: Ref(source, value) for name, value in relation.columns.items()})
