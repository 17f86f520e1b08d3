"""Column-level lineage of a relation: the columns that decide its rows, and those that each output is computed from."""

from collections.abc import Iterable
from typing import TypeAlias
from weakref import WeakKeyDictionary

from mergeplan.planner.semantics.query import sources
from mergeplan.planner.semantics.query.algebra import ROW, Block, Part, Ref, Relation, Source

Columns: TypeAlias = frozenset[tuple[str, str]]  # (table, column)
NONE: Columns = frozenset()
# A block is reached by each value over it: without these, nested subqueries would take exponential time.
_DECIDING: WeakKeyDictionary[Block, Columns] = WeakKeyDictionary()
_TABLES: WeakKeyDictionary[Block, frozenset[str]] = WeakKeyDictionary()


def source_columns(part: Part) -> Columns:
    """Return the columns that a value is computed from, without those that only decide which rows there are."""
    if isinstance(part, str):
        return NONE
    if isinstance(part, Block):
        return depends_on(part)
    if isinstance(part, Relation):
        return depends_on(part.block) | _union_columns(part.columns.values())
    if isinstance(part, Ref):
        return NONE if part.inner is ROW else _columns_inside(part.source, part.inner)
    return _union_columns(part.parts)


def depends_on(block: Block) -> Columns:
    """Return the columns that decide which rows a block has."""
    if (columns := _DECIDING.get(block)) is None:
        # A join that finds at most one row, and keeps every row, does not change which rows there are.
        steps = (step.source for step in block.steps if not step.is_lookup)
        rows = (_row_columns(source) for source in (*block.sources, *steps))
        columns = _DECIDING[block] = NONE.union(*rows, _union_columns(block.where))
    return columns


def tables_in(block: Block) -> frozenset[str]:
    if (tables := _TABLES.get(block)) is None:
        names: set[str] = set()
        for source in block.all_sources:
            names |= {source.name} if isinstance(source, sources.TableSource) else set()
            for part in source.parts:
                names |= _collect_tables(part)
        tables = _TABLES[block] = frozenset(names).union(*(_collect_tables(value) for value in block.where))
    return tables


def _collect_tables(part: Part) -> frozenset[str]:
    if isinstance(part, str):
        return frozenset()
    if isinstance(part, Block):
        return tables_in(part)
    if isinstance(part, Relation):
        return tables_in(part.block).union(*(_collect_tables(value) for value in part.columns.values()))
    if isinstance(part, Ref):
        return _collect_tables(part.inner)
    return frozenset().union(*(_collect_tables(inner) for inner in part.parts))


def _union_columns(parts: Iterable[Part]) -> Columns:
    return NONE.union(*(source_columns(part) for part in parts))


def _columns_inside(source: Source, inner: Part) -> Columns:
    match source:
        case sources.TableSource():
            return frozenset(((source.name, str(inner)),))
        case sources.Union():
            return _union_columns(sources.column_at(branch, inner) for branch in source.branches)
        case sources.Generated():
            return source_columns(source.call)
        case sources.Compound():
            return _row_columns(source)
        # Whether a row was found decides between its value and NULL, so what finds it counts for the value.
        case sources.Sealed() if source.finds_at_most_one:
            return source_columns(inner) | _row_columns(source)
        case sources.Values():  # literals
            return NONE
    return source_columns(inner)


def _row_columns(source: Source) -> Columns:
    match source:
        case sources.Sealed():
            return depends_on(source.block)
        case sources.Group():
            return depends_on(source.block) | _union_columns(source.keys)
        case sources.Limit():
            return depends_on(source.block) | _union_columns(source.order)
        case sources.Full():
            return depends_on(source.left.block) | depends_on(source.right.block) | _union_columns(source.on)
        case sources.Generated():
            return source_columns(source.call)
        case sources.Union():
            return NONE.union(*(depends_on(branch.block) for branch in source.branches))
        case sources.Compound():
            return _union_columns(source.relations)
    return NONE
