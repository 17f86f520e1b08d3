"""The files of a table's rows as Spark lists them, and how they are read: no row is read, and no file is opened."""

from mergeplan.planner.engine.spark.described import Described
from mergeplan.planner.engine.spark.quoting import quote_name
from mergeplan.planner.engine.spark.session import listing_here
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.engine.table_files import schema_columns


def input_files(sessions: Sessions, name: str, where: str) -> frozenset[str]:
    """Return the files that Spark would read; none if Spark cannot tell, as for a cached table."""
    frame = sessions.run(f"SELECT * FROM {quote_name(name)}{f' WHERE {where}' if where else ''}")
    with listing_here(sessions.current.spark):
        return frozenset(frame.inputFiles())


def table_columns(sessions: Sessions, name: str) -> tuple[tuple[str, str], ...]:
    return schema_columns(sessions.run(f"SELECT * FROM {quote_name(name)}").schema.fields)


def partition_types(description: Described, columns: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(f"{name} {dict(columns).get(name)}" for name in description.partitions)
