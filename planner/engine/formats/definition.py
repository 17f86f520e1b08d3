"""The statement that creates a table, and the order of rows in its files: alike for every format."""

from collections.abc import Iterable
from uuid import uuid4

from mergeplan.planner.engine.spark.described import create_in_schema
from mergeplan.planner.engine.spark.errors import find_occupied_location, is_spark
from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.spark.session import Frame
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.engine.spark.views import comment_clause, properties_clause
from mergeplan.planner.engine.table import Table
from mergeplan.planner.naming import quote_column


def create_table(
    sessions: Sessions, table: Table, properties: Iterable[tuple[str, str]], *, comments: bool, is_listed: bool = True
) -> bool:
    """Create the schema and the table with its properties, or return False if it exists; see `create_in_schema`."""
    sql = f"{quote_name(table.name)} {_table_definition(table, properties, comments=comments)}"
    try:
        create_in_schema(sessions, table.name, f"CREATE TABLE {sql}", is_listed=is_listed)
    except Exception as error:
        if not is_spark(error):
            raise
        if location := find_occupied_location(error):
            # The table was dropped by hand, and other tables may read the files that it left: it gets another folder.
            folder = literal(f"{location}/mergeplan-{uuid4().hex}")
            create_in_schema(sessions, table.name, f"CREATE TABLE {sql} LOCATION {folder}", is_listed=is_listed)
            return True
        create_in_schema(sessions, table.name, f"CREATE TABLE IF NOT EXISTS {sql}", is_listed=is_listed)
        return False
    return True


def _table_definition(table: Table, properties: Iterable[tuple[str, str]], *, comments: bool) -> str:
    columns = [
        f"{quote_column(c.name)} {c.type}{comment_clause(c.comment if comments else '')}" for c in table.stored_columns
    ]
    by = ", ".join(quote_column(name) for name in partition_names(table))
    partitioned = f" PARTITIONED BY ({by})" if by else ""
    comment = comment_clause(table.comment if comments else "")
    clause = properties_clause(dict((*properties, *table.owner_property)))
    return f"({', '.join(columns)}) USING {table.format}{partitioned}{comment}{clause}"


def partition_names(table: Table) -> list[str]:
    return [column.column for column in table.partition_columns]


def sort_frame(table: Table, frame: Frame) -> Frame:
    if not table.sorted_by:
        return frame
    return frame.sortWithinPartitions(*map(quote_column, (*partition_names(table), *table.sorted_by)))
