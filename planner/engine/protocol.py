"""What mergeplan asks of a Spark: about a dozen verbs, and the data they speak in.

Names are `schema.object`, already validated. SQL texts are Spark SQL over physical names. Nothing here is
overwritten in place: a verb that replaces rows writes them aside and then points the table (or exactly the
partitions of one interval) at the new files, so that a reader never fails and a killed job loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from planner.intervals import Interval, Timeline, partitions
from planner.model.model import Column
from planner.snapshot.content_hash import ColumnSet, Found

Value = object  # what Spark hands back in a row: str, int, Decimal, date, datetime (aware, in UTC), None...

Merge = Callable[[str], str]  # from the name of a table or view to the SQL of all rows after the merge
HIDDEN_COLUMN = "mergeplan_period"
DAY = 86_400  # seconds; longer units are cut by the day


@dataclass(frozen=True)
class Connection:
    """Which Spark to use: none named means a local one with the embedded catalog.

    `remote` is a Spark Connect address, `master` a cluster's, `conf` are Spark settings, `config_dir` holds
    `hive-site.xml`, `spark-defaults.conf` and the like, `catalog` is the catalog to work in.
    """

    conf: tuple[tuple[str, str], ...] = ()
    master: str | None = None
    remote: str | None = None
    catalog: str | None = None
    config_dir: str | None = None
    comments: bool = True  # tables, views and columns are commented
    serves: bool = False  # a Spark of our own lets other processes of this machine in, who know its token


@dataclass(frozen=True)
class Server:
    """How a Spark is reached from outside: a Spark Connect address with its token, what its sessions are told, and
    whether its Python workers are known to be isolated."""

    url: str
    conf: tuple[tuple[str, str], ...] = ()
    catalog: str | None = None
    isolated: bool = False


@dataclass(frozen=True)
class Reading:
    """What project code may do on Spark: read these tables, and leave its rows in global views `PREFIX_0` and so on.

    `inputs` are temporary views that are made for it first, name -> query; '' is no prefix.
    """

    tables: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""


class Door(Protocol):
    """The way of one child with project code to Spark, for relations alone; shut until something is admitted."""

    session: str  # of Spark Connect, which the child uses

    def admit(self, reading: Reading) -> None:
        """From now on let project code read these tables and leave its rows in views of this prefix."""

    def refuse(self) -> tuple[str, ...]:
        """From now on let nothing through; the global views that were made since `admit`."""

    def close(self) -> None:
        """End the session, and what runs in it."""


@dataclass(frozen=True)
class Rows:
    """The answer to a query: column names and rows, in Spark's order."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Written:
    """What one write did."""

    rows: int
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """What a table is cut by: `expression` (Spark SQL over the model's columns) gives the partition's value.

    `column` is a column of the model when it can serve as it is, otherwise a hidden one that views leave out.
    """

    column: str
    type: str
    expression: str
    hidden: bool


@dataclass(frozen=True)
class Partitioning(Part):
    """How a time-ranged table is cut: by the time column when it can serve as it is (a DATE).

    A value is the start of its unit (at most a day) in UTC, as the text that Spark lists; values sort like the time.
    """

    unit_seconds: int

    def bounds(self, interval: Interval) -> tuple[str, str]:
        """The first value that an interval covers and the first after it; one that cuts a unit is our defect."""
        for at in (interval.start, interval.end):
            if int(at.timestamp()) % min(self.unit_seconds, DAY):
                raise ValueError(f"{at} does not start a unit of {self.unit_seconds} seconds")
        return self._value(interval.start), self._value(interval.end)

    def periods(self, interval: Interval) -> tuple[str, ...]:
        """The value of every partition that an interval covers, in order, whether it holds rows or not."""
        self.bounds(interval)
        return partitions(interval, self.unit_seconds)

    def _value(self, at: datetime) -> str:
        return at.strftime("%Y-%m-%d" if self.unit_seconds >= DAY else "%Y-%m-%d %H:%M:%S")


def time_partitioning(
    columns: tuple[Column, ...], time_column: str, time_format: str, unit_seconds: int, *, hidden: bool = False
) -> Partitioning:
    """How to cut a table by its time column: by the column itself when it is a DATE, else by a hidden column.

    A text or a number is read with `time_format`. A table needs a column beside the one it is cut by, and a DATE
    cannot tell hours apart: both get the hidden column too, and so does who asks for it.
    """
    kind = next(column.type for column in columns if column.name == time_column)
    quoted = f"`{time_column}`"
    if not hidden and kind == "date" and len(columns) > 1 and unit_seconds >= DAY:
        return Partitioning(time_column, "date", quoted, hidden=False, unit_seconds=unit_seconds)
    if kind in ("date", "timestamp", "timestamp_ntz"):
        at = f"cast({quoted} as timestamp)"
    else:
        pattern = (time_format or "yyyy-MM-dd").replace("\\", "\\\\").replace("'", "\\'")
        at = f"to_timestamp(cast({quoted} as string), '{pattern}')"
    if unit_seconds >= DAY:
        expression = f"date_format({at}, 'yyyy-MM-dd')"
    else:
        seconds = f"unix_seconds({at})"
        start = f"timestamp_seconds({seconds} - pmod({seconds}, {unit_seconds}))"
        expression = f"date_format({start}, 'yyyy-MM-dd HH:mm:ss')"
    return Partitioning(HIDDEN_COLUMN, "string", expression, hidden=True, unit_seconds=unit_seconds)


@dataclass(frozen=True)
class Table:
    """A physical table to create: its columns in the model's order, and its partitioning if it has one.

    `parts` are what it is cut by besides time. `listed` says that the catalog lists the partitions of a table that is
    not cut by time, so that each can be replaced alone; otherwise all go at once, with the place of the table.
    """

    name: str
    columns: tuple[Column, ...]
    partitioning: Partitioning | None = None
    comment: str = ""
    format: str = "parquet"
    options: tuple[tuple[str, str], ...] = ()  # of the files that are written, and of the table
    parts: tuple[Part, ...] = ()
    listed: bool = False
    sorted_by: tuple[str, ...] = ()  # within each file
    gateway: str = ""  # on whose Spark it is computed; '' for the project's own

    @property
    def cut(self) -> tuple[Part, ...]:
        """All that it is cut by, time first."""
        return (*([self.partitioning] if self.partitioning else []), *self.parts)


class Engine(Protocol):
    """A Spark that holds the tables. Every verb raises QueryError (Spark said no) or Cancelled."""

    def beside(self, before: Sequence[str], after: Sequence[str]) -> AbstractContextManager[None]:
        """A context in which this thread has a session of its own, with statements at its begin and at its end.

        Those after it do not run when it fails. Without statements there is no such session.
        """

    def schema(self, sql: str) -> tuple[Column, ...]:
        """The columns a query would return; nothing is run."""

    def reads(self, sql: str) -> frozenset[str] | None:
        """The names that Spark's own parser finds a query to read from, in lower case: tables, CTEs, temporary views.

        None where this Spark tells it only once all of them are there, and they are not. QueryError where the parser
        refuses the query.
        """

    def create_table(self, table: Table) -> None:
        """Create the schema and the empty table; existing ones stay as they are."""

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        """Create the table over the files that another one, cut alike, points at: of these stretches of time, or of all
        when it is not cut by time. No row is read; a column that the files lack is NULL. The other one must stay for
        as long as this one does."""

    def replace_table(self, table: Table, sql: str) -> Written:
        """Put the query's rows in place of all rows of a table that is not cut by time, by pointer."""

    def replace_interval(self, table: Table, sql: str, interval: Interval) -> Written:
        """Put the query's rows in place of exactly the interval's partitions; days without rows end empty."""

    def replace_partitions(self, table: Table, sql: str, *, first: str | None = None, others: bool = False) -> Written:
        """Put the query's rows in place of exactly the (listed) partitions that it returns rows for.

        Other partitions of which `first` is the first value end empty; with `others` all of them do.
        """

    def merge_table(self, table: Table, merge: Merge, mark: str) -> Written:
        """Put the rows of a merge in place of all rows, by pointer: the merge is told what the table held before.

        `mark` (16 hex digits) names the batch, its first half those that begin with what is recorded now: merged again
        under the mark that the table bears, it starts from what the table held before the first of them, so that a
        batch which is repeated does nothing twice.
        """

    def unmerge_table(self, table: Table, mark: str) -> None:
        """Point the table at what it held before the first batch whose mark begins as this one (8 hex digits); nothing
        when it bears no such mark."""

    def replace_rows(self, table: Table, rows: Sequence[Sequence[str | None]]) -> Written:
        """Put rows of text (a seed) in place of all rows, cast to the columns' types; a bad cell is a QueryError."""

    def swap_view(
        self,
        name: str,
        sql: str,
        comment: str = "",
        columns: Sequence[Column] = (),
        properties: Sequence[tuple[str, str]] = (),
    ) -> bool:
        """Point the view at the query, creating it and its schema if need be; False when it already was so.

        `columns`, when given, are all of the query's, and are commented; an existing view takes its columns' comments
        from the table that it reads. Of properties, those that were set here earlier and are no longer given go.
        """

    def comment_columns(self, table: str, columns: Sequence[Column]) -> None:
        """Make the comments of a table's columns be these."""

    def drop_view(self, name: str) -> None:
        """Drop the view if it exists."""

    def drop_table(self, name: str) -> None:
        """Drop the table and its files if it exists (a view of that name is dropped as a view)."""

    def drop_schema_if_empty(self, name: str) -> None:
        """Drop a schema that holds nothing any more."""

    def objects(self, schema: str) -> frozenset[str]:
        """Names of the tables and views in a schema; empty when there is no such schema."""

    def refresh(self, name: str) -> None:
        """Forget what is remembered of a table's files: another Spark has written it."""

    def fetch(self, sql: str, limit: int | None = None) -> Rows:
        """Run a query and bring its rows here."""

    def contents(self, table: Table, column_sets: Sequence[ColumnSet], interval: Interval | None = None) -> Found:
        """What the table holds, as hashes: column set -> period -> content, all in one pass over the table.

        With an interval (of a table that is cut by time) each of its partitions is a period, whether it holds rows or
        not; without one the period is `WHOLE`. A set with a column that the table lacks, or of a type that cannot be
        compared, is left out. The caller keeps others from writing the table meanwhile.
        """

    def door(self, path: Path, *, python: bool) -> Door:
        """A way for project code to this Spark, at a socket file that is made for it; with `python` its functions may
        run in Spark's workers even where these are not isolated. RequestError when this Spark lets nobody else in."""

    def scan_bytes(self, sql: str) -> int | None:
        """How many bytes of files a query would read; None when Spark cannot tell. Nothing is run."""

    def jobs(self) -> int:
        """How many Spark jobs this session has started so far, counted by Spark itself."""

    def cancel(self) -> None:
        """End what runs now; the verbs under way raise Cancelled."""

    def close(self) -> None:
        """Let go of the session and of the embedded catalog."""
