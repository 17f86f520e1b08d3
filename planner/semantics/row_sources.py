"""The tables whose rows decide those of a query."""

from collections.abc import Mapping
from dataclasses import dataclass

from mergeplan.planner.semantics.dependencies import tables_in
from mergeplan.planner.semantics.query.algebra import Block
from mergeplan.planner.semantics.shape import Shape


@dataclass(frozen=True)
class RowSources:
    """The tables whose rows decide those of a query, and those in whose rows a column's values are looked up."""

    deciding: frozenset[str]
    looked_up: Mapping[str, frozenset[str]]


def row_sources_of(shape: Shape) -> RowSources:
    relation = shape.relation
    if relation is None:  # the stack is too deep by now to follow it again: any of them may
        reads = frozenset(shape.reads)
        return RowSources(reads, dict.fromkeys(shape.columns or (), reads))
    block = relation.block
    steps = tuple(step for step in block.steps if not step.is_lookup)
    # A lookup decides no rows: which rows the looked-up table has shows in the values that are found there.
    looked_up = {
        column: tables_in(Block(tuple(value.free), where=(value,))) for column, value in relation.columns.items()
    }
    return RowSources(tables_in(Block(block.sources, steps, block.where)), looked_up)
