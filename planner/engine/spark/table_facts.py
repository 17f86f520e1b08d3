"""The last commit of a table that brought rows, and the size of its files."""

from datetime import UTC, datetime
from typing import Any

from mergeplan.planner.engine.spark.described import Described, describe_table
from mergeplan.planner.engine.spark.quoting import quote_name
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.naming import quote_column

# Optimizing, a vacuum, a deletion, a restored version and another property leave a late table as late as it was.
DELTA_WRITES = frozenset(
    ("WRITE", "STREAMING UPDATE", "MERGE", "UPDATE", "COPY INTO", "CLONE", "CONVERT", "CREATE TABLE AS SELECT",
     "CREATE OR REPLACE TABLE AS SELECT", "REPLACE TABLE AS SELECT")
)  # fmt: skip
ICEBERG_WRITES = ("append", "overwrite")
FILES = frozenset(("avro", "csv", "json", "orc", "parquet", "text"))  # formats whose files Spark tells the time of


def find_last_write(sessions: Sessions, name: str) -> datetime | None:
    """Return the moment (UTC) of a table's last commit with rows, or of its newest file.

    Return None for a view, for a missing table, for one without rows, and where its format does not record writes.
    """
    description = describe_table(sessions, name)
    if description is None or description.is_view:
        return None
    sessions.run(f"REFRESH TABLE {quote_name(name)}")
    rows = _read_moments(sessions, name, description)
    return datetime.fromtimestamp(rows[0][0] / 1000, UTC) if rows and rows[0][0] is not None else None


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
