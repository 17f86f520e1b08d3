"""The SELECT that hashes what a table holds, for several column sets in one pass, and the parsing of its result.

Each row is hashed twice, to 64 bits from two different seeds, and the hashes are summed. Spark's `xxhash64` ignores
some differences, so it is also given: which values are NULL (it skips them), how long an array is (it runs the elements
together), which zero is negative, and a text as bytes (a collation would take other bytes for the same).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.spark.type_text import char_type
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import QueryError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.naming import quote_column
from mergeplan.planner.snapshot.content_hash import WHOLE, ColumnSet, Content, Found, build_content, empty_content

HALVES = ("a", "b")
# A hash is summed in three parts of at most 22 bits: 2^41 rows do not overflow, and decimals would be slower.
BITS = 22
PARTS = 3
# Types of which different values, and they alone, are different bytes to `xxhash64`.
PLAIN = frozenset("boolean byte short integer long decimal date timestamp timestamp_ntz binary".split())


@dataclass(frozen=True)
class ContentQuery:
    """The content to hash in a table; `types` are Spark's types of its columns, `sets` those that can be hashed."""

    table: Table
    types: Mapping[str, Any]
    sets: tuple[ColumnSet, ...]
    interval: Interval | None

    @property
    def sql(self) -> str:
        """One row per period with rows: its value, the number of rows, and for each set the parts of both sums."""
        period, where, group = self._period_clauses()
        names = [f"{half}{index}" for index in range(len(self.sets)) for half in HALVES]
        hashes = [self._hash_expression(half, columns) for columns in self.sets for half in HALVES]
        inner = ", ".join([f"{period} period", *(f"{h} {name}" for h, name in zip(hashes, names, strict=True))])
        sums = (f"sum({part})" for name in names for part in _split_hash(name))
        rows = f"SELECT {inner} FROM {quote_name(self.table.name)} AS t{where}"
        return f"SELECT max(period), count(1), {', '.join(sums)} FROM ({rows}){group}"

    def answer(self, rows: Iterable[Sequence[Any]]) -> Found:
        """Return column set -> period -> content, also of empty periods; raise QueryError for rows in no period."""
        rows_by_period = {str(row[0]): row for row in rows if row[1]}
        by = self.table.partitioning
        periods = by.periods(self.interval) if by and self.interval else (WHOLE,)
        if strange := sorted(rows_by_period.keys() - set(periods)):
            raise QueryError(f"{self.table.name} has rows in a partition '{strange[0]}', which is no period of it.")
        return {
            columns: {period: self._build_content(index, rows_by_period.get(period)) for period in periods}
            for index, columns in enumerate(self.sets)
        }

    def _period_clauses(self) -> tuple[str, str, str]:
        """Return the SQL of a row's period, of the filter of the rows, and of their grouping."""
        if self.interval is None:
            return literal(WHOLE), "", ""
        by = self.table.partitioning
        if by is None:
            raise ValueError(f"{self.table.name} is not partitioned by time")
        column = f"t.{quote_column(by.column)}"
        first, end = (f"cast({literal(text)} as {by.type})" for text in by.bounds(self.interval))
        return f"cast({column} as string)", f" WHERE {column} >= {first} AND {column} < {end}", " GROUP BY period"

    def _hash_expression(self, half: str, columns: ColumnSet) -> str:
        values = (part for name in columns for part in _hash_arguments(f"t.{quote_column(name)}", self.types[name]))
        return f"xxhash64({', '.join([literal(half), *values])})"

    def _build_content(self, index: int, row: Sequence[Any] | None) -> Content:
        columns = [(name, str(self.types[name].simpleString())) for name in self.sets[index]]
        if row is None:
            return empty_content(columns)
        start = 2 + index * len(HALVES) * PARTS
        first, second = (_join_parts(row[at : at + PARTS]) for at in (start, start + PARTS))
        return build_content(columns, row[1], (first, second))


def build_content_query(
    table: Table, fields: Iterable[Any], sets: Iterable[ColumnSet], interval: Interval | None
) -> ContentQuery:
    """Return the query for these column sets, without those that have a missing or unhashable column."""
    fields = tuple(fields)
    types = {field.name.lower(): field.dataType for field in fields}
    can = {field.name.lower() for field in fields if _is_hashable(field.dataType) and not char_type(field)}
    return ContentQuery(table, types, tuple(names for names in dict.fromkeys(sets) if can.issuperset(names)), interval)


def _split_hash(name: str) -> tuple[str, ...]:
    """Split a 64-bit hash into parts, the lowest bits first."""
    mask = 2**BITS - 1
    return f"{name} & {mask}", f"shiftrightunsigned({name}, {BITS}) & {mask}", f"shiftrightunsigned({name}, {2 * BITS})"


def _join_parts(parts: Iterable[int]) -> int:
    return sum(part << BITS * index for index, part in enumerate(parts))


def _is_hashable(kind: Any) -> bool:
    """Return True if a hash identifies values of this type: no variants, no intervals, nothing unknown."""
    match kind.typeName():
        case "array":
            return _is_hashable(kind.elementType)
        case "map":
            return _is_hashable(kind.keyType) and _is_hashable(kind.valueType)
        case "struct":
            return all(_is_hashable(field.dataType) for field in kind.fields)
        case name:
            return name in PLAIN or name in ("float", "double", "string")


def _hash_arguments(value: str, kind: Any, depth: int = 0) -> list[str]:
    """Return the arguments of `xxhash64` for a value, so that different values of the type are different lists."""
    null, element = f"isnull({value})", f"x{depth}"
    match kind.typeName():
        case "string":
            return [null, f"cast({value} as binary)"]
        case "float" | "double":
            return [null, value, f"({value} = 0 AND startswith(cast({value} as string), '-'))"]
        case "struct":
            fields = (
                _hash_arguments(f"{value}.{quote_column(field.name)}", field.dataType, depth) for field in kind.fields
            )
            return [null, *(part for field in fields for part in field)]
        case "array":
            inner = ", ".join(_hash_arguments(element, kind.elementType, depth + 1))
            return [null, f"size({value})", f"transform({value}, {element} -> struct({inner}))"]
        case "map":
            pair = _hash_arguments(f"{element}.key", kind.keyType, depth + 1) + _hash_arguments(
                f"{element}.value", kind.valueType, depth + 1
            )
            return [null, f"size({value})", f"transform(map_entries({value}), {element} -> struct({', '.join(pair)}))"]
        case _:
            return [null, value]
