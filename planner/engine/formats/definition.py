"""The statement that creates a table, and the order of rows in its files: alike for every format."""

from __future__ import annotations

from collections.abc import Iterable

from mergeplan.planner.engine.spark.described import create_in_schema
from mergeplan.planner.engine.spark.errors import is_spark
from mergeplan.planner.engine.spark.quoting import literal, quoted
from mergeplan.planner.engine.spark.session import Frame
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.engine.spark.views import commented
from mergeplan.planner.engine.table import Table


def create_table(
    sessions: Sessions,
    table: Table,
    using: str,
    properties: Iterable[tuple[str, str]],
    *,
    comments: bool,
    listed: bool = True,
) -> bool:
    """Create the schema and the empty table, with its properties; existing ones stay as they are. True when the table
    was not there. `listed` is as in `create_in_schema`."""
    sql = f"{quoted(table.name)} {_definition(table, using, properties, comments=comments)}"
    try:
        create_in_schema(sessions, table.name, f"CREATE TABLE {sql}", listed=listed)
    except Exception as error:
        if not is_spark(error):
            raise
        create_in_schema(sessions, table.name, f"CREATE TABLE IF NOT EXISTS {sql}", listed=listed)
        return False
    return True


def _definition(table: Table, using: str, properties: Iterable[tuple[str, str]], *, comments: bool) -> str:
    columns = [f"{quoted(c.name)} {c.type}{commented(c.comment if comments else '')}" for c in table.columns]
    columns += [f"{quoted(each.column)} {each.type}" for each in table.partition_columns if each.hidden]
    by = ", ".join(quoted(name) for name in partition_names(table))
    partitioned = f" PARTITIONED BY ({by})" if by else ""
    comment = commented(table.comment if comments else "")
    given = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties)
    return f"({', '.join(columns)}) USING {using}{partitioned}{comment}{f' TBLPROPERTIES ({given})' if given else ''}"


def partition_names(table: Table) -> list[str]:
    """The columns that a table is partitioned by."""
    return [each.column for each in table.partition_columns]


def in_order(table: Table, frame: Frame) -> Frame:
    """A frame's rows in the order in which they are to lie in each file."""
    if not table.sorted_by:
        return frame
    return frame.sortWithinPartitions(*partition_names(table), *map(quoted, table.sorted_by))
