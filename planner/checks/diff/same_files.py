"""Two tables that are made of the same files: their rows are the same, and need not be read."""

from collections.abc import Iterable

from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.engine.table_files import same_rows
from mergeplan.planner.errors import QueryError


def are_same_files(engine: Engine, tables: tuple[str, str], columns: Iterable[str], where: str = "") -> bool:
    """Return True if two tables, or a condition's partitions in both, certainly hold the same rows in these columns.

    No row is read. The caller knows that no process overwrites the tables' files.
    """
    try:
        first = engine.tables.files(tables[0], where)
        return first is not None and same_rows(first, engine.tables.files(tables[1], where), columns)
    except QueryError:  # unknown to Spark: rows may still be read
        return False
