"""What mergeplan asks of a Spark: a dozen verbs, its tables, its catalog, and the data they speak in.

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
    """A merge as a format may do it in one statement, with the table as `target` and the batch's rows as `source`.

    `rows` (SQL) are those rows, no two of which meet one row; `on` says which row meets which, `matched` are its WHENs:
    without any, a row that is met takes all values. Of the rows that meet none those are added for which `added` holds.
    `mark` is a column (text) of the rows that the table does not have, '' for none.
    """

    rows: str
    on: str
    matched: tuple[str, ...] = ()
    added: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Connection:
    """Which Spark to use: none named means a local one with the embedded catalog.

    `remote` is a Spark Connect address, `master` a cluster's, `conf` are Spark settings, `config_dir` holds
    `hive-site.xml`, `spark-defaults.conf` and the like, `catalog` is the catalog to work in. `formats` are the table
    formats beside parquet and ORC that it has to know in Spark's own catalog, `apart` those in catalogs of their own,
    `jars_dir` is a folder with their jars. `functions` are those that SQL may call beside Spark's own.
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
    serves: bool = False  # a Spark of our own lets other processes of this machine in, who know its token
    functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Server:
    """How a Spark is reached from outside: a Spark Connect address with its token, the settings of its
    sessions, and whether its Python workers are known to be isolated."""

    url: str
    conf: tuple[tuple[str, str], ...] = ()
    catalog: str | None = None
    isolated: bool = False


@dataclass(frozen=True)
class Operation:
    """A write that a Spark Connect server carries out, with its client or without: the server's address without its
    token, the session and the operation by their ids."""

    server: str
    session: str
    id: str


class OperationGone(Exception):
    """The server does not know this operation any more."""


class Operations(Protocol):
    """The operations of one batch, as they are written down: each before it begins."""

    def take_leftover(self, request_key: str) -> Operation | None:
        """The one that an earlier run began for this very request (a digest), None without; others are ended."""

    def begin(self, request_key: str, operation: Operation) -> None:
        """Write down that this one begins now."""

    def report_resumed(self) -> None:
        """The one that was left is waited for."""

    def report_repeated(self) -> None:
        """The one that was left has failed, or Spark does not know it any more: another one is begun for the same."""


@dataclass(frozen=True)
class Reading:
    """What project code may do on Spark: read these tables, and leave its rows in global views `PREFIX_0` and so on.

    `inputs` are temporary views that are made for it first, name -> query; '' is no prefix.
    """

    tables: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""


class ProjectConnection(Protocol):
    """The connection of one child with project code to Spark, for relations alone; nothing passes before `admit`."""

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
class Expiry:
    """What became of a table's old versions: `removed`, or `kept` and why; neither where none was to be removed."""

    removed: bool = False
    kept: str = ""


class Stands(Enum):
    """What stands in the place of a view, as far as the caller knows; what is not so costs a question, and no more."""

    UNKNOWN = auto()
    NOTHING = auto()
    ALL_BUT_QUERY = auto()  # this view as it is to be, but for its query and its columns


@dataclass(frozen=True)
class ViewText:
    """A view: its query, its comment and its properties.

    `columns`, when given, are all of the query's, and are commented. A comment that is none of `ours`, which were
    written for earlier promotions, was written by a person: where there is no other to write, it stays. With `reads`,
    a view that stands in its place and does not read a table of which the name begins so is of others, and not touched.
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
    """What stands under a name that we did not give: a table, or a view.

    `format` is that of its files, in lower case, and '' for a view; a view that cannot be read has no columns.
    `partitioned_by` are columns, () as well where the table is cut by anything else. `follows` says that its files lie
    where its name says: renamed, they are moved.
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

    Whatever replaces rows commits once: a reader never fails, and a killed job loses nothing.
    """

    def create(self, table: Table) -> bool:
        """Create the schema and the empty table; existing ones stay as they are. True when the table was not there."""

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        """Create the table over the files that another one, partitioned alike, points at: of these intervals, or of all
        when it is not partitioned by time. No row is read; a column that the files lack is NULL. The other one must
        stay for as long as this one does."""

    def replace(self, table: Table, sql: str, *, is_fresh: bool = False) -> Written:
        """Put the query's rows in place of all rows of a table that is not partitioned by time.

        `is_fresh` says that nobody has written to the table since `create` made it, and nobody reads it yet.
        """

    def replace_interval(self, table: Table, sql: str, interval: Interval) -> Written:
        """Put the query's rows in place of exactly the interval's partitions; days without rows end empty."""

    def replace_partitions(self, table: Table, sql: str, *, first: str | None = None, others: bool = False) -> Written:
        """Put the query's rows in place of exactly the (listed) partitions that it returns rows for.

        Other partitions of which `first` is the first value end empty; with `others` all of them do.
        """

    def overwrite(self, table: Table, sql: str, batch_id: str) -> Written:
        """Put the rows of a query, which reads the table itself, in place of exactly the (listed) partitions that it
        returns rows for, or of all rows of a table without partitions.

        A batch whose id begins as that of the last one is repeated: the table is first put back to what it held before.
        """

    def merge(self, table: Table, merge: Merge, batch_id: str, merge_into: MergeInto | None = None) -> Written:
        """Put the rows of a merge in place of all rows: the merge is given the name of what the table held before.

        A format with a statement for it runs `merge_into` instead, which comes to the same.

        The first half of the `batch_id` (16 hex digits) is that of all batches which begin with what is recorded now:
        merged again under the id that the table bears, a batch starts from what the table held before the first of
        them, so that a batch which is repeated does nothing twice.
        """

    def unmerge(self, table: Table, batch_id: str) -> None:
        """Let the table hold what it held before the first batch whose id begins as this one (8 hex digits); nothing
        when it bears no such id."""

    def load(self, table: Table, rows: Sequence[Sequence[str | None]], *, is_fresh: bool = False) -> Written:
        """Put rows of text (a seed) in place of all rows, cast to the columns' types; a bad cell is a QueryError.

        `is_fresh` is as in `replace`.
        """

    def contents(self, table: Table, column_sets: Sequence[ColumnSet], interval: Interval | None = None) -> Found:
        """What the table holds, as hashes: column set -> period -> content, all in one pass over the table.

        With an interval (of a table that is partitioned by time) each of its partitions is a period, whether it holds
        rows or not; without one the period is `WHOLE`. A set with a column that the table lacks, or of a type that
        cannot be compared, is left out. The caller keeps others from writing the table meanwhile.
        """

    def files(self, name: str, where: str = "") -> TableFiles | None:
        """The files of a table's rows, without reading one: to be compared with another's by `same_rows`.

        With a condition (Spark SQL) on the columns that it is partitioned by, no fewer than those of its rows. None for
        a view, for what is not there, and where it is not known: the rows have to be read.
        """

    def version(self, name: str) -> str:
        """What tells what a table holds now, and how it is read, from whatever else it held or will hold.

        '' for a view, for what is not there, and for a format without a log, whose files may be written anew.
        """

    def refresh(self, name: str) -> None:
        """Forget what is remembered of a table's files: another Spark has written it."""

    def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
        """Remove the versions of a table, if it has any, that were replaced longer ago than `keep`, at least a week.

        What `merge` and `unmerge` may go back to stays, or all does. The caller keeps writers away, and knows that no
        other table stands on this one's files.
        """

    def drop(self, name: str) -> None:
        """Drop the table and its files if it exists (a view of that name is dropped as a view)."""


class Catalog(Protocol):
    """What readers see: schemas, the views in them, and comments."""

    def objects(self, schema: str) -> frozenset[str]:
        """Names of the tables and views in a schema; empty when there is no such schema."""

    def standing(self, name: str) -> Standing | None:
        """What stands under a name; None when nothing does."""

    def rename_table(self, old: str, new: str) -> None:
        """Give a table another name in its schema; no row is read, but a file system may move its files."""

    def swap_view(self, view: ViewText) -> bool:
        """Point the view at its query, creating it and its schema if need be; False when it already was so.

        An existing view takes its columns' comments from the table that it reads. Of properties, those that were set
        here earlier and are no longer given go. QueryError where a table stands in its place, or a view of others.
        """

    def comment_columns(self, table: str, columns: Sequence[Column]) -> None:
        """Make the comments of a table's columns be these."""

    def drop_view(self, name: str, reads: str = "") -> None:
        """Drop the view if it exists; with `reads`, only one that reads a table of which the name begins so."""

    def drop_schema_if_empty(self, name: str) -> None:
        """Drop a schema that holds nothing any more."""


class Engine(Protocol):
    """A Spark that holds the tables. Every verb raises QueryError (Spark said no) or Cancelled."""

    @property
    def tables(self) -> TableStore:
        """The physical tables."""

    @property
    def catalog(self) -> Catalog:
        """The schemas and views."""

    def engine_for(self, gateway: str) -> Engine:
        """The engine that the models of a gateway are computed on; '' is the project's own."""

    def separate_session(self, before: Sequence[str], after: Sequence[str]) -> AbstractContextManager[None]:
        """A context in which this thread has a session of its own, with statements at its begin and at its end.

        Those after it do not run when it fails. Without statements there is no such session.
        """

    @property
    def outlasts(self) -> bool:
        """True for a Spark that goes on with a write when its planner has gone: a Spark Connect server."""

    @property
    def goes_on(self) -> bool:
        """True while a write is under way that goes on when this process ends. It never blocks."""

    @property
    def is_lost(self) -> bool:
        """True when its Spark ended, ran out of memory or stopped answering: only a new engine can go on."""

    def reattaching(self, operations: Operations) -> AbstractContextManager[None]:
        """A context in which this thread's writes, where Spark goes on with them without us, are written down, and
        those that an earlier run left are waited for in place of being begun again."""

    def end_operation(self, operation: Operation) -> None:
        """End an operation for which nobody waits any more; where its server does not answer, it is left."""

    def schema(self, sql: str) -> tuple[Column, ...]:
        """The columns a query would return; nothing is run."""

    def reads(self, sql: str) -> frozenset[str] | None:
        """The names that Spark's own parser finds a query to read from, in lower case: tables, CTEs, temporary views.

        None where this Spark tells it only once all of them are there, and they are not. QueryError where the parser
        refuses the query.
        """

    def dry_run(self, sql: str) -> tuple[tuple[Column, ...], frozenset[str]]:
        """What `schema` and `reads` say of a query whose tables are there, analysed once; nothing is run."""

    def fetch(self, sql: str, limit: int | None = None) -> Rows:
        """Run a query and bring its rows here."""

    def scan_bytes(self, sql: str) -> int | None:
        """How many bytes of files a query would read; None when Spark cannot tell. Nothing is run."""

    def explain(self, sql: str) -> str:
        """The physical plan of a query, as Spark's EXPLAIN FORMATTED shows it; no row of the query is computed."""

    def compare_queries(self, analysis: Analysis) -> tuple[PairResult, ...] | None:
        """Return what Spark's analyzer and optimizer say of pairs of queries over empty tables, of which nothing is
        run; None where this Spark does not show its plans."""

    def connect_project(self, path: Path, *, python: bool) -> ProjectConnection:
        """A connection of project code to this Spark, at a socket file that is made for it; with `python` its functions
        may run in Spark's workers even where these are not isolated. RequestError when this Spark lets nobody else
        in."""

    def jobs(self) -> int:
        """How many Spark jobs this session has started so far, counted by Spark itself."""

    def cancel(self) -> None:
        """End what runs now; the verbs under way raise Cancelled."""

    def close(self) -> None:
        """Let go of the session and of the embedded catalog."""
