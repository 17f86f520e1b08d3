"""The parts of a query that depend on the intervals by which an incremental table is loaded.

A table that was loaded day by day is loaded in one batch when it is rebuilt. A value that is computed from the rows of
one day is the same either way. These are not: a window or a GROUP BY without the day, a join of two intervals, and the
interval's dates anywhere but in the filter of the day. They count as changed whenever the table is rebuilt.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from mergeplan.planner.semantics.query.algebra import ROW, Block, Part, Ref, Relation, Source, Term, Value
from mergeplan.planner.semantics.query.sources import Group, TableSource, Union, column_at
from mergeplan.planner.semantics.types import type_of

# Types to which a cast keeps the moment of the filtered column, and one that keeps its day.
_MOMENTS = frozenset(("STRING", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"))
_DAY = "DATE"
# By type of a column, the dates (`@end_ds`) whose filters put each of its values into one interval. `ts <= @end_ds`
# drops the last day but its midnight: those rows are lost day by day, and are there in a batch of several days.
# Texts are cast to what they are compared with. Beside another text they are days, as their format says. A column of
# unknown type may hold moments.
_OF_MOMENTS = frozenset(("ts", "tstz", "dt", "dtntz"))
_EXACT: Mapping[str | None, frozenset[str]] = {
    **dict.fromkeys(("timestamp", "timestamp_ltz", "timestamp_ntz", None), _OF_MOMENTS),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), frozenset(("epoch", "millis"))),
    "date": _OF_MOMENTS | {"date", "ds"},
    "string": frozenset(("date", "ds", "dt", "dtntz")),
}


@dataclass(frozen=True)
class TimeDependence:
    """`outputs` and `rows` differ between intervals of different length; `day` is the table column with a row's day."""

    outputs: frozenset[str] = frozenset()
    rows: bool = False
    day: tuple[str, str] | None = None


@dataclass(frozen=True)
class _Time:
    """The column that is filtered by dates. Unless intervals are `short`, its day is in no other interval.

    With `is_cast` it is the column's day that is filtered, in the session's time zone.
    """

    column: Ref
    short: bool
    is_cast: bool


def depends_on_batch(relation: Relation, time_column: str, *, short: bool) -> bool:
    """Return True if a query may return other rows for two intervals than for both as one.

    A table with a time column takes only the rows of its interval, whatever else a batch returns. For any other table,
    both ends of the interval must bound the day.
    """
    dependence = time_dependence(relation, time_column, short=short)
    if dependence.rows or dependence.outputs:
        return True
    if time_column or not has_dates(relation):
        return False
    table, column = dependence.day or ("", "")
    return column not in interval_filters(relation).get(table, ())


def time_dependence(relation: Relation, time_column: str, *, short: bool) -> TimeDependence:
    """Return the parts of a query that depend on the length of the intervals of a table.

    `time_column` is that of the table, or '' if it has none. Intervals of less than a day are `short`.
    """
    if not has_dates(relation):
        return TimeDependence()  # without dates, every batch reads all rows
    block = relation.block
    if block.is_plain and isinstance(block.sources[0], Union):
        return _union_dependence(relation, block.sources[0], time_column, short)
    groups: list[Group] = []
    above: list[Value] = []
    # Down through GROUP BY and DISTINCT to the block that has the filter on the day.
    while len(block.sources) == 1 and not block.steps and isinstance(block.sources[0], Group):
        above += block.where
        groups.append(block.sources[0])
        block = groups[-1].block
    time = relation.columns.get(time_column)
    day = _find_day_column(block, short, time)
    folded = [part for group in groups for part in group.keys]
    # The time column must be the filtered column itself: else a row could belong to another day than it is loaded for.
    # Where its day is filtered, it must be that day: an interval of moments is one of UTC.
    is_other_day = bool(time_column) and (
        time is None or day is None or not _is_day(time, day) or (day.is_cast and not _is_date_cast(time))
    )
    if day is None or is_other_day or any(map(has_dates, (*above, *folded))):
        return TimeDependence(rows=True)
    # A group without the day gets rows of several days; ROLLUP and the like add such groups.
    if any(group.sets or not any(_is_day(key, day) for key in group.keys) for group in groups):
        return TimeDependence(rows=True)
    if any(_leaves_day(value, day) for value in (*above, *folded, *block.where)):
        return TimeDependence(rows=True)
    outputs = frozenset(name for name, value in relation.columns.items() if has_dates(value) or _leaves_day(value, day))
    source = day.column.source
    assert isinstance(source, TableSource)
    return TimeDependence(outputs, False, None if day.is_cast else (source.name, str(day.column.inner)))


def _union_dependence(relation: Relation, union: Union, time_column: str, short: bool) -> TimeDependence:
    """Return the dependence of UNION ALL: each branch loads its own rows, so each must filter by the day."""
    names = list(relation.columns)
    dependences = []
    for branch in union.branches:
        if len(branch.columns) != len(names) or (time_column and time_column not in names):
            return TimeDependence(rows=True)
        named = Relation(branch.block, dict(zip(names, branch.columns.values(), strict=True)))
        dependences.append(time_dependence(named, time_column, short=short))
    outputs = frozenset[str]().union(*(dependence.outputs for dependence in dependences))
    return TimeDependence(outputs, any(dependence.rows for dependence in dependences))


def _find_day_column(block: Block, short: bool, time: Value | None) -> _Time | None:
    """Return the only column that is filtered by dates, or None if dates are used elsewhere or for two columns.

    `time` is the time column of the table, whose format says that its texts are days. Other texts may be times.
    """
    columns: dict[tuple[int, str, bool], Ref] = {}
    for value in block.where:
        if not has_dates(value):
            continue
        is_cast = isinstance(value, Term) and any(map(_is_date_cast, value.parts))
        column = _filter_column(value, short=short, is_cast=is_cast)
        if column is None or column.source not in block.sources:
            return None
        if _may_be_times(value, column, time):
            return None
        columns[id(column.source), str(column.inner), is_cast] = column
    # Two filtered columns join the rows of two intervals; a date inside a source decides rows that the filter does not
    # see.
    if len(columns) != 1 or any(map(has_dates, (part for source in block.all_sources for part in source.parts))):
        return None
    ((_, _, is_cast), column), *_ = columns.items()
    return _Time(column, short, is_cast)


def _is_date_cast(value: Part) -> bool:
    while isinstance(value, Ref) and isinstance(value.source, Group):
        value = value.inner
    is_cast = isinstance(value, Term) and value.op in ("cast", "try cast") and value.parts[1] == _DAY
    return is_cast or (isinstance(value, Term) and value.op == "TsOrDsToDate" and len(value.parts) == 1)


def _filter_column(
    value: Value, sides: tuple[str, ...] = ("start", "end"), *, short: bool = False, is_cast: bool = False
) -> Ref | None:
    """Return the table column that a predicate filters by the start, or by the end, of the interval, or None.

    With `is_cast` it is the column whose cast to DATE is filtered. Both ends belong to the interval: without one of
    them, rows of each interval are lost.
    """
    if not isinstance(value, Term) or value.op != "LTE":
        return None
    less, greater = value.parts
    for column, date, side in ((greater, less, "start"), (less, greater, "end")):
        if side not in sides or not (isinstance(date, Term) and date.op == "date"):
            continue
        prefix, _, suffix = str(date.parts[0]).partition("_")
        if is_cast and isinstance(column, Term) and _is_date_cast(column):
            column = column.parts[0]
        if prefix == side and isinstance(column, Ref) and isinstance(column.source, TableSource):
            # each value must be in one interval; intervals of less than a day share its days
            type_ = _DAY.lower() if is_cast else _text_type(column)
            is_of_days = suffix in ("date", "ds") or type_ == "date"
            return column if suffix in _EXACT.get(type_, ()) and not (short and is_of_days) else None
    return None


def _may_be_times(predicate: Value, column: Ref, time: Part | None) -> bool:
    """Return True for a text beside `@start_ds` or `@end_ds` that is not the time column: it may be after its day."""
    while isinstance(time, Ref) and isinstance(time.source, Group):
        time = time.inner
    is_itself = isinstance(time, Ref) and time.source is column.source and time.inner == column.inner
    parts = predicate.parts if isinstance(predicate, Term) else ()
    dates = [str(part.parts[0]) for part in parts if isinstance(part, Term) and part.op == "date"]
    return not is_itself and _text_type(column) == "string" and any(date.endswith("_ds") for date in dates)


def _text_type(column: Ref) -> str | None:
    type_ = type_of(column)
    return "string" if type_ is not None and type_.startswith(("char(", "varchar(")) else type_


def _is_day(value: Part, day: _Time) -> bool:
    if isinstance(value, Ref):
        if value.source is day.column.source:
            return value.inner == day.column.inner
        return isinstance(value.source, Group) and _is_day(value.inner, day)
    if not isinstance(value, Term) or not value.parts:
        return False
    kept_types = _MOMENTS if day.short else {*_MOMENTS, _DAY}
    is_cast = value.op in ("cast", "try cast") and value.parts[1] in kept_types
    is_date = value.op == "TsOrDsToDate" and not day.short
    return (is_cast or is_date) and any(_is_day(part, day) for part in value.parts)


def _leaves_day(part: Part, day: _Time) -> bool:
    """Return True if a value contains a window that is not partitioned by the day."""
    if isinstance(part, Ref):
        return isinstance(part.source, Group) and _leaves_day(part.inner, day)
    if not isinstance(part, Term):
        return False
    if part.op == "window":
        partition = part.parts[1]
        assert isinstance(partition, Term)
        if not any(_is_day(key, day) for key in partition.parts):
            return True
    return any(_leaves_day(inner, day) for inner in part.parts if not isinstance(inner, Block))


_DATED: WeakKeyDictionary[Relation, bool] = WeakKeyDictionary()  # several questions about a query ask for this


def has_dates(part: Part) -> bool:
    if isinstance(part, str):
        return False
    if isinstance(part, Ref):
        if isinstance(part.source, Union) and part.inner is not ROW:
            return any(has_dates(column_at(branch, part.inner)) for branch in part.source.branches)
        return has_dates(part.inner)  # a column by its name alone has no dates that the parts of its source lack
    if isinstance(part, Relation):
        if (is_dated := _DATED.get(part)) is None:
            is_dated = _DATED[part] = has_dates(part.block) or any(map(has_dates, part.columns.values()))
        return is_dated
    if isinstance(part, Block):
        inside = (*part.where, *(inner for source in part.all_sources for inner in source.parts))
        return any(map(has_dates, inside))
    if part.op == "date":
        return str(part.parts[0]).startswith(("start", "end"))
    # The last part of a window is the block of its rows, whose dates `_find_day_column` checks.
    own_parts = part.parts[:-1] if part.op == "window" else part.parts
    return any(map(has_dates, own_parts))


def needs_whole_days(relation: Relation, time_column: str) -> bool:
    """Return True if a query takes rows of a day together, which are of several intervals if these are shorter."""
    return time_dependence(relation, time_column, short=True) != time_dependence(relation, time_column, short=False)


def interval_filters(relation: Relation) -> Mapping[str, frozenset[str]]:
    """Return the columns of each table that are filtered by the interval's dates wherever the query reads it."""
    filters: dict[str, frozenset[str]] = {}
    for table, columns in _list_table_uses(relation):
        filters[table] = filters.get(table, columns) & columns  # one unfiltered use reads rows of any day
    return filters


def _list_table_uses(relation: Relation) -> Iterator[tuple[str, frozenset[str]]]:
    for value in relation.columns.values():
        yield from _list_inner_uses(value)
    block = relation.block
    while True:
        for predicate in block.where:
            yield from _list_inner_uses(predicate)
        for step in block.steps:
            yield from _all_of(step.source)
        inner = [source for source in block.sources if isinstance(source, Group)]
        for source in block.sources:
            if isinstance(source, TableSource):
                yield source.name, _interval_columns(block, source)
            elif source not in inner or len(block.sources) > 1:
                yield from _all_of(source)
        if len(block.sources) != 1 or not inner:
            return
        yield from (appearance for part in inner[0].parts[1:] for appearance in _list_inner_uses(part))
        block = inner[0].block


def _interval_columns(block: Block, table: TableSource) -> frozenset[str]:
    first, last = (
        {
            str(column.inner)
            for value in block.where
            if (column := _filter_column(value, (side,))) and column.source is table
        }
        for side in ("start", "end")
    )
    return frozenset(first & last)


def _list_inner_uses(part: Part) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the tables of subqueries inside a value: the filter outside does not apply to their rows."""
    if isinstance(part, Block):
        for source in part.all_sources:
            yield from _all_of(source)
        for value in part.where:
            yield from _list_inner_uses(value)
    elif isinstance(part, Relation):
        yield from _list_inner_uses(part.block)
        for value in part.columns.values():
            yield from _list_inner_uses(value)
    elif isinstance(part, Ref):
        yield from _list_inner_uses(part.inner)
    elif isinstance(part, Term):
        window_block = part.parts[-1] if part.op == "window" else None
        if isinstance(window_block, Block):  # a window looks at rows of the block around it, before later filters
            tables = (table for table in window_block.sources if isinstance(table, TableSource))
            yield from ((table.name, _interval_columns(window_block, table)) for table in tables)
        for inner in part.parts:
            yield from _list_inner_uses(inner) if inner is not window_block else ()


def _all_of(source: Source) -> Iterator[tuple[str, frozenset[str]]]:
    if isinstance(source, TableSource):
        yield source.name, frozenset()
    for part in source.parts:
        yield from _list_inner_uses(part)
