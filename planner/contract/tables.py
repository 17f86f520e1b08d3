"""How two tables differ, and what a column is made from."""

from pydantic import Field

from mergeplan.planner.contract.base import Data, How, Names, Sample, Spans
from mergeplan.planner.data_field import describe


class SchemaDifference(Data):
    """The columns that only one of the tables has, or with another type."""

    added: tuple[tuple[str, str], ...] = describe((), "name and type")
    removed: tuple[tuple[str, str], ...] = describe((), "name and type")
    retyped: tuple[tuple[str, str, str], ...] = describe((), "name, old type, new type")
    uncompared: Names = describe((), "of these, columns that were not compared, as no type holds both")


class RowCounts(Data):
    """How many rows are where."""

    first: int = Field(description="rows of the first")
    second: int = Field(description="rows of the second")
    only_first: int = Field(description="rows that only the first has")
    only_second: int = Field(description="rows that only the second has")
    common: int = Field(description="rows that both have")
    matched: int = Field(description="of these, rows that are the same")
    changed: int = Field(description="of these, rows that differ")
    null_keys: tuple[int, int] = Field(description="of both: rows whose key holds a NULL")
    duplicate_keys: tuple[int, int] = Field(description="of both: keys with several rows")


class ColumnDifference(Data):
    """A compared column."""

    name: str = Field(description="the column")
    changed: int = Field(description="common rows that differ there")


class DifferenceSamples(Data):
    """Rows that differ; empty without `--show-sample`."""

    changed: Sample = describe(Sample(), "the key, then `s__name` and `t__name` of each column")
    only_first: Sample = describe(Sample(), "rows that only the first has")
    only_second: Sample = describe(Sample(), "rows that only the second has")


_SCHEMA = Field(
    default=SchemaDifference(),
    validation_alias="schema",
    serialization_alias="schema",
    description="`added`, `removed` (name, type) and `retyped` (name, old type, new type)",
)


class TableDifference(Data):
    """How two tables differ."""

    model: str | None = describe(None, "the model, or null when tables were named")
    first: str = Field(description="the first environment or table")
    second: str = Field(description="the second")
    same: bool = Field(description="the same columns and rows")
    key: Names = describe((), "the columns of the key; empty when whole rows were compared")
    columns_differ: SchemaDifference = _SCHEMA
    rows: RowCounts | None = describe(None, "how many rows are where; null with `same_files`: none was read")
    same_files: bool = describe(False, "made of the same files: what both have of columns holds the same rows")
    columns: tuple[ColumnDifference, ...] = describe((), "each compared column; none with `same_files`")
    samples: DifferenceSamples = describe(DifferenceSamples(), "rows that differ")


class NullabilityRow(Data):
    """A column that a blocking audit `not_null` begins or ceases to guard."""

    column: str = Field(description="the column")
    nullable: bool = Field(description="from now on it may hold NULLs")


class DataDifference(Data):
    """What a change does to the rows of a model: its table in prod, and in the environment."""

    model: str = Field(description="the model")
    columns_differ: SchemaDifference = _SCHEMA
    nullability: tuple[NullabilityRow, ...] = describe((), "columns, by the audits `not_null`")
    before: int | None = describe(None, "rows in prod in the compared time, null when not counted")
    after: int | None = describe(None, "rows in the environment")
    rows: RowCounts | None = describe(None, "null: they were not compared, and `note` says why")
    columns: tuple[ColumnDifference, ...] = describe((), "each compared column")
    key: Names = describe((), "the columns of the key; empty when whole rows were compared")
    days: Spans = describe((), "the time that both tables hold; empty: all rows were compared")
    left_out: Spans = describe((), "the time that only prod's table holds, and was not compared")
    samples: DifferenceSamples = describe(DifferenceSamples(), "rows that differ, masked")
    note: str = describe("", "what is to be known about the numbers, or why there are none")
    is_off: bool = describe(False, "rows were not to be looked at")
    same_files: bool = describe(False, "both are made of the same files: rows were counted, not read")
    seconds: float = describe(0.0, "how long it took")


class LineageEnd(Data):
    """A column of a model; null: its rows, `*`: every column and the rows, where it is not known which."""

    model: str = Field(description="the model or table")
    column: str | None = describe(None, "its column")


class LineageNode(LineageEnd):
    """Something that was reached."""

    kind: str | None = describe(None, "null: a table that no file declares")


class LineageEdge(Data):
    """`from` goes into `to`, in both directions."""

    source: LineageEnd = Field(validation_alias="from", serialization_alias="from", description="what goes in")
    target: LineageEnd = Field(validation_alias="to", serialization_alias="to", description="where it goes")
    how: How = Field(
        description="`made_from` (the value is computed from it), `decides_rows`, or `every_column` (the query of `to` "
        "is not followed)"
    )


class Unfollowed(Data):
    """A query that cannot be followed column by column."""

    model: str = Field(description="the model")
    reason: str = Field(description="why")
