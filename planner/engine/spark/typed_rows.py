"""Rows on their way into a table, in its types, and on their way out of Spark, with their times in UTC."""

import re
from datetime import UTC, datetime

from mergeplan.planner.engine.spark.session import Frame
from mergeplan.planner.engine.spark.type_text import type_text
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import QueryError
from mergeplan.planner.naming import quote_column

_MONTHS = re.compile(r"\binterval\b(?!:)(?! (?:day|hour|minute|second))")  # of a type, nested or not
# A cast would give the time of the session's own zone.
_IN_UTC = "timestampadd(MICROSECOND, unix_micros({0}), timestamp_ntz '1970-01-01 00:00:00')"


def cast_frame(table: Table, frame: Frame) -> Frame:
    """Return a frame's rows in the table's types, with all columns that the table is partitioned by."""
    casts = _cast_columns(table, frame)
    if not _has_table_types(table, frame):
        frame = frame.selectExpr(*casts)
    parts = {
        part.column: f"cast({part.expression} as {part.type}) {quote_column(part.column)}"
        for part in table.partition_columns
    }
    if not parts:
        return frame
    visible = [parts.pop(column.name, quote_column(column.name)) for column in table.columns]
    return frame.selectExpr(*visible, *parts.values())


def bad_cell(table: Table, frame: Frame) -> QueryError | None:
    """Return the error of the first cell that is no value of its column's type; column `#` numbers the frame's rows."""
    cases = " ".join(
        f"WHEN {quote_column(c.name)} IS NOT NULL AND try_cast({quote_column(c.name)} as {c.type}) IS NULL THEN {index}"
        for index, c in enumerate(table.columns)
    )
    try:
        bad = frame.selectExpr("*", f"CASE {cases} END `#bad`").where("`#bad` IS NOT NULL").orderBy("`#`").first()
    except Exception:  # there is no such cast at all, as the first error states
        return None
    if bad is None:
        return None
    column = table.columns[bad["#bad"]]
    message = f"row {bad['#']}, column '{column.name}': '{bad[column.name]}' is not a value of type {column.type}."
    return QueryError(message, position=(int(bad["#"]) + 1, 0))  # below the header


def fetch_rows(frame: Frame) -> tuple[tuple[object, ...], ...]:
    """Return a frame's rows, with instants as aware datetimes in UTC, whatever the machine's time zone.

    pyspark gives instants as naive local times, which do not even tell the two hours of an autumn night apart. It has
    no value for an interval of months, which is returned as text.
    """
    types = [field.dataType for field in frame.schema.fields]
    instants = [n for n, kind in enumerate(types) if kind.typeName() == "timestamp"]
    months = [n for n, kind in enumerate(types) if _MONTHS.search(kind.simpleString())]
    if not instants and not months:
        return tuple(tuple(row) for row in frame.collect())
    forms = dict.fromkeys(instants, _IN_UTC) | dict.fromkeys(months, "CAST({0} AS STRING)")
    names = [f"c{n}" for n in range(len(frame.columns))]
    columns = [f"{forms.get(n, '{0}').format(name)} {name}" for n, name in enumerate(names)]
    rows = (list(row) for row in frame.toDF(*names).selectExpr(*columns).collect())
    return tuple(
        tuple(v.replace(tzinfo=UTC) if n in instants and isinstance(v, datetime) else v for n, v in enumerate(row))
        for row in rows
    )


def _has_table_types(table: Table, frame: Frame) -> bool:
    """Return True if a frame has just the table's columns, so that casts would change nothing.

    What a type leaves out (the length of a CHAR, a comment) is in a column's metadata.
    """
    fields = frame.schema.fields
    return [(field.name, type_text(field.dataType)) for field in fields] == [
        (column.name, column.type) for column in table.columns
    ] and not any(field.metadata for field in fields)


def _cast_columns(table: Table, frame: Frame) -> list[str]:
    """Return the table's columns cast from a frame's, by name; raise QueryError if the names differ."""
    table_columns = [column.name.lower() for column in table.columns]
    frame_columns = [name.lower() for name in frame.columns]
    for names, other_names, verb in (
        (table_columns, frame_columns, "lacks"),
        (frame_columns, table_columns, "has an unexpected"),
    ):
        if odd := [name for name in names if name not in other_names]:
            raise QueryError(f"the query for {table.name} {verb} column {', '.join(repr(name) for name in odd)}.")
    return [f"cast({quote_column(c.name)} as {c.type}) {quote_column(c.name)}" for c in table.columns]
