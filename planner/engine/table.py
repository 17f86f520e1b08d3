"""A physical table: its columns, the columns that it is partitioned by, and how its files are written."""

from dataclasses import dataclass
from datetime import datetime

from mergeplan.planner.intervals import Interval, partitions
from mergeplan.planner.model.model import Column
from mergeplan.planner.naming import quote_column

OWNER = "mergeplan.state"  # the property of a table or view that names the state which made it
HIDDEN_COLUMN = "mergeplan_period"
DAY = 86_400  # seconds; longer units are partitioned by the day


@dataclass(frozen=True)
class PartitionColumn:
    """A column that a table is partitioned by; `expression` (Spark SQL over the model's columns) gives its value.

    `column` is a column of the model when it can serve as it is, otherwise a hidden one that views leave out.
    """

    column: str
    type: str
    expression: str
    hidden: bool


@dataclass(frozen=True)
class Partitioning(PartitionColumn):
    """The partitioning of a time-ranged table: by the time column if that can serve as it is (a DATE).

    A value is the start of its unit (at most a day) in UTC, as the text that Spark lists; values sort like the time.
    """

    unit_seconds: int

    def bounds(self, interval: Interval) -> tuple[str, str]:
        """Return the first value of an interval and the first after it; raise ValueError for a part of a unit."""
        for at in (interval.start, interval.end):
            if int(at.timestamp()) % min(self.unit_seconds, DAY):
                raise ValueError(f"{at} does not start a unit of {self.unit_seconds} seconds")
        return self._format_value(interval.start), self._format_value(interval.end)

    def periods(self, interval: Interval) -> tuple[str, ...]:
        """Return the value of every partition that an interval covers, in order, with or without rows."""
        self.bounds(interval)
        return partitions(interval, self.unit_seconds)

    def _format_value(self, moment: datetime) -> str:
        return moment.strftime("%Y-%m-%d" if self.unit_seconds >= DAY else "%Y-%m-%d %H:%M:%S")


def time_partitioning(
    columns: tuple[Column, ...],
    time_column: str,
    time_format: str,
    unit_seconds: int,
    *,
    use_hidden_column: bool = False,
) -> Partitioning:
    """Return a table's partitioning by its time column: by the column itself if it is a DATE, else by a hidden one.

    A text or a number is read with `time_format`. A table needs a column beside the one that it is partitioned by, and
    a DATE cannot tell hours apart: both get the hidden column too, and so does `use_hidden_column`.
    """
    kind = next(column.type for column in columns if column.name == time_column)
    quoted = quote_column(time_column)
    if not use_hidden_column and kind == "date" and len(columns) > 1 and unit_seconds >= DAY:
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

    `parts` are the columns that it is partitioned by besides time. `listed` says that the catalog lists the partitions
    of a table that is not partitioned by time, so that each can be replaced alone; otherwise all go at once, with the
    location of the table.
    """

    name: str
    columns: tuple[Column, ...]
    partitioning: Partitioning | None = None
    comment: str = ""
    format: str = "parquet"
    files: str = "parquet"  # of a table whose format leaves that open
    options: tuple[tuple[str, str], ...] = ()  # of the files that are written, and of the table
    parts: tuple[PartitionColumn, ...] = ()
    listed: bool = False
    sorted_by: tuple[str, ...] = ()  # within each file
    gateway: str = ""  # on whose Spark it is computed; '' for the project's own
    owner: str = ""  # the ID of the state that makes it

    @property
    def owner_property(self) -> tuple[tuple[str, str], ...]:
        return ((OWNER, self.owner),) if self.owner else ()

    @property
    def partition_columns(self) -> tuple[PartitionColumn, ...]:
        """All columns that it is partitioned by, time first."""
        return (*([self.partitioning] if self.partitioning else []), *self.parts)

    @property
    def stored_columns(self) -> tuple[Column, ...]:
        """Its columns, then the hidden ones that it is partitioned by."""
        return (*self.columns, *(Column(part.column, part.type) for part in self.partition_columns if part.hidden))
