"""The port of table formats: how a table is created, and how a batch of rows becomes what its readers see.

Each verb commits once, or leaves the table as it was: a reader never fails and never sees half of a batch, a killed
job loses nothing, and a batch that is repeated comes out the same. Parquet and ORC know no transactions: there rows are
written aside, and then the table is pointed at them. A format that commits by itself has a statement for each verb:

| verb               | parquet, ORC                       | Delta                       | Iceberg              |
|--------------------|------------------------------------|-----------------------------|----------------------|
| replace_all        | the location of the table          | overwrite                   | overwrite            |
| ... if untouched   | appended to where the table lies   | overwrite                   | overwrite            |
| replace_interval   | the locations of its partitions    | overwrite by filter         | overwrite by filter  |
| replace_partitions | the locations of its partitions    | dynamic partition overwrite | the same             |
| overwrite          | as the two above, with a mark      | the same                    | the same             |
| ... repeated       | after `unmerge`                    | the same                    | the same             |
| merge              | all rows, of those of before       | MERGE INTO                  | the same             |
| ... repeated       | the same                           | all rows, `VERSION AS OF`   | the same             |
| unmerge            | the location before the batch      | RESTORE TO VERSION          | rollback_to_snapshot |
| take_over          | the files of the other table       | SHALLOW CLONE, or a copy    | a copy               |
| expire             | nothing                            | VACUUM                      | expire_snapshots     |
| files              | folders, or partitions of ours     | the files of its version    | its metadata files   |
| version            | none: files may be overwritten     | its last commit             | its metadata files   |
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from mergeplan.planner.engine.formats.merge_into import NativeMerge
from mergeplan.planner.engine.protocol import Expiry, Written
from mergeplan.planner.engine.spark.described import Described
from mergeplan.planner.engine.spark.session import Frame
from mergeplan.planner.engine.table import Table
from mergeplan.planner.engine.table_files import TableFiles
from mergeplan.planner.intervals import Interval, Timeline


class FormatTables(Protocol):
    """The verbs of the tables of one format on one Spark.

    The caller has begun a statement (`Sessions.statement`), which translates Spark's errors. A frame holds the batch's
    rows in the table's types, with all columns that the table is partitioned by.
    """

    def create(self, table: Table) -> bool:
        """Create the schema and the empty table unless they exist; return True if the table was missing."""

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        """Create the table with the rows of another table that is partitioned alike.

        Take the rows of these intervals, or all rows if the table is not partitioned by time. A column that the other
        table lacks is NULL.
        """

    def replace_all(self, table: Table, frame: Frame, *, is_fresh: bool = False) -> Written:
        """Replace all rows; `is_fresh` is as in `TableStore.replace`."""

    def replace_interval(self, table: Table, frame: Frame, interval: Interval) -> Written:
        """Replace exactly the interval's rows with these rows, all of the interval; days without rows end empty."""

    def replace_partitions(
        self, table: Table, frame: Frame, *, first: Sequence[str] = (), others: bool = False
    ) -> Written:
        """Replace exactly the partitions that the rows belong to.

        Other partitions whose first value is in `first` end empty; with `others`, all of them do.
        """

    def overwrite(self, table: Table, rows: Callable[[], Frame], batch_id: str) -> Written:
        """Replace the partitions of the rows, or all, with rows read from the table: see `TableStore.overwrite`."""

    def merge(
        self, table: Table, merge_rows: Callable[[str], Frame], batch_id: str, native: NativeMerge | None = None
    ) -> Written:
        """Replace all rows with those of a merge, or do the equivalent: see `TableStore.merge`.

        `merge_rows` takes the name of a table or view with what the table held before the batch.
        """

    def unmerge(self, table: Table, batch_id: str) -> str:
        """Restore the table to before the first batch with this id prefix: see `TableStore.unmerge`."""

    def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
        """Remove an existing table's versions replaced longer than `keep` ago: see `TableStore.expire`."""

    def files(self, name: str, description: Described, where: str) -> TableFiles | None:
        """Return the files of a table's rows; None if they are not known.

        With a condition (Spark SQL) on the columns that the table is partitioned by, return at least the files of its
        rows. No row is read, and no file is opened.
        """

    def version(self, name: str, description: Described) -> str:
        """Return a text that identifies what the table holds now: see `TableStore.version`."""

    def drop(self, name: str) -> None:
        """Drop an existing table with its files, but without those of a table that it took over."""
