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

from __future__ import annotations

from collections.abc import Callable
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

    Whoever calls them has begun a statement (`Sessions.statement`): Spark's errors are translated there. A frame holds
    the batch's rows in the table's types, with all columns that the table is partitioned by.
    """

    def create(self, table: Table) -> bool:
        """Create the schema and the empty table; existing ones stay as they are. True when the table was not there."""

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        """Create the table with the rows of another one, partitioned alike: of these intervals, or all of them when it
        is not partitioned by time. A column that it lacks is NULL."""

    def replace_all(self, table: Table, frame: Frame, *, is_fresh: bool = False) -> Written:
        """Put the rows in place of all; `is_fresh` is as in `TableStore.replace`."""

    def replace_interval(self, table: Table, frame: Frame, interval: Interval) -> Written:
        """Put the rows (all of the interval) in place of exactly the interval's; days without rows end empty."""

    def replace_partitions(
        self, table: Table, frame: Frame, *, first: str | None = None, others: bool = False
    ) -> Written:
        """Put the rows in place of exactly the partitions that they lie in.

        Other partitions of which `first` is the first value end empty; with `others` all of them do.
        """

    def overwrite(self, table: Table, rows: Callable[[], Frame], batch_id: str) -> Written:
        """Put rows that are read from the table in place of exactly the partitions that they lie in, or of all: see
        `TableStore.overwrite`."""

    def merge(
        self, table: Table, merge_rows: Callable[[str], Frame], batch_id: str, native: NativeMerge | None = None
    ) -> Written:
        """Put the rows that are merged with those of a table or view (what the table held before the batch) in place
        of all, or do what comes to the same: see `TableStore.merge`."""

    def unmerge(self, table: Table, batch_id: str) -> None:
        """Let the table hold what it held before the first batch whose id begins so: see `TableStore.unmerge`."""

    def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
        """Remove the versions of a table that exists which were replaced longer ago than that: see
        `TableStore.expire`."""

    def files(self, name: str, description: Described, where: str) -> TableFiles | None:
        """The files of a table's rows, or at least those with the rows of a condition (Spark SQL) on what it is
        partitioned by; None where they are not known. No row is read, and no file is opened."""

    def version(self, name: str, description: Described) -> str:
        """What tells what the table holds now from whatever else it held or will hold: see `TableStore.version`."""

    def drop(self, name: str) -> None:
        """Drop a table that exists, with its files and without those of a table that it took over."""
