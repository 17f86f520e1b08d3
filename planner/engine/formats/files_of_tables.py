"""The files of a table's rows, as each format lists them: no row is read, and no file is opened.

| format       | its files                                                        | unknown              |
|--------------|------------------------------------------------------------------|----------------------|
| parquet, ORC | the place of the table; of listed partitions those in our        | other folders        |
|              | folders, whose names say which values the catalog has for them   |                      |
| Delta        | those of its version                                             | of a cached table    |
| ... newer    | its log: deletion vectors, column mapping and wider types decide |                      |
|              | how files are read                                               |                      |
| Iceberg      | its metadata file, which names all others, and how they are read | catalogs without one |
| others       |                                                                  | always               |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote

from mergeplan.planner.engine.formats.hive_location import HiveLocation
from mergeplan.planner.engine.spark.described import Described, describe
from mergeplan.planner.engine.spark.quoting import quote_name
from mergeplan.planner.engine.spark.session import listing_here
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.engine.table_files import TableFiles, schema_columns

BATCH = re.compile(r"mergeplan-[0-9a-f]{32}")
HIDDEN = "(redacted)"  # what Spark shows in place of an option that may be a secret
READER = "delta.minReaderVersion"
PLAIN = "1"  # a reader that knows files and the columns in them by their names, and nothing more


def files_of(sessions: Sessions, name: str, where: str) -> TableFiles | None:
    """The files of a table, or at least those with the rows of a condition (Spark SQL) on what it is partitioned by;
    None for a view, a table that is not there, and where they are not known."""
    known = describe(sessions, name)
    if known is None or known.is_view or known.format not in _LISTED_BY:
        return None
    sessions.run(f"REFRESH TABLE {quote_name(name)}")  # another process may have written it since
    return _LISTED_BY[known.format](sessions, name, known, where)


def _hive_files(sessions: Sessions, name: str, known: Described, where: str) -> TableFiles | None:
    options = known.details.get("Storage Properties", "")
    if HIDDEN in options or "Location" not in known.details:
        return None
    columns = _columns(sessions, name)
    read_as = (known.format, options, *_partition_types(known, columns))
    if known.format == "orc":  # files of older writers have no names: columns are found by their place
        read_as += tuple(text for pair in columns for text in pair)
    place = HiveLocation(known)
    if not place.lists_partitions:
        return TableFiles(read_as, columns, frozenset({place.location}))
    files = _input_files(sessions, name, where)
    if not files or not all(_is_ours(file, known.partitions) for file in files):
        return None
    return TableFiles(read_as, columns, files)


def _is_ours(file: str, partitions: tuple[str, ...]) -> bool:
    """True for a file in a partition as we lay them out: its folders say which values the catalog has for it."""
    batch, *folders = unquote(file).split("/")[-len(partitions) - 2 : -1]
    names = tuple(folder.partition("=")[0].lower() for folder in folders)
    return BATCH.fullmatch(batch) is not None and names == partitions


def _delta_files(sessions: Sessions, name: str, known: Described, where: str) -> TableFiles | None:
    files = _input_files(sessions, name, where)
    columns = _columns(sessions, name)
    # Asked last: what needs a newer reader is in the log before a file is read by it.
    properties = {row[0]: row[1] for row in sessions.run(f"SHOW TBLPROPERTIES {quote_name(name)}").collect()}
    if properties.get(READER) != PLAIN:
        return TableFiles(("delta", "log"), columns, frozenset({known.details["Location"]}))
    return TableFiles(("delta", *_partition_types(known, columns)), columns, files) if files else None


def _iceberg_files(sessions: Sessions, name: str, known: Described, where: str) -> TableFiles | None:
    # All that a table had, the current one among them: no two metadata files name each other as earlier ones.
    rows = sessions.run(f"SELECT file FROM {quote_name(name)}.metadata_log_entries").collect()
    files = frozenset(row[0] for row in rows)
    return TableFiles(("iceberg",), _columns(sessions, name), files) if files and None not in files else None


def _input_files(sessions: Sessions, name: str, where: str) -> frozenset[str]:
    """The files that Spark would read; none also where it cannot say, as for a table that is cached."""
    frame = sessions.run(f"SELECT * FROM {quote_name(name)}{f' WHERE {where}' if where else ''}")
    with listing_here(sessions.current.spark):
        return frozenset(frame.inputFiles())


def _columns(sessions: Sessions, name: str) -> tuple[tuple[str, str], ...]:
    return schema_columns(sessions.run(f"SELECT * FROM {quote_name(name)}").schema.fields)


def _partition_types(known: Described, columns: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """What a table is partitioned by: names and types."""
    return tuple(f"{name} {dict(columns).get(name)}" for name in known.partitions)


_Listing = Callable[[Sessions, str, Described, str], TableFiles | None]
_LISTED_BY: dict[str, _Listing] = {
    "parquet": _hive_files,
    "orc": _hive_files,
    "delta": _delta_files,
    "iceberg": _iceberg_files,
}
