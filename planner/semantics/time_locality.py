"""What of a query comes out otherwise when a table that is filled by stretches of time is filled in other stretches.

A table that was filled day by day is filled in one go when it is built anew. What is computed from rows of one day is
the same either way; what looks further is not: a window or a GROUP BY without the day, a join of two stretches, the
stretch's own dates anywhere but around the day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from planner.semantics.algebra import Block, Part, Ref, Relation, Source, Term, Value
from planner.semantics.sources import Group, TableSource, Union

_OF_THE_DAY = frozenset(("cast", "try cast", "TsOrDsToDate"))


@dataclass(frozen=True)
class Stretched:
    """`outputs` and `rows` come out otherwise in other stretches; `day` is the table's column that a row's day is."""

    outputs: frozenset[str] = frozenset()
    rows: bool = False
    day: tuple[str, str] | None = None


def stretched(relation: Relation, time_column: str) -> Stretched:
    """What of a query that fills a table by this time column depends on how long the stretches are."""
    if not _has_dates(relation):
        return Stretched()  # it reads all time there is
    block = relation.block
    if block.is_plain and isinstance(block.sources[0], Union):
        return _of_union(relation, block.sources[0], time_column)
    groups: list[Group] = []
    above: list[Value] = []
    while len(block.sources) == 1 and not block.steps and isinstance(block.sources[0], Group):
        above += block.where
        groups.append(block.sources[0])
        block = groups[-1].block
    day = _day(block)
    time = relation.columns.get(time_column)
    folded = [part for group in groups for part in group.keys]
    if day is None or time is None or not _is(time, day) or any(map(_has_dates, (*above, *folded))):
        return Stretched(rows=True)
    if any(group.sets or not any(_is(key, day) for key in group.keys) for group in groups):
        return Stretched(rows=True)
    if any(_looks_further(value, day) for value in (*above, *folded, *block.where)):
        return Stretched(rows=True)
    outputs = frozenset(
        name for name, value in relation.columns.items() if _has_dates(value) or _looks_further(value, day)
    )
    source = day.source
    assert isinstance(source, TableSource)
    return Stretched(outputs, False, (source.name, str(day.inner)))


def _of_union(relation: Relation, union: Union, time_column: str) -> Stretched:
    """A branch of UNION ALL fills its own rows: each must go by the day."""
    names = list(relation.columns)
    found = []
    for branch in union.branches:
        if len(branch.columns) != len(names) or time_column not in names:
            return Stretched(rows=True)
        named = Relation(branch.block, dict(zip(names, branch.columns.values(), strict=True)))
        found.append(stretched(named, time_column))
    return Stretched(frozenset[str]().union(*(each.outputs for each in found)), any(each.rows for each in found))


def _day(block: Block) -> Ref | None:
    """The one column of one table that is held between dates; None where dates stand elsewhere, or there are two."""
    held: dict[tuple[int, str], Ref] = {}
    for value in block.where:
        if not _has_dates(value):
            continue
        column = _held(value)
        if column is None or column.source not in block.sources:
            return None
        held[id(column.source), str(column.inner)] = column
    if len(held) != 1 or any(map(_has_dates, (part for source in block.all_sources for part in source.parts))):
        return None
    return next(iter(held.values()))


def _held(value: Value, sides: tuple[str, ...] = ("start", "end")) -> Ref | None:
    """The table's column that a predicate holds after the start, or before the end, of the stretch."""
    if not isinstance(value, Term) or value.op not in ("LT", "LTE"):
        return None
    less, more = value.parts
    for column, date, side in ((more, less, "start"), (less, more, "end")):
        told = isinstance(date, Term) and date.op == "date" and str(date.parts[0]).startswith(side)
        if side in sides and told and isinstance(column, Ref) and isinstance(column.source, TableSource):
            return column
    return None


def _is(value: Part, day: Ref) -> bool:
    """True when a value is the day, or the day in another type."""
    if isinstance(value, Ref):
        if value.source is day.source:
            return value.inner == day.inner
        return isinstance(value.source, Group) and _is(value.inner, day)
    return isinstance(value, Term) and value.op in _OF_THE_DAY and any(_is(part, day) for part in value.parts)


def _looks_further(part: Part, day: Ref) -> bool:
    """True when a window somewhere in a value does not keep to the day."""
    if isinstance(part, Ref):
        return isinstance(part.source, Group) and _looks_further(part.inner, day)
    if not isinstance(part, Term):
        return False
    if part.op == "window":
        partition = part.parts[1]
        assert isinstance(partition, Term)
        if not any(_is(each, day) for each in partition.parts):
            return True
    return any(_looks_further(each, day) for each in part.parts if not isinstance(each, Block))


def _has_dates(part: Part) -> bool:
    """True when a date of the stretch stands somewhere in it."""
    if isinstance(part, str):
        return False
    if isinstance(part, Ref):
        return isinstance(part.source, Group) and _has_dates(part.inner)
    if isinstance(part, Relation):
        return _has_dates(part.block) or any(map(_has_dates, part.columns.values()))
    if isinstance(part, Block):
        inside = (*part.where, *(each for source in part.all_sources for each in source.parts))
        return any(map(_has_dates, inside))
    if part.op == "date":
        return str(part.parts[0]).startswith(("start", "end"))
    own = (
        part.parts[:-1] if part.op == "window" else part.parts
    )  # the rows that a window sees are looked at by themselves
    return any(map(_has_dates, own))


def bounded(relation: Relation) -> Mapping[str, frozenset[str]]:
    """Table -> its columns that are held between the interval's own dates, wherever the query reads that table."""
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
            if isinstance(source, TableSource):
                yield source.name, _between(block, source)
            elif source not in inner or len(block.sources) > 1:
                yield from _all_of(source)
        if len(block.sources) != 1 or not inner:
            return
        yield from (each for part in inner[0].parts[1:] for each in _within(part))
        block = inner[0].block


def _between(block: Block, table: TableSource) -> frozenset[str]:
    """The columns that are held between a first and a last date."""
    first, last = (
        {str(column.inner) for value in block.where if (column := _held(value, (side,))) and column.source is table}
        for side in ("start", "end")
    )
    return frozenset(first & last)


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
            yield from ((table.name, _between(seen, table)) for table in seen.sources if isinstance(table, TableSource))
        for each in part.parts:
            yield from _within(each) if each is not seen else ()


def _all_of(source: Source) -> Iterator[tuple[str, frozenset[str]]]:
    if isinstance(source, TableSource):
        yield source.name, frozenset()
    for part in source.parts:
        yield from _within(part)
