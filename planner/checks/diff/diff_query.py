"""The SQL that compares two tables: each one's rows with their hashes, both together, and both joined by key."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ParseError

from mergeplan.planner.naming import quote_column, quote_fields
from mergeplan.planner.parsing.macros.expand import spark_tree

BUCKETS = 16_384  # so many that a difference in a thousand rows of a table of millions leaves most of them equal
WORD = 32  # buckets to a number of a bit map
LISTED = 1000  # buckets that a filter names one by one
DECIMALS = 3  # of floating point numbers that count
EXACT = frozenset(
    "BOOLEAN TINYINT SMALLINT INT BIGINT DECIMAL DATE TIMESTAMP TIMESTAMPTZ TIMESTAMPLTZ TIMESTAMPNTZ BINARY".split()
)


TEXTS = frozenset({"TEXT", "VARCHAR", "CHAR"})
WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
NUMBERS = frozenset({*WHOLE, "DECIMAL", "FLOAT", "DOUBLE"})
AS_TEXT = frozenset({*WHOLE, "DECIMAL", "BOOLEAN", "DATE"})  # which Spark writes in one way
HASHED = EXACT | TEXTS | {"FLOAT", "DOUBLE"}  # equal values have equal hashes


def compared_type(old: str, new: str) -> str | None:
    """Return the type by which a column is compared that has another type in each table; None if there is none.

    >>> compared_type("int", "bigint"), compared_type("double", "decimal(10,2)"), compared_type("int", "date")
    ('BIGINT', 'DOUBLE', None)
    """
    if old == new:
        return old
    kinds: list[str] = [_parse_type(text).this.name for text in (old, new)]
    if all(kind in WHOLE for kind in kinds):
        return max(kinds, key=WHOLE.index)
    if NUMBERS.issuperset(kinds):
        return "DOUBLE"
    is_text = "COLLATE" not in f"{old} {new}".upper() and all(kind in AS_TEXT | TEXTS for kind in kinds)
    return "STRING" if is_text and not TEXTS.isdisjoint(kinds) else None


def bucket_condition(buckets: Sequence[int]) -> str:
    """Return the condition that a row is in one of the buckets; for thousands of them it is a short bit map."""
    if len(buckets) <= LISTED:
        return f"b IN ({', '.join(map(str, buckets))})"
    words = [0] * (BUCKETS // WORD)
    for bucket in buckets:
        words[bucket // WORD] |= 1 << bucket % WORD
    listed = ", ".join(f"{word}L" for word in words)
    return f"GETBIT(ARRAY({listed})[INT(b DIV {WORD})], INT(b % {WORD})) = 1"


@dataclass(frozen=True)
class DiffOptions:
    """The options of a comparison; `renamed` are (name in the first table, name in the second)."""

    on: tuple[str, ...] = ()  # the key; () means whole rows
    where: str = ""  # Spark SQL over the second table's names
    skip: frozenset[str] = frozenset()
    decimals: int = DECIMALS
    renamed: tuple[tuple[str, str], ...] = ()
    samples: int = 0  # rows of each sort


@dataclass(frozen=True)
class ComparedColumn:
    """A column of both tables: its name in each, and its type, to which both are cast if they differ."""

    name: str
    first: str
    second: str
    type: str
    casts: bool = False


@dataclass(frozen=True)
class DiffQuery:
    """Two tables with the columns to compare; every expression is over a row of one of them."""

    tables: tuple[str, str]
    key: tuple[ComparedColumn, ...]
    values: tuple[ComparedColumn, ...]
    options: DiffOptions

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in (*self.key, *self.values))

    @property
    def is_plain(self) -> bool:
        """True if all rows are compared, and each column with the one of its own name and type."""
        columns = (*self.key, *self.values)
        return not self.options.where and all(column.first == column.second and not column.casts for column in columns)

    def rows(self, side: int, shown: Iterable[str]) -> str:
        """Return one table's rows with the columns `shown`.

        These are SQL over `k0...`, `v0...` (canonical values), `b` (bucket), `kh` and `h` (hashes).
        """
        named = [(f"k{n}", column) for n, column in enumerate(self.key)] + [
            (f"v{n}", v) for n, v in enumerate(self.values)
        ]
        cells = ", ".join(f"{self._canonical_sql(column, side)} AS {name}" for name, column in named)
        key_parts = [
            part for name, column in named if name[0] == "k" for part in _hash_parts(name, _parse_type(column.type))
        ]
        value_parts = [
            part for name, column in named if name[0] == "v" for part in _hash_parts(name, _parse_type(column.type))
        ]
        inner = f"SELECT {cells} FROM {self.tables[side]} AS t{self._where_clause(side)}"
        keyed = f"SELECT *, XXHASH64({', '.join(key_parts)}) AS kh FROM ({inner})"
        hashed = f"SELECT *, PMOD(kh, {BUCKETS}) AS b, XXHASH64({', '.join(['kh', *value_parts])}) AS h FROM ({keyed})"
        return f"SELECT {', '.join(shown)} FROM ({hashed})"

    def both(self, shown: Iterable[str]) -> str:
        """Return both tables' rows in one query, with `side` as 0 or 1."""
        listed = list(shown)
        return " UNION ALL ".join(self.rows(side, [f"{side} AS side", *listed]) for side in (0, 1))

    def null_key(self, prefix: str = "") -> str:
        """Return the condition that a part of the key is NULL; `prefix` is `a.` or `b.` in the join."""
        return " OR ".join(f"{prefix}k{n} IS NULL" for n in range(len(self.key)))

    @property
    def joins_by_hash(self) -> bool:
        """True if equal keys certainly have equal hashes and joining by them is faster.

        No collation or nested value may decide equality. Keys of numbers and times alone are often stored in their
        order, and are sorted faster.
        """
        kinds = {_parse_type(column.type).this.name for column in self.key}
        return not any(map(_has_collation, self.key)) and kinds <= HASHED and not kinds <= EXACT

    def join_clause(self, inside: str, numbered: bool, *, to_count: bool = False) -> str:
        """Return FROM and JOIN of both tables as `a` and `b`; `numbered` pairs the rows of a key that has several.

        `to_count` has texts among the values as their hashes (64 bits, as buckets are compared): less to sort.
        """
        keys = [f"k{n}" for n in range(len(self.key))]
        values = [
            f"XXHASH64(v{n}) AS v{n}" if to_count and _is_text(column) else f"v{n}"
            for n, column in enumerate(self.values)
        ]
        by = ", ".join(keys)
        number = f"ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY h) AS rn" if numbered else "1 AS rn"
        sides = (f"({self.rows(side, [*keys, *values, 'kh', number])}{inside})" for side in (0, 1))
        matched = " AND ".join(f"a.{name} <=> b.{name}" for name in keys)
        if self.joins_by_hash:
            # One number is joined by, which is far faster than keys that may be NULL. They are compared all the same:
            # the OR, which is never true, keeps Spark from joining by them too.
            matched = f"a.kh = b.kh AND (({matched}) OR a.kh > b.kh)"
        matched += " AND a.rn = b.rn"
        return " FULL OUTER JOIN ".join(f"{query} AS {alias}" for query, alias in zip(sides, "ab", strict=True)) + (
            f" ON {matched}"
        )

    def _canonical_sql(self, column: ComparedColumn, side: int) -> str:
        """Return SQL for the common value of all values that count as equal."""
        name = f"t.{quote_column(column.second if side else column.first)}"
        name = f"CAST({name} AS {column.type})" if column.casts else name
        kind = _parse_type(column.type)
        if kind.this in (exp.DType.FLOAT, exp.DType.DOUBLE):
            value, scale = f"CAST({name} AS DOUBLE)", f"1E{self.options.decimals}D"  # ROUND is ten times slower
            return f"IF(ABS({value}) < 1E15D, RINT({value} * {scale}) / {scale}, {value}) + 0.0D"
        if kind.this is exp.DType.MAP:
            return f"ARRAY_SORT(MAP_ENTRIES({name}))"
        if kind.this is exp.DType.VARIANT:  # as text the number 1 is the string '1', and a null within it NULL
            return f"SCHEMA_OF_VARIANT({name}) || ' ' || TO_JSON({name})"
        if kind.this not in (exp.DType.ARRAY, exp.DType.STRUCT, exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR):
            return name if kind.this.name in EXACT else f"CAST({name} AS STRING)"
        return name

    def _where_clause(self, side: int) -> str:
        """Return the WHERE of one side; the condition has the second table's names, replaced for the first side."""
        if not self.options.where:
            return ""
        tree = spark_tree(self.options.where).copy()
        old_names = {new: old for old, new in self.options.renamed}
        for column in tree.find_all(exp.Column) if side == 0 else ():
            if (old := old_names.get(column.name.lower())) is not None:
                column.set("this", exp.to_identifier(old, quoted=True))
        return f" WHERE {tree.sql('spark')}"


def _is_text(column: ComparedColumn) -> bool:
    """Return True for texts without a collation, whose equal values have equal hashes."""
    return _parse_type(column.type).this.name in TEXTS and not _has_collation(column)


def _has_collation(column: ComparedColumn) -> bool:
    return "COLLATE" in column.type.upper()


def _parse_type(text: str) -> exp.DataType:
    """Return a type as a tree; UNKNOWN, which is compared as text, if it cannot be parsed."""
    try:
        built = exp.DataType.build(quote_fields(text), dialect="spark")
    except (ParseError, ValueError):
        built = None
    return built if isinstance(built, exp.DataType) else exp.DataType(this=exp.DType.UNKNOWN)


def _hash_parts(value: str, kind: exp.DataType, depth: int = 0) -> list[str]:
    """Return the hashed parts of a canonical value: Spark's hash skips NULLs and runs array elements together."""
    null, element = f"ISNULL({value})", f"x{depth}"
    inner = [part for part in kind.expressions if isinstance(part, exp.DataType)]
    match kind.this:
        case exp.DType.ARRAY if inner:
            parts = ", ".join(_hash_parts(element, inner[0], depth + 1))
            return [null, f"SIZE({value})", f"TRANSFORM({value}, {element} -> STRUCT({parts}))"]
        case exp.DType.MAP if len(inner) == 2:
            pair = _hash_parts(f"{element}.key", inner[0], depth + 1) + _hash_parts(
                f"{element}.value", inner[1], depth + 1
            )
            entries = value if depth == 0 else f"ARRAY_SORT(MAP_ENTRIES({value}))"
            return [null, f"SIZE({value})", f"TRANSFORM({entries}, {element} -> STRUCT({', '.join(pair)}))"]
        case exp.DType.STRUCT:
            fields = (
                _hash_parts(f"{value}.{quote_column(field.name)}", field.args["kind"], depth)
                for field in kind.expressions
                if isinstance(field, exp.ColumnDef)
            )
            return [null, *(part for field in fields for part in field)]
        case _:
            return [null, value]
