"""Conditions (Spark SQL) on the rows of a table whose place a commit takes."""

from mergeplan.planner.engine.spark.quoting import literal
from mergeplan.planner.engine.table import PartitionColumn, Table
from mergeplan.planner.intervals import Timeline
from mergeplan.planner.naming import quote_column

ALL = "true"


def range_condition(partition: PartitionColumn, low: str, high: str) -> str:
    """Return the condition for partitions from `low` up to, but not including, `high`."""
    column = quote_column(partition.column)
    return (
        f"{column} >= cast({literal(low)} as {partition.type}) AND {column} < cast({literal(high)} as {partition.type})"
    )


def interval_condition(table: Table, rows: Timeline) -> str:
    """Return the condition for the rows of these intervals; for all rows if the table is not partitioned by time."""
    by = table.partitioning
    if by is None:
        return ALL
    return " OR ".join(f"({range_condition(by, *by.bounds(row))})" for row in rows) or "false"
