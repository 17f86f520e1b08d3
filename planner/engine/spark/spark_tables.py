"""The physical tables of one Spark: rows in the table's types are handed to the table's format, which commits them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from mergeplan.planner.engine.formats.delta import Delta
from mergeplan.planner.engine.formats.files_of_tables import table_columns
from mergeplan.planner.engine.formats.format_tables import FormatTables
from mergeplan.planner.engine.formats.hive_files import HiveFiles
from mergeplan.planner.engine.formats.iceberg import Iceberg
from mergeplan.planner.engine.formats.merge_into import NativeMerge
from mergeplan.planner.engine.protocol import Expiry, Merge, MergeInto, Written
from mergeplan.planner.engine.spark.content import build_content_query
from mergeplan.planner.engine.spark.described import Described, describe_table
from mergeplan.planner.engine.spark.errors import is_spark
from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.spark.session import Frame
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.engine.spark.typed_rows import bad_cell, cast_frame
from mergeplan.planner.engine.table import Table
from mergeplan.planner.engine.table_files import TableFiles
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.model.model import Column
from mergeplan.planner.model.table_format import TABLE_FORMATS
from mergeplan.planner.naming import quote_column
from mergeplan.planner.snapshot.content_hash import ColumnSet, Found

# Optimizing, a vacuum, a deletion, a restored version and another property leave a late table as late as it was.
DELTA_WRITES = frozenset(
    ("WRITE", "STREAMING UPDATE", "MERGE", "UPDATE", "COPY INTO", "CLONE", "CONVERT", "CREATE TABLE AS SELECT",
     "CREATE OR REPLACE TABLE AS SELECT", "REPLACE TABLE AS SELECT")
)  # fmt: skip
ICEBERG_WRITES = ("append", "overwrite")
FILES = frozenset(("avro", "csv", "json", "orc", "parquet", "text"))  # formats whose files Spark tells the time of


class FormatStore(Protocol):
    """A function that opens the tables of a format on a Spark."""

    def __call__(self, sessions: Sessions, *, comments: bool) -> FormatTables: ...


STORES: Mapping[str, FormatStore] = {"parquet": HiveFiles, "orc": HiveFiles, "delta": Delta, "iceberg": Iceberg}


class SparkTables:
    def __init__(self, sessions: Sessions, *, comments: bool) -> None:
        self._sessions = sessions
        self._formats = {name: store(sessions, comments=comments) for name, store in STORES.items()}

    def create(self, table: Table) -> bool:
        with self._sessions.statement():
            return self._format_tables(table.format).create(table)

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        with self._sessions.statement():
            self._sessions.check()
            self._format_tables(table.format).take_over(table, old, rows)

    def replace(self, table: Table, sql: str, *, is_fresh: bool = False) -> Written:
        # Of a run and the one that waits for its write, only the first saw the table untouched: both write aside.
        right_there = is_fresh and not self._sessions.outlasts

        def write() -> Written:
            with self._sessions.statement(sql):
                frame = cast_frame(table, self._sessions.query(sql))
                return self._format_tables(table.format).replace_all(table, frame, is_fresh=right_there)

        return self._sessions.write_once(("replace", table, sql), write)

    def replace_interval(self, table: Table, sql: str, interval: Interval) -> Written:
        by = table.partitioning
        if by is None:
            raise ValueError(f"{table.name} is not partitioned by time")
        low, high = (f"cast({literal(text)} as {by.type})" for text in by.bounds(interval))
        condition = f"{quote_column(by.column)} >= {low} AND {quote_column(by.column)} < {high}"

        def write() -> Written:
            with self._sessions.statement(sql):
                inside = cast_frame(table, self._sessions.query(sql)).where(condition)
                return self._format_tables(table.format).replace_interval(table, inside, interval)

        return self._sessions.write_once(("replace_interval", table, sql, interval), write)

    def replace_partitions(self, table: Table, sql: str, *, first: Sequence[str] = (), others: bool = False) -> Written:
        def write() -> Written:
            with self._sessions.statement(sql):
                frame = cast_frame(table, self._sessions.query(sql))
                return self._format_tables(table.format).replace_partitions(table, frame, first=first, others=others)

        return self._sessions.write_once(("replace_partitions", table, sql, first, others), write)

    def overwrite(self, table: Table, sql: str, batch_id: str) -> Written:
        def rows() -> Frame:
            return cast_frame(table, self._sessions.query(sql))

        with self._sessions.statement(sql):
            self._sessions.check()
            return self._format_tables(table.format).overwrite(table, rows, batch_id)

    def merge(self, table: Table, merge: Merge, batch_id: str, merge_into: MergeInto | None = None) -> Written:
        def rows(sql: str, mark: str = "") -> Frame:
            marks = (Column(mark, "string"),) if mark else ()
            return cast_frame(replace(table, columns=(*table.columns, *marks)), self._sessions.query(sql))

        # the WHENs of a model omit a column that only its table has
        native = (
            NativeMerge(merge_into, lambda: rows(merge_into.rows, merge_into.mark))
            if merge_into and (not merge_into.matched or not any(column.hidden for column in table.partition_columns))
            else None
        )
        with self._sessions.statement():
            self._sessions.check()
            return self._format_tables(table.format).merge(table, lambda base: rows(merge(base)), batch_id, native)

    def unmerge(self, table: Table, batch_id: str) -> str:
        """Restore the table to before the first batch with this id prefix, by the catalog's format, not the model's."""
        with self._sessions.statement():
            description = describe_table(self._sessions, table.name)
            self._sessions.check()
            return self._format_tables(description.format if description else table.format).unmerge(table, batch_id)

    def load(self, table: Table, rows: Sequence[Sequence[str | None]], *, is_fresh: bool = False) -> Written:
        names = [column.name for column in table.columns]
        with self._sessions.statement():
            numbered = [(number, *row) for number, row in enumerate(rows, start=1)]
            ddl = ", ".join(["`#` bigint", *(f"{quote_column(name)} string" for name in names)])
            frame = self._sessions.current.spark.createDataFrame(numbered, ddl)
            try:
                typed_frame = cast_frame(table, frame.drop("#"))
                return self._format_tables(table.format).replace_all(table, typed_frame, is_fresh=is_fresh)
            except Exception as error:
                bad = bad_cell(table, frame) if is_spark(error) else None
                raise bad or error from None

    def contents(self, table: Table, column_sets: Sequence[ColumnSet], interval: Interval | None = None) -> Found:
        with self._sessions.statement():
            name = quote_name(table.name)
            self._sessions.run(f"REFRESH TABLE {name}")  # another process may have pointed it at other files since
            fields = self._sessions.run(f"SELECT * FROM {name}").schema.fields
            content_query = build_content_query(table, fields, column_sets, interval)
            return content_query.answer(self._sessions.run(content_query.sql).collect() if content_query.sets else ())

    def files(self, name: str, where: str = "") -> TableFiles | None:
        with self._sessions.statement():
            description = describe_table(self._sessions, name)
            if description is None or description.is_view or description.format not in self._formats:
                return None
            self._sessions.run(f"REFRESH TABLE {quote_name(name)}")  # another process may have written it since
            return self._formats[description.format].files(name, description, where)

    def version(self, name: str) -> str:
        with self._sessions.statement():
            description = describe_table(self._sessions, name)
            if (
                description is None
                or description.is_view
                or description.has_policy
                or description.format not in TABLE_FORMATS
            ):
                return ""
            self._sessions.run(f"REFRESH TABLE {quote_name(name)}")  # another process may have written it since
            version = self._format_tables(description.format).version(name, description)
            if not version:
                return ""
            # The whole description in the catalog counts: not every change of what is read is a commit of the table.
            return digest(version, repr(sorted(description.details.items())), repr(table_columns(self._sessions, name)))

    def last_write(self, name: str) -> datetime | None:
        with self._sessions.statement():
            description = describe_table(self._sessions, name)
            if description is None or description.is_view:
                return None
            self._sessions.run(f"REFRESH TABLE {quote_name(name)}")
            rows = _read_moments(self._sessions, name, description)
            return datetime.fromtimestamp(rows[0][0] / 1000, UTC) if rows and rows[0][0] is not None else None

    def size(self, name: str) -> int | None:
        with self._sessions.statement():
            return find_table_size(self._sessions, name)

    def refresh(self, name: str) -> None:
        with self._sessions.statement():
            self._sessions.run(f"REFRESH TABLE {quote_name(name)}")

    def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
        with self._sessions.statement():
            description = describe_table(self._sessions, name)
            if description is None or description.is_view:
                return Expiry()
            self._sessions.check()
            return self._format_tables(description.format).expire(name, keep, now)

    def drop(self, name: str) -> None:
        with self._sessions.statement():
            description = describe_table(self._sessions, name)
            if description is None:
                return
            self._sessions.check()
            if description.is_view:
                self._sessions.run(f"DROP VIEW IF EXISTS {quote_name(name)}")
                return
            self._format_tables(description.format).drop(name)

    def _format_tables(self, name: str) -> FormatTables:
        """Return the tables of that format; files of any other one are repointed like parquet's."""
        return self._formats.get(name) or self._formats["parquet"]


def _read_moments(sessions: Sessions, name: str, description: Described) -> list[Any]:
    table = quote_name(name)
    if description.format == "delta":
        operations = ", ".join(f"'{operation}'" for operation in sorted(DELTA_WRITES))
        commits = sessions.run(f"DESCRIBE HISTORY {table}").where(f"operation IN ({operations})")
        return commits.selectExpr("unix_millis(max(timestamp))").collect()
    if description.format == "iceberg":
        operations = ", ".join(f"'{operation}'" for operation in ICEBERG_WRITES)
        current = f"SELECT snapshot_id FROM {table}.history WHERE is_current_ancestor"
        query = f"""SELECT unix_millis(max(committed_at)) FROM {table}.snapshots
            WHERE operation IN ({operations}) AND snapshot_id IN ({current})"""
        return sessions.run(query).collect()
    if description.format in FILES:
        return sessions.run(f"SELECT unix_millis(max(_metadata.file_modification_time)) FROM {table}").collect()
    return []


def find_table_size(sessions: Sessions, name: str) -> int | None:
    description, table = describe_table(sessions, name), quote_name(name)
    if description is None or description.is_view:
        return None
    if description.format == "delta":
        return int(sessions.run(f"DESCRIBE DETAIL {table}").select("sizeInBytes").collect()[0][0])
    if description.format == "iceberg":  # whose statistics are of rows, and not of files
        return int(sessions.run(f"SELECT sum(file_size_in_bytes) FROM {table}.files").collect()[0][0] or 0)
    sessions.run(f"REFRESH TABLE {table}")  # another process may have written it since
    # Spark adds up the files of partitions only where a condition asks for some; this one holds for each.
    partitions = (f"coalesce(CAST({quote_column(column)} AS STRING), '') >= ''" for column in description.partitions)
    condition = next(partitions, "true")
    return sessions.current.scan_bytes(f"SELECT * FROM {table} WHERE {condition}")
