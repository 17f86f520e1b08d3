"""A table over another table's files: its partitions point to the same files, and are repointed before a drop."""

from collections.abc import Iterable
from urllib.parse import unquote

from mergeplan.planner.engine.formats.partition_locations import NULL, Run
from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.table import Partitioning, Table
from mergeplan.planner.intervals import Timeline
from mergeplan.planner.naming import quote_column

ADDED_AT_ONCE = 500  # partitions in one statement


def share_files(run: Run, table: Table, old: str, rows: Timeline) -> None:
    """Point the new table's partitions to the files of another table's.

    A table that is partitioned by time takes those of these intervals, any other table takes all.
    """
    run(f"REFRESH TABLE {quote_name(old)}")  # another process may have pointed it at other files since
    folders = {unquote(path).rpartition("/")[0] for path in run(f"SELECT * FROM {quote_name(old)}").inputFiles()}
    parts = [part for folder in sorted(folders) if (part := _partition_clause(table, folder, rows))]
    for start in range(0, len(parts), ADDED_AT_ONCE):
        run(f"ALTER TABLE {quote_name(table.name)} ADD {' '.join(parts[start : start + ADDED_AT_ONCE])}")


def let_go(run: Run, name: str, place: str) -> None:
    """Point each partition away from other tables' files: a drop removes whatever a table points to."""
    for row in run(f"SHOW PARTITIONS {quote_name(name)}").collect():
        run(f"ALTER TABLE {quote_name(name)} {_partition_spec(row[0].split('/'))} SET LOCATION {literal(place)}")


def _partition_clause(table: Table, folder: str, rows: Timeline) -> str:
    """Return `PARTITION (..) LOCATION ..` for a folder with files; '' if it is no partition of the table."""
    pieces = folder.split("/")[-len(table.partition_columns) :]
    if [unquote(piece.partition("=")[0]) for piece in pieces] != [part.column for part in table.partition_columns]:
        return ""
    if table.partitioning and not _is_within(table.partitioning, unquote(pieces[0].partition("=")[2]), rows):
        return ""
    return f"{_partition_spec(pieces)} LOCATION {literal(folder)}"


def _is_within(partitioning: Partitioning, value: str, rows: Timeline) -> bool:
    return any(low <= value < high for low, high in map(partitioning.bounds, rows))


def _partition_spec(pieces: Iterable[str]) -> str:
    """Return `PARTITION (`day` = '2026-01-01')` for `day=2026-01-01`."""
    pairs = (piece.partition("=")[::2] for piece in pieces)
    values = (
        f"{quote_column(unquote(column))} = {'NULL' if text == NULL else literal(unquote(text))}"
        for column, text in pairs
    )
    return f"PARTITION ({', '.join(values)})"
