"""Differences between two tables: their columns, and their rows by key; as the SQL to run and the data of its results.

A few rows of both show what is likely. If none of them differs, Spark computes the number of rows and four hashes over
all of them and reads each side once: equal tables take no more. Otherwise the rows are grouped into buckets by their
key, and each bucket is compared in the same way. Only the rows of buckets that differ are joined, row by row, NULL
equal to NULL. If the tables seem to differ throughout, all rows are joined at once. Tables that are the same files hold
the same rows, and none is read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mergeplan.planner.checks.diff.diff_query import (
    BUCKETS,
    ComparedColumn,
    DiffOptions,
    DiffQuery,
    bucket_condition,
    compared_type,
)
from mergeplan.planner.engine.protocol import Engine, Rows, Value
from mergeplan.planner.engine.table import HIDDEN_COLUMN
from mergeplan.planner.engine.table_files import same_rows
from mergeplan.planner.errors import QueryError, RequestError
from mergeplan.planner.model.model import Column
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.sql.tokens import did_you_mean

CROWDED = 1.5  # factor by which a join may multiply rows before the rows of each key are counted
MOST = 0.6  # of all rows in buckets that differ, up to which the others are filtered out before the join
SAMPLE = 1000  # rows with which a table begins
THROUGHOUT = 0.05  # of the rows that both tables begin with, from which on too many buckets differ
NO_ROWS = Rows((), ())
LOW = 4_294_967_295  # the lower half of a hash: whole hashes would overflow when they are summed
# Bits of a hash that are summed over a whole table: sums of halves would overflow in one of four billion rows.
PART = 22
SUMS = (f"SUM(SHIFTRIGHTUNSIGNED(h, {bit}) & {2**PART - 1})" for bit in range(0, 64, PART))
HASHES = ", ".join(("COUNT(*)", "BIT_XOR(h)", *SUMS))  # equal for tables of the same rows


@dataclass(frozen=True)
class SchemaDiff:
    """The columns that only one table has, and those of another type: (name, type) and (name, old, new)."""

    added: tuple[tuple[str, str], ...] = ()
    removed: tuple[tuple[str, str], ...] = ()
    retyped: tuple[tuple[str, str, str], ...] = ()

    @property
    def same(self) -> bool:
        return not (self.added or self.removed or self.retyped)

    @property
    def uncompared(self) -> tuple[str, ...]:
        """The columns of both tables whose types have nothing in common by which they could be compared."""
        return tuple(name for name, old, new in self.retyped if compared_type(old, new) is None)


@dataclass(frozen=True)
class RowDiff:
    """Numbers of rows, and of keys; `columns` are those compared, with the number of common rows that differ there."""

    counts: tuple[int, int] = (0, 0)
    only: tuple[int, int] = (0, 0)
    common: int = 0
    changed: int = 0
    columns: tuple[tuple[str, int], ...] = ()
    null_keys: tuple[int, int] = (0, 0)  # rows whose key holds a NULL
    duplicate_keys: tuple[int, int] = (0, 0)  # keys of several rows, in the buckets that differ
    buckets: int = 0  # that differ

    @property
    def same(self) -> bool:
        return self.only == (0, 0) and self.changed == 0

    @property
    def matched(self) -> int:
        """Common rows that are equal in every compared column."""
        return self.common - self.changed


@dataclass(frozen=True)
class Samples:
    """Some of the rows that differ; of changed ones the key, then each column of both tables side by side."""

    changed: Rows = NO_ROWS
    only_first: Rows = NO_ROWS
    only_second: Rows = NO_ROWS


@dataclass(frozen=True)
class TableDiff:
    """The difference of the second table from the first."""

    names: tuple[str, str]
    key: tuple[str, ...]  # () when whole rows were compared
    schema: SchemaDiff
    rows: RowDiff
    samples: Samples = field(default_factory=Samples)
    model: str = ""
    same_files: bool = False  # the rows are the same; none was read or counted

    @property
    def same(self) -> bool:
        return self.schema.same and self.rows.same


def compare_tables(
    engine: Engine,
    names: tuple[str, str],
    tables: tuple[str, str],
    options: DiffOptions,
    model: str = "",
    by_files: bool = False,
) -> TableDiff:
    """Compare the second table with the first; raise RequestError for an unknown column, or QueryError.

    `by_files` says that both are names of tables whose files are never overwritten: files are compared before any row.
    """
    first, second = (
        tuple(column for column in engine.schema(f"SELECT * FROM {table}") if column.name != HIDDEN_COLUMN)
        for table in tables
    )
    renamed, common = _common_columns(first, second, options)
    schema = schema_diff(renamed, second)
    question = _make_question(tables, common, options)
    if not question.key:
        raise RequestError(f"{names[0]} and {names[1]} have no column in common.")
    key = tuple(column.name for column in question.key) if options.on else ()
    if by_files and question.is_plain and are_same_files(engine, tables, question.names):
        return TableDiff(names, key, schema, RowDiff(), model=model, same_files=True)
    return TableDiff(names, key, schema, *_diff_rows(engine, question), model)


def _diff_rows(engine: Engine, question: DiffQuery) -> tuple[RowDiff, Samples]:
    buckets = _find_buckets(engine, question)
    rows, samples, numbered = buckets.rows, Samples(), buckets.crowded
    if rows.buckets:
        if not numbered:
            rows, numbered = _compare_by_key(engine, question, buckets, numbered=False)
        if numbered:
            counted = (
                f"SELECT side, kh, COUNT(*) AS c FROM ({question.both(['b', 'kh'])}){buckets.inside} GROUP BY side, kh"
            )
            several = f"SELECT side, COUNT(*) FROM ({counted}) WHERE c > 1 GROUP BY side"
            duplicates = {_whole_number(side): _whole_number(count) for side, count in engine.fetch(several).rows}
            rows = replace(
                _compare_by_key(engine, question, buckets, numbered=True)[0],
                duplicate_keys=(duplicates.get(0, 0), duplicates.get(1, 0)),
            )
        if question.options.samples:
            samples = _fetch_samples(engine, question, buckets.inside, numbered)
    return replace(rows, columns=rows.columns or tuple((column.name, 0) for column in question.values)), samples


def schema_diff(first: Sequence[Column], second: Sequence[Column]) -> SchemaDiff:
    """Return the changes from the first table's columns to the second's; names in lower case, as in Spark."""
    old, new = ({column.name: column for column in columns} for columns in (first, second))
    return SchemaDiff(
        tuple((column.name, column.type) for name, column in new.items() if name not in old),
        tuple((column.name, column.type) for name, column in old.items() if name not in new),
        tuple((name, c.type, new[name].type) for name, c in old.items() if name in new and new[name].type != c.type),
    )


def _common_columns(
    first: Sequence[Column], second: Sequence[Column], options: DiffOptions
) -> tuple[tuple[Column, ...], tuple[ComparedColumn, ...]]:
    """Return the first table's columns under the second's names, and the comparable ones, by a type for both."""
    new_names, first_columns = dict(options.renamed), {column.name for column in first}
    for old in new_names:
        if old not in first_columns:
            raise RequestError(f"`--rename`: there is no column `{old}`.", hint=did_you_mean(old, first_columns))
    named = tuple(
        (Column(new_names.get(first_column.name, first_column.name), first_column.type), first_column.name)
        for first_column in first
    )
    new = {column.name: column for column in second}
    for name in sorted(options.skip - new.keys() - {column.name for column, _ in named}):
        raise RequestError(f"`--skip-columns`: there is no column `{name}`.", hint=did_you_mean(name, new))
    common = tuple(
        ComparedColumn(column.name, old, column.name, type_, new[column.name].type != column.type)
        for column, old in named
        if column.name in new and (type_ := compared_type(column.type, new[column.name].type))
    )
    return tuple(column for column, _ in named), common


def _make_question(tables: tuple[str, str], common: Sequence[ComparedColumn], options: DiffOptions) -> DiffQuery:
    by_name = {column.name: column for column in common}
    for name in options.on:
        if name not in by_name or by_name[name].casts:
            raise RequestError(
                f"The key `{name}` is not a column that both tables have with the same type.",
                hint=did_you_mean(name, by_name),
            )
    compared_columns = tuple(column for name, column in by_name.items() if name not in options.skip)
    if not options.on:
        return DiffQuery(tables, compared_columns, (), options)
    values = tuple(column for column in compared_columns if column.name not in options.on)
    return DiffQuery(tables, tuple(by_name[name] for name in options.on), values, options)


@dataclass(frozen=True)
class _Buckets:
    """The results of the buckets.

    `rows` are numbers of rows (`common` those of equal buckets), and `inside` is the WHERE of the differing ones.
    `held` is the number of rows that these have in either table (None: nothing is counted yet). `crowded` says whether
    keys seem to have several rows.
    """

    rows: RowDiff
    inside: str
    held: tuple[int, int] | None
    crowded: bool


UNCOUNTED = _Buckets(RowDiff(buckets=BUCKETS), "", None, crowded=False)  # all rows are joined, and counted then


def _find_buckets(engine: Engine, question: DiffQuery) -> _Buckets:
    """Return the buckets that differ, in the way that seems the fastest by the first rows of both tables."""
    if question.options.where:  # many rows may have to be read until a few are found
        return _equal_tables(engine, question) or _compare_buckets(engine, question)
    sides = (engine.fetch(question.rows(side, ["kh", "h"]), SAMPLE).rows for side in (0, 1))
    first, second = ({row[0]: row[1] for row in rows} for rows in sides)
    common = first.keys() & second.keys()
    differing = sum(first[key] != second[key] for key in common)
    if len(common) >= SAMPLE // 10 and differing > THROUGHOUT * len(common):
        return UNCOUNTED  # hardly a bucket could be equal: comparing them only costs time
    lacking = SAMPLE // 2 < len(common) < max(len(first), len(second))  # tables in one order, and a row in only one
    equal = None if differing or lacking else _equal_tables(engine, question)
    return equal or _compare_buckets(engine, question)


def _equal_tables(engine: Engine, question: DiffQuery) -> _Buckets | None:
    """Return the counts of two tables with the same rows, by hashes over all rows of each; None if they differ."""
    shown = ["h", f"IF({question.null_key()}, 1, 0) AS nk"]
    sides = (f"SELECT {at}, SUM(nk), {HASHES} FROM ({question.rows(at, shown)})" for at in (0, 1))
    first, second = sorted(tuple(map(_whole_number, row)) for row in engine.fetch(" UNION ALL ".join(sides)).rows)
    if first[2:] != second[2:]:
        return None
    rows = RowDiff((first[2], second[2]), common=first[2], null_keys=(first[1], second[1]))
    return _Buckets(rows, "", (0, 0), crowded=False)


def _compare_buckets(engine: Engine, question: DiffQuery) -> _Buckets:
    """Return the buckets of both tables from one pass: Spark compares them and returns one row."""
    # Each side is grouped by itself: Spark compiles reading, hashing and grouping into one loop only below a UNION.
    shown = ["b", "h", f"IF({question.null_key()}, 1, 0) AS nk"]
    summed = f"COUNT(*) AS c, BIT_XOR(h) AS x, SUM(h & {LOW}) AS s, SUM(nk) AS n"
    sides = (f"SELECT {at} AS side, b, {summed} FROM ({question.rows(at, shown)}) GROUP BY b" for at in (0, 1))
    counts = "SUM(IF(side = 0, c, 0)) AS c0, SUM(IF(side = 1, c, 0)) AS c1, SUM(IF(side = 0, n, 0)) AS n0, SUM(n) AS n"
    hashes = "BIT_XOR(x) AS x, SUM(IF(side = 0, s, -s)) AS s"  # both are 0 for equal sides
    grouped = f"SELECT b, {counts}, {hashes} FROM ({' UNION ALL '.join(sides)}) GROUP BY b"
    compared = f"SELECT *, c0 <> c1 OR x <> 0 OR s <> 0 AS d FROM ({grouped})"
    sums = ["c0", "c1", "n0", "n - n0", "IF(d, c0, 0)", "IF(d, c1, 0)"]
    # A square as DOUBLE: of whole numbers it might be too large.
    sums_of = [f"SUM({expression})" for expression in sums] + [f"SUM(DOUBLE(c{side}) * c{side})" for side in (0, 1)]
    (answer,) = engine.fetch(f"SELECT {', '.join(sums_of)}, COLLECT_LIST(IF(d, b, NULL)) FROM ({compared})").rows
    first, second, *nulls, held_first, held_second = (_whole_number(cell) for cell in answer[:6])
    squares, listed = (float(str(cell or 0)) for cell in answer[6:8]), answer[8]
    differing = sorted(_whole_number(bucket) for bucket in listed) if isinstance(listed, Iterable) else []
    few = held_first + held_second <= MOST * (first + second)
    return _Buckets(
        RowDiff((first, second), common=first - held_first, null_keys=(nulls[0], nulls[1]), buckets=len(differing)),
        f" WHERE {bucket_condition(differing)}" if few else "",
        (held_first, held_second) if few else (first, second),
        any(_bucket_dispersion(*pair) > CROWDED for pair in zip((first, second), squares, strict=True)),
    )


def _bucket_dispersion(rows: int, squares: float) -> float:
    """Return how unequal buckets are: about n if each key has n rows, the factor by which a join multiplies rows."""
    mean = rows / BUCKETS
    return (squares / BUCKETS - mean**2) / mean if mean else 0.0


def _compare_by_key(engine: Engine, question: DiffQuery, buckets: _Buckets, *, numbered: bool) -> tuple[RowDiff, bool]:
    """Return all counts after joining the rows of differing buckets by key, and whether a key joined several rows."""
    joined_rows = "a.rn IS NOT NULL AND b.rn IS NOT NULL"
    differs = [f"NOT (a.v{n} <=> b.v{n})" for n in range(len(question.values))]
    counts = ["b.rn IS NULL", "a.rn IS NULL", joined_rows, f"{joined_rows} AND ({' OR '.join(differs) or 'FALSE'})"]
    counts += [f"{side}.rn IS NOT NULL AND ({question.null_key(side + '.')})" for side in "ab"]
    counts += [f"{joined_rows} AND {condition}" for condition in differs]
    aggregates = [f"COUNT_IF({condition})" for condition in counts]
    if buckets.held is None:  # files state the number of their rows, and are not read for it
        aggregates += [f"(SELECT COUNT(*) FROM {table})" for table in question.tables]
    joined = question.join_clause(buckets.inside, numbered, to_count=True)
    (answer,) = engine.fetch(f"SELECT {', '.join(aggregates)} FROM {joined}").rows
    first, second, common, changed, *nulls = (_whole_number(cell) for cell in answer[:6])
    changes = (_whole_number(cell) for cell in answer[6 : len(counts)])
    row_counts = buckets.held or (_whole_number(answer[-2]), _whole_number(answer[-1]))
    rows = replace(
        buckets.rows,
        counts=buckets.rows.counts if buckets.held else row_counts,
        only=(first, second),
        # Without a filter the equal buckets are joined too.
        common=common + (buckets.rows.common if buckets.inside else 0),
        changed=changed,
        null_keys=buckets.rows.null_keys if buckets.held else (nulls[0], nulls[1]),
        columns=tuple((column.name, count) for column, count in zip(question.values, changes, strict=True)),
    )
    return rows, (first + common, second + common) != row_counts


def _fetch_samples(engine: Engine, question: DiffQuery, inside: str, numbered: bool) -> Samples:
    joined, limit = question.join_clause(inside, numbered), question.options.samples
    order = ", ".join(str(n + 1) for n in range(len(question.key)))
    keys = [(f"k{n}", column.name) for n, column in enumerate(question.key)]
    values = [(f"v{n}", column.name) for n, column in enumerate(question.values)]

    def fetch_rows(shown: Sequence[tuple[str, str]], where: str) -> Rows:
        cells = ", ".join(f"{sql} AS {quote_column(name)}" for sql, name in shown)
        return engine.fetch(f"SELECT {cells} FROM {joined} WHERE {where} ORDER BY {order} LIMIT {limit}")

    differs = " OR ".join(f"NOT (a.{sql} <=> b.{sql})" for sql, _ in values)
    sides = [(f"{a}.{sql}", f"{prefix}__{name}") for sql, name in values for a, prefix in (("a", "s"), ("b", "t"))]
    changed = (
        fetch_rows([*((f"a.{sql}", name) for sql, name in keys), *sides], f"a.rn = b.rn AND ({differs})")
        if differs
        else None
    )
    only = (
        fetch_rows([(f"{a}.{sql}", name) for sql, name in keys + values], f"{b}.rn IS NULL") for a, b in ("ab", "ba")
    )
    return Samples(changed or NO_ROWS, *only)


def _whole_number(cell: Value) -> int:
    return int(str(cell)) if cell is not None else 0


def find_changed_models(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[str, ...]:
    """Return the models (name -> table) that both environments have, with another table each."""
    return tuple(sorted(name for name in first.keys() & second.keys() if first[name] != second[name]))


def are_same_files(engine: Engine, tables: tuple[str, str], columns: Iterable[str], where: str = "") -> bool:
    """Return True if two tables, or a condition's partitions in both, certainly hold the same rows in these columns.

    No row is read. The caller knows that no process overwrites the tables' files.
    """
    try:
        first = engine.tables.files(tables[0], where)
        return first is not None and same_rows(first, engine.tables.files(tables[1], where), columns)
    except QueryError:  # unknown to Spark: rows may still be read
        return False
