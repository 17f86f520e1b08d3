"""The interface to a Spark: a dozen verbs, its tables, its catalog, and the data that they exchange.

Names are `schema.object`, already validated. SQL texts are Spark SQL over physical names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from pathlib import Path
from typing import Protocol

from mergeplan.planner.engine.analysis import Analysis, PairResult
from mergeplan.planner.engine.table import Table
from mergeplan.planner.engine.table_files import TableFiles
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.model.model import Column
from mergeplan.planner.snapshot.content_hash import ColumnSet, Found

Value = object  # what Spark hands back in a row: str, int, Decimal, date, datetime (aware, in UTC), None...

Merge = Callable[[str], str]  # from the name of a table or view to the SQL of all rows after the merge


@dataclass(frozen=True)
class MergeInto:
    """A merge as one statement of a format, with the table as `target` and the batch's rows as `source`.

    `rows` (SQL) are the rows of the batch; no two of them match the same row. `on` is the condition of a match,
    `matched` are the WHENs; without any, a matched row takes all values. A row without a match is added if `added`
    holds. `mark` is a column (text) of the rows that the table does not have, '' for none.
    """

    rows: str
    on: str
    matched: tuple[str, ...] = ()
    added: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Connection:
    """The Spark to use; without a name it is a local one with the embedded catalog.

    `remote` is a Spark Connect address, `master` a cluster's, `conf` are Spark settings, `config_dir` holds
    `hive-site.xml`, `spark-defaults.conf` and the like, `catalog` is the catalog to work in. `formats` are the table
    formats beside parquet and ORC that Spark's own catalog has to know, `apart` those in separate catalogs, `jars_dir`
    is a folder with their jars. `functions` are those that SQL may call beside Spark's own.
    """

    conf: tuple[tuple[str, str], ...] = ()
    master: str | None = None
    remote: str | None = None
    catalog: str | None = None
    config_dir: str | None = None
    formats: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    jars_dir: str | None = None
    comments: bool = True  # tables, views and columns are commented
    serves: bool = False  # our own Spark admits other processes of this machine that know its token
    functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Server:
    """The access to a Spark from another process.

    `url` is a Spark Connect address with its token, `conf` are the settings of its sessions. `isolated` says that its
    Python workers are known to be isolated.
    """

    url: str
    conf: tuple[tuple[str, str], ...] = ()
    catalog: str | None = None
    isolated: bool = False


@dataclass(frozen=True)
class Operation:
    """A write that a Spark Connect server carries out, with or without its client.

    `server` is the address without its token; `session` and `id` are the ids of the session and of the operation.
    """

    server: str
    session: str
    id: str


class OperationGone(Exception):
    """The server no longer knows this operation."""


class Operations(Protocol):
    """The recorded operations of one batch, each recorded before it begins."""

    def take_leftover(self, request_key: str) -> Operation | None:
        """Return the operation that an earlier run began for this request (a digest), or None; end all others."""

    def begin(self, request_key: str, operation: Operation) -> None:
        """Record that this operation begins now."""

    def report_resumed(self) -> None:
        """Report that the leftover operation is waited for."""

    def report_repeated(self) -> None:
        """Report that the leftover operation failed or is unknown to Spark, and that another one begins."""


@dataclass(frozen=True)
class Reading:
    """The tables that project code may read on Spark, and the prefix of the global views for its rows.

    The views are named `PREFIX_0` and so on; '' is no prefix. `inputs` are temporary views (name -> query) that are
    created for it first.
    """

    tables: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""


class ProjectConnection(Protocol):
    """The connection of one child with project code to Spark, for relations only; nothing passes before `admit`."""

    session: str  # of Spark Connect, which the child uses

    def admit(self, reading: Reading) -> None:
        """Let project code read these tables and leave its rows in views of this prefix, from now on."""

    def refuse(self) -> tuple[str, ...]:
        """Let nothing through from now on, and return the global views that were created since `admit`."""

    def close(self) -> None:
        """End the session and everything that runs in it."""


@dataclass(frozen=True)
class Rows:
    """The answer to a query: column names and rows, in Spark's order."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Written:
    rows: int
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expiry:
    """The result of an expiry: versions were `removed`, or `kept` with the reason, or there was none to remove."""

    removed: bool = False
    kept: str = ""


class Stands(Enum):
    """The object under a view's name, as far as the caller knows; a wrong guess only costs a query."""

    UNKNOWN = auto()
    NOTHING = auto()
    ALL_BUT_QUERY = auto()  # this view as it is to be, but for its query and its columns


@dataclass(frozen=True)
class ViewText:
    """A view: its query, its comment and its properties.

    `columns`, if given, are all columns of the query, with comments. `ours` are the comments of earlier promotions. Any
    other comment was written by a person, and stays if there is no new one. With `reads`, a pattern of
    quoted names, an existing view that reads no such table belongs to others and is not touched.
    """

    name: str
    sql: str
    comment: str = ""
    columns: Sequence[Column] = ()
    properties: Sequence[tuple[str, str]] = ()
    stands: Stands = Stands.UNKNOWN
    ours: tuple[str, ...] = ()
    reads: str = ""


@dataclass(frozen=True)
class Standing:
    """An existing table or view under a name that mergeplan did not give.

    `format` is that of its files, in lower case, and '' for a view. A view that cannot be read has no columns.
    `partitioned_by` are columns; () also if the table is partitioned by anything else. `follows` says that its name
    determines where its files are: a rename moves them.
    """

    name: str
    columns: tuple[Column, ...]
    is_view: bool = False
    format: str = ""
    partitioned_by: tuple[str, ...] = ()
    follows: bool = False
    sql: str = ""  # of a view


class TableStore(Protocol):
    """Physical tables: created, filled batch by batch, compared and dropped, each as its format does it.

    Every verb that replaces rows commits once: a reader never fails, and a killed job loses nothing.
    """

    def create(self, table: Table) -> bool:
        """Create the schema and the empty table unless they exist; return True if the table was missing."""

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        """Create the table over the files of another table that is partitioned alike.

        Take the files of these intervals, or all if the table is not partitioned by time. No row is read; a column that
        the files lack is NULL. The other table must stay for as long as this one does.
        """

    def replace(self, table: Table, sql: str, *, is_fresh: bool = False) -> Written:
        """Replace all rows of a table that is not partitioned by time with the query's rows.

        `is_fresh` says that nothing has written to the table since `create` made it, and that nothing reads it yet.
        """

    def replace_interval(self, table: Table, sql: str, interval: Interval) -> Written:
        """Replace exactly the interval's partitions with the query's rows; days without rows end empty."""

    def replace_partitions(self, table: Table, sql: str, *, first: Sequence[str] = (), others: bool = False) -> Written:
        """Replace exactly the (listed) partitions that the query returns rows for.

        Other partitions whose first value is in `first` end empty; with `others`, all of them do.
        """

    def overwrite(self, table: Table, sql: str, batch_id: str) -> Written:
        """Replace exactly the (listed) partitions that a query of the table itself returns rows for.

        In a table without partitions, replace all rows. A batch whose id begins like that of the last one is repeated:
        the table is first restored to what it held before.
        """

    def merge(self, table: Table, merge: Merge, batch_id: str, merge_into: MergeInto | None = None) -> Written:
        """Replace all rows with those of a merge, which takes the name of what the table held before.

        A format with a merge statement runs the equivalent `merge_into` instead.

        The first half of the `batch_id` (16 hex digits) is that of all batches that begin with what is recorded now. A
        batch that is merged again under the id that the table has starts from what the table held before the first of
        them. So a repeated batch does nothing twice.
        """

    def unmerge(self, table: Table, batch_id: str) -> str:
        """Restore the table to before the first batch of the id's first 8 digits; return its last id if without one."""

    def load(self, table: Table, rows: Sequence[Sequence[str | None]], *, is_fresh: bool = False) -> Written:
        """Replace all rows with rows of text (a seed), cast to the columns' types; raise QueryError for a bad cell.

        `is_fresh` is as in `replace`.
        """

    def contents(self, table: Table, column_sets: Sequence[ColumnSet], interval: Interval | None = None) -> Found:
        """Return hashes of what the table holds: column set -> period -> content, in one pass over the table.

        With an interval (of a table that is partitioned by time), each of its partitions is a period, with or without
        rows. Without one the period is `WHOLE`. A set with a column that the table lacks, or of a type that cannot be
        compared, is left out. The caller excludes other writers of the table meanwhile.
        """

    def files(self, name: str, where: str = "") -> TableFiles | None:
        """Return the files of a table's rows, without reading one, for a comparison by `same_rows`.

        With a condition (Spark SQL) on the columns that the table is partitioned by, return at least the files of its
        rows. Return None for a view, for a missing table, and if the files are not known: then the rows have to be
        read.
        """

    def version(self, name: str) -> str:
        """Return a text that identifies what a table holds now, and how it is read.

        No other state of the table, earlier or later, has the same text. Return '' for a view, for a missing table, and
        for a format without a log, whose files may be rewritten.
        """

    def last_write(self, name: str) -> datetime | None:
        """Return the moment (UTC) of the last commit that added or replaced rows, or of a table's newest file.

        Return None for a view, for a missing or empty table, and for a format that does not record its writes.
        """

    def size(self, name: str) -> int | None:
        """Return the bytes of the files of a table's rows, reading none; None for a view, no table, or if unknown."""

    def refresh(self, name: str) -> None:
        """Forget the remembered files of a table: another Spark has written it."""

    def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
        """Remove the versions of a table, if it has any, that were replaced longer than `keep` (a week or more) ago.

        What `merge` and `unmerge` may go back to stays, or everything does. The caller excludes writers, and knows that
        no other table uses this table's files.
        """

    def drop(self, name: str) -> None:
        """Drop the table and its files if it exists (a view of that name is dropped as a view)."""


class Catalog(Protocol):
    """What readers see: schemas, the views in them, and comments."""

    def objects(self, schema: str) -> frozenset[str]:
        """Return the names of the tables and views in a schema; none if there is no such schema."""

    def standing(self, name: str) -> Standing | None:
        """Return the table or view of a name; None if there is none."""

    def owner(self, name: str) -> str | None:
        """Return the ID of the state that made a table or view, '' where none is recorded; None if there is none."""

    def rename_table(self, old: str, new: str) -> None:
        """Rename a table within its schema; no row is read, but a file system may move its files."""

    def swap_view(self, view: ViewText) -> bool:
        """Set the query of the view, creating it and its schema if needed; return False if nothing changed.

        An existing view takes its columns' comments from the table that it reads. Properties that were set here earlier
        and are no longer given are removed. Raise QueryError if a table, or a view of others, has the name.
        """

    def comment_columns(self, table: str, columns: Sequence[Column]) -> None:
        """Set the comments of a table's columns to these."""

    def drop_view(self, name: str, reads: str = "") -> None:
        """Drop the view if it exists; with `reads`, a pattern, only one that reads such a table."""

    def drop_schema_if_empty(self, name: str) -> None: ...


class Engine(Protocol):
    """A Spark that holds the tables. Every verb raises QueryError (Spark said no) or Cancelled."""

    @property
    def tables(self) -> TableStore:
        """The physical tables."""

    @property
    def catalog(self) -> Catalog:
        """The schemas and views."""

    def engine_for(self, gateway: str) -> Engine:
        """Return the engine that computes the models of a gateway; '' is the project's own."""

    def separate_session(self, before: Sequence[str], after: Sequence[str]) -> AbstractContextManager[None]:
        """Return a context in which this thread has its own session, with statements at its begin and its end.

        The statements at the end do not run if the context fails. Without statements there is no such session.
        """

    @property
    def outlasts(self) -> bool:
        """True for a Spark that continues a write when its planner has gone: a Spark Connect server."""

    @property
    def goes_on(self) -> bool:
        """True while a write runs that continues when this process ends; never blocks."""

    @property
    def is_lost(self) -> bool:
        """True when its Spark ended, ran out of memory or stopped answering: only a new engine can go on."""

    def guarding(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `check` before each step by which this thread changes a table within the context; it may raise."""

    def reattaching(self, operations: Operations) -> AbstractContextManager[None]:
        """Return a context in which this thread's writes are recorded, if Spark continues them without us.

        Writes that an earlier run left are waited for instead of being begun again.
        """

    def end_operation(self, operation: Operation) -> None:
        """End an operation that no process waits for any more; leave it if its server does not answer."""

    def schema(self, sql: str) -> tuple[Column, ...]:
        """Return the columns that a query would return; run nothing."""

    def table_columns(self, name: str) -> tuple[Column, ...]:
        """Return the columns of a table or view; a CHAR, which `schema` calls a string, as CHAR(n)."""

    def reads(self, sql: str) -> frozenset[str] | None:
        """Return the names that Spark's own parser finds a query to read from: tables, CTEs, temporary views.

        The names are in lower case. Return None if this Spark tells them only once all of them exist, and they do not.
        Raise QueryError if the parser refuses the query.
        """

    def dry_run(self, sql: str) -> tuple[tuple[Column, ...], frozenset[str]]:
        """Return what `schema` and `reads` return for a query whose tables exist, analysed once; run nothing."""

    def fetch(self, sql: str, limit: int | None = None) -> Rows: ...

    def scan_bytes(self, sql: str) -> int | None:
        """Return how many bytes of files a query would read, without running it; None if Spark cannot tell."""

    def explain(self, sql: str) -> str:
        """Return the physical plan of a query, as EXPLAIN FORMATTED shows it; compute no row of the query."""

    def compare_queries(self, analysis: Analysis, *, may_start: bool = True) -> tuple[PairResult, ...] | None:
        """Return the verdict of Spark's analyzer and optimizer on pairs of queries over empty tables.

        Nothing is run. Return None if this Spark does not show its plans and no other Spark may start (`may_start`).
        """

    def connect_project(self, path: Path, *, python: bool) -> ProjectConnection:
        """Return a connection of project code to this Spark, at a socket file that is created for it.

        With `python`, its functions may run in Spark's workers even if these are not isolated. Raise RequestError if
        this Spark admits no other process.
        """

    def jobs(self) -> int:
        """Return how many Spark jobs this session has started so far, as Spark itself counts them."""

    def cancel(self) -> None:
        """End what runs now; the verbs under way raise Cancelled."""

    def close(self) -> None:
        """Close the session and release the embedded catalog."""
