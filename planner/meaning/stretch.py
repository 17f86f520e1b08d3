"""Which tables a query that fills stretches of time reads within its own stretch only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.meaning.sources import Group, Source, Table
from planner.meaning.terms import Block, Part, Ref, Relation, Term, Value


def bounded(relation: Relation) -> Mapping[str, frozenset[str]]:
    """Table -> its columns that are held between the stretch's own dates, wherever the query reads that table."""
    found: dict[str, frozenset[str]] = {}
    for table, columns in _appearances(relation):
        found[table] = found.get(table, columns) & columns
    return found


def _appearances(relation: Relation) -> Iterator[tuple[str, frozenset[str]]]:
    for value in relation.columns.values():
        yield from _within(value)
    block = relation.block
    while True:
        for predicate in block.where:
            yield from _within(predicate)
        for step in block.steps:
            yield from _all_of(step.source)
        inner = [source for source in block.sources if isinstance(source, Group)]
        for source in block.sources:
            if isinstance(source, Table):
                yield source.name, _between(block, source)
            elif source not in inner or len(block.sources) > 1:
                yield from _all_of(source)
        if len(block.sources) != 1 or not inner:
            return
        yield from (each for part in inner[0].parts[1:] for each in _within(part))
        block = inner[0].block


def _between(block: Block, table: Table) -> frozenset[str]:
    """The columns that are held between a first and a last date."""
    first = {column for value in block.where if (column := _bound(value, table, "start"))}
    last = {column for value in block.where if (column := _bound(value, table, "end"))}
    return frozenset(first & last)


def _bound(value: Value, table: Table, side: str) -> str | None:
    """The column that a predicate holds on one side of a date of the stretch."""
    if not isinstance(value, Term) or value.op not in ("LT", "LTE"):
        return None
    less, more = value.parts
    column, date = (more, less) if side == "start" else (less, more)
    told = isinstance(date, Term) and date.op == "date" and str(date.parts[0]).startswith(side)
    return str(column.inner) if told and isinstance(column, Ref) and column.source is table else None


def _within(part: Part) -> Iterator[tuple[str, frozenset[str]]]:
    """The tables of subqueries inside a value: they are not held in the stretch."""
    if isinstance(part, Block):
        for source in part.all_sources:
            yield from _all_of(source)
        for value in part.where:
            yield from _within(value)
    elif isinstance(part, Relation):
        yield from _within(part.block)
        for value in part.columns.values():
            yield from _within(value)
    elif isinstance(part, Ref):
        yield from _within(part.inner)
    elif isinstance(part, Term):
        seen = part.parts[-1] if part.op == "window" else None
        if isinstance(seen, Block):  # a window looks at rows of the block around it, before later filters
            yield from ((table.name, _between(seen, table)) for table in seen.sources if isinstance(table, Table))
        for each in part.parts:
            yield from _within(each) if each is not seen else ()


def _all_of(source: Source) -> Iterator[tuple[str, frozenset[str]]]:
    if isinstance(source, Table):
        yield source.name, frozenset()
    for part in source.parts:
        yield from _within(part)
