"""Parquet and ORC tables of a Hive catalog: no file is ever overwritten.

A batch is written aside, into a folder of its own. Then the table, or exactly the partitions that it replaces, is
pointed there. Old files stay until the table is dropped. The first rows of a table without readers are written directly
to its own location. If that is interrupted, the next attempt writes aside, and the rest counts as old files.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from mergeplan.planner.engine.formats.definition import create_table, partition_names, sort_frame
from mergeplan.planner.engine.formats.files_of_tables import input_files, partition_types, table_columns
from mergeplan.planner.engine.formats.merge_into import NativeMerge
from mergeplan.planner.engine.formats.partition_locations import (
    NULL,
    Run,
    Spec,
    catalog_partitions,
    empty_partitions,
    partition_places,
    point_back,
    point_partitions,
    specs_of,
    specs_seen,
)
from mergeplan.planner.engine.protocol import Expiry, Written
from mergeplan.planner.engine.spark.described import Described, describe_table
from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.spark.session import Frame, aggregate_rows
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.engine.table import Partitioning, Table
from mergeplan.planner.engine.table_files import TableFiles
from mergeplan.planner.errors import QueryError
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.naming import quote_column

HIDDEN = "(redacted)"  # what Spark shows in place of an option that may be a secret
LIMITED_TEXT = re.compile(r"\b(?:var)?char\(\d+\)", re.IGNORECASE)
BATCH = re.compile(r"mergeplan-[0-9a-f]{32}")
FORMER = "before"  # where the partitions of a batch pointed before it
BEFORE = "mergeplan.before"  # the property that says where a table pointed before its last merge
BATCH_END = re.compile(r"/mergeplan-[0-9a-f]{32}$")
PLACE = "mergeplan.place"  # the property of a table that points at files of another one
OVERWRITE = "mergeplan.overwrite"  # the property that names the folder of the last batch whose query read the table
OWN_OVERWRITE = re.compile(r"mergeplan\.overwrite=(mergeplan-[0-9a-f]{32})")
OWN_PLACE = re.compile(r"mergeplan\.place=([0-9a-f]+)")  # in hexadecimal digits, in which no word can be found
ELSEWHERE = re.compile(r"at:[0-9a-f]+")
ADDED_AT_ONCE = 500  # partitions in one statement


@dataclass(frozen=True)
class HiveLocation:
    """The location of the rows of a parquet or ORC table, from the catalog's description of it."""

    known: Described

    @property
    def location(self) -> str:
        return self.known.details["Location"]

    @property
    def base(self) -> str:
        """The location where the table was created, below which its batches are stored.

        A table property could state it more plainly, but Spark redacts the value of any in which it finds a word like
        `url` or `token`, and a path may well contain one.
        """
        place = OWN_PLACE.search(self.known.details.get("Table Properties", ""))
        return bytes.fromhex(place[1]).decode() if place else BATCH_END.sub("", self.location)

    @property
    def has_others_files(self) -> bool:
        """True if the table points to files of the table whose rows it took over."""
        return OWN_PLACE.search(self.known.details.get("Table Properties", "")) is not None

    @property
    def lists_partitions(self) -> bool:
        return "Partition Provider" in self.known.details

    @property
    def batch_id(self) -> str:
        """The id of the batch that was merged last, or ''; after any other write, digits that are no id."""
        is_batch_folder = BATCH_END.search(self.location) and self.location.startswith(f"{self.base}/")
        return self.location[-32:-16] if is_batch_folder else ""

    @property
    def overwrite(self) -> str:
        """The folder, below the base, of the last batch whose query read the table; '' if none is recorded."""
        batch = OWN_OVERWRITE.search(self.known.details.get("Table Properties", ""))
        return batch[1] if batch else ""

    @property
    def as_property(self) -> str:
        """The location as a property stores it: relative to the base, or in hexadecimal digits if outside of it."""
        if self.location == self.base or self.location.startswith(f"{self.base}/"):
            return self.location.removeprefix(self.base).lstrip("/")
        return f"at:{self.location.encode().hex()}"

    def resolve_property(self, text: str) -> str:
        if ELSEWHERE.fullmatch(text):
            return bytes.fromhex(text.removeprefix("at:")).decode()
        return f"{self.base}/{text}".rstrip("/")


class HiveFiles:
    def __init__(self, sessions: Sessions, *, comments: bool) -> None:
        self._sessions, self._comments = sessions, comments
        self._run = sessions.run

    def create(self, table: Table) -> bool:
        listed = _is_listed(table) or not table.partition_columns
        return create_table(self._sessions, table, table.options, comments=self._comments, is_listed=listed)

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        self.create(table)
        new_description, old_description = (
            describe_table(self._sessions, table.name),
            describe_table(self._sessions, old),
        )
        if new_description is None or old_description is None:
            raise QueryError(f"there is no table {old} to go on with.")
        name, place = quote_name(table.name), HiveLocation(new_description).location.encode().hex()
        self._run(f"ALTER TABLE {name} SET TBLPROPERTIES ('{PLACE}' = '{place}')")
        if _is_listed(table):
            share_files(self._run, table, old, rows)
        else:
            self._run(f"ALTER TABLE {name} SET LOCATION {literal(HiveLocation(old_description).location)}")

    def replace_all(self, table: Table, frame: Frame, *, is_fresh: bool = False) -> Written:
        """Replace all rows by changing the location of the table."""
        if is_fresh and not table.partition_columns and (place := self._first_place(table.name)):
            # to the location, not the table: a late process, once another has repointed that, leaves only unread files
            self._sessions.check()
            return Written(self._save_rows(table, frame, place, {"rows": "count(1)"}, mode="append")["rows"])
        return self._replace_all(table, frame, _batch_below(self._find_location(table.name), self._sessions.attempt))

    def replace_interval(self, table: Table, frame: Frame, interval: Interval) -> Written:
        assert table.partitioning is not None
        low, high = table.partitioning.bounds(interval)
        rows, written = self._replace_listed(table, frame, lambda spec: low <= (spec[0] or "") < high)
        return Written(rows, tuple(sorted({spec[0] or "" for spec in written})))

    def replace_partitions(
        self, table: Table, frame: Frame, *, first: Sequence[str] = (), others: bool = False
    ) -> Written:
        rows, _ = self._replace_listed(table, frame, lambda spec: others or spec[0] in first)
        return Written(rows)

    def overwrite(self, table: Table, rows: Callable[[], Frame], batch_id: str) -> Written:
        """Replace exactly the partitions of the rows, or all rows, with rows read from the table.

        All rows are written aside, together with the previous locations of these partitions, before any partition is
        repointed. A repeated batch starts from what the table held before it.
        """
        self.unmerge(table, batch_id)
        if not _is_listed(table):
            return self.merge(table, lambda _: rows(), batch_id)
        hive_location = self._find_location(table.name)
        folder = f"mergeplan-{batch_id}{uuid4().hex[len(batch_id) :]}"
        batch = f"{hive_location.base}/{folder}"
        row_count, written, existing = self._write_aside(table, rows(), batch)
        if not written:
            return Written(row_count)
        former_places = partition_places(self._run, table, written & existing)
        if added := written - existing:
            self._write_nothing(table, f"{batch}/empty")
            former_places += [(json.dumps(spec), f"{batch}/empty") for spec in added]
        former_frame = self._sessions.current.spark.createDataFrame(former_places, "spec string, place string")
        former_frame.coalesce(1).write.parquet(f"{batch}/{FORMER}")
        self._sessions.check()
        self._run(f"ALTER TABLE {quote_name(table.name)} SET TBLPROPERTIES ('{OVERWRITE}' = '{folder}')")
        point_partitions(self._run, table, batch, written, existing)
        return Written(row_count)

    def merge(
        self, table: Table, merge_rows: Callable[[str], Frame], batch_id: str, native: NativeMerge | None = None
    ) -> Written:
        hive_location = self._find_location(table.name)
        if hive_location.batch_id[:8] != batch_id[:8]:
            location_property = literal(hive_location.as_property)
            self._run(f"ALTER TABLE {quote_name(table.name)} SET TBLPROPERTIES ('{BEFORE}' = {location_property})")
        batch = _batch_below(self._find_location(table.name), batch_id + uuid4().hex[len(batch_id) :])
        if hive_location.batch_id != batch_id:
            return self._replace_all(table, merge_rows(table.name), batch)
        former_rows = self._read_location(table, self._previous_location(hive_location, table.name))
        with self._sessions.temporary_view(former_rows) as view:
            return self._replace_all(table, merge_rows(view), batch)

    def unmerge(self, table: Table, batch_id: str) -> str:
        hive_location = self._find_location(table.name)
        is_listed, folder = hive_location.lists_partitions, hive_location.overwrite.removeprefix("mergeplan-")
        last_id = folder[:16] if is_listed else hive_location.batch_id
        if last_id[:8] != batch_id[:8]:
            return last_id
        if is_listed:
            former = self._sessions.current.spark.read.parquet(f"{hive_location.base}/mergeplan-{folder}/{FORMER}")
            point_back(self._run, table, [(row["spec"], row["place"]) for row in former.collect()])
            self._run(f"ALTER TABLE {quote_name(table.name)} UNSET TBLPROPERTIES IF EXISTS ('{OVERWRITE}')")
        else:
            former_path = literal(self._previous_location(hive_location, table.name))
            self._run(f"ALTER TABLE {quote_name(table.name)} SET LOCATION {former_path}")
        return ""

    def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
        """Remove nothing: other tables and readers may use files that this table no longer points to."""
        return Expiry()

    def files(self, name: str, description: Described, where: str) -> TableFiles | None:
        """Return the location of the table, or the files of its listed partitions in our folders.

        The names of these folders give the catalog's values. Return None if a file is in any other folder.
        """
        options = description.details.get("Storage Properties", "")
        if HIDDEN in options or "Location" not in description.details:
            return None
        columns = table_columns(self._sessions, name)
        read_as = (description.format, options, *partition_types(description, columns))
        if description.format == "orc":  # files of older writers have no names: columns are found by their place
            read_as += tuple(text for pair in columns for text in pair)
        place = HiveLocation(description)
        if not place.lists_partitions:
            return TableFiles(read_as, columns, frozenset({place.location}))
        files = input_files(self._sessions, name, where)
        if not files or not all(_is_ours(file, description.partitions) for file in files):
            return None
        return TableFiles(read_as, columns, files)

    def version(self, name: str, description: Described) -> str:
        """Return '': the version is not known, since other writers may put rows into the folder of such a table."""
        return ""

    def drop(self, name: str) -> None:
        hive_location = self._find_location(name)
        if hive_location.has_others_files and hive_location.lists_partitions:
            let_go(self._run, name, hive_location.base)
        if hive_location.base != hive_location.location:  # a drop removes the files of the place the table points at
            self._run(f"ALTER TABLE {quote_name(name)} SET LOCATION {literal(hive_location.base)}")
        self._run(f"DROP TABLE IF EXISTS {quote_name(name)}")

    def _find_location(self, name: str) -> HiveLocation:
        description = describe_table(self._sessions, name)
        if description is None or description.is_view:
            raise QueryError(f"there is no table {name} to write to.")
        return HiveLocation(description)

    def _first_place(self, name: str) -> str | None:
        """Return the location of a table without any write; None if it already points to a batch."""
        if place := self._sessions.current.location(name, PLACE):  # in a tenth of the time of a statement
            return None if is_batch(place) else place
        hive_location = self._find_location(name)
        return hive_location.base if hive_location.location == hive_location.base else None

    def _previous_location(self, location: HiveLocation, name: str) -> str:
        rows = self._run(f"SHOW TBLPROPERTIES {quote_name(name)} ('{BEFORE}')").collect()
        return location.resolve_property(rows[0][1])

    def _read_location(self, table: Table, place: str) -> Frame:
        # Files are read as no other type of text.
        types = {column.name: LIMITED_TEXT.sub("string", column.type) for column in table.stored_columns}
        ddl = ", ".join(f"{quote_column(name)} {kind}" for name, kind in types.items())
        return self._sessions.current.spark.read.format(table.format).schema(ddl).load(place)

    def _replace_all(self, table: Table, frame: Frame, batch: str) -> Written:
        self._sessions.check()
        values = self._save_rows(table, frame, batch, {"rows": "count(1)"})
        self._sessions.check()
        self._run(f"ALTER TABLE {quote_name(table.name)} SET LOCATION {literal(batch)}")
        return Written(values["rows"])

    def _replace_listed(self, table: Table, frame: Frame, takes: Callable[[Spec], bool]) -> tuple[int, frozenset[Spec]]:
        """Write rows aside, a folder per partition, and point the partitions there.

        Other partitions that the batch `takes` end empty. Return the number of rows and their partitions.
        """
        hive_location = self._find_location(table.name)
        batch = _batch_below(hive_location, self._sessions.attempt)
        rows, written, existing = self._write_aside(table, frame, batch)
        if hive_location.overwrite:  # what it could be put back to is not what it is to hold now
            self._run(f"ALTER TABLE {quote_name(table.name)} UNSET TBLPROPERTIES IF EXISTS ('{OVERWRITE}')")
        point_partitions(self._run, table, batch, written, existing)
        if emptied := [spec for spec in existing - written if takes(spec)]:
            self._write_nothing(table, f"{batch}/empty")
            empty_partitions(self._run, table, f"{batch}/empty", emptied)
        return rows, written

    def _write_aside(self, table: Table, frame: Frame, batch: str) -> tuple[int, frozenset[Spec], frozenset[Spec]]:
        """Write rows into a folder per partition; return their number, their partitions and the catalog's."""
        self._sessions.check()
        aggregates = {"rows": "count(1)", "parts": specs_seen(table.partition_columns)}
        values = self._save_rows(table, frame, batch, aggregates)
        self._sessions.check()
        return values["rows"], specs_of(values["parts"]), catalog_partitions(self._run, table)

    def _save_rows(
        self, table: Table, frame: Frame, folder: str, aggregates: Mapping[str, str], *, mode: str = "error"
    ) -> dict[str, Any]:
        """Write rows into a folder, and return aggregates (Spark SQL) over them."""
        frame, observed = self._sessions.current.observe(frame, **aggregates)
        writer = _frame_writer(table, sort_frame(table, frame)).mode(mode)
        writer.partitionBy(*partition_names(table)).save(folder)
        return observed() or aggregate_rows(self._read_location(table, folder), aggregates)

    def _write_nothing(self, table: Table, folder: str) -> None:
        nothing = self._run(f"SELECT * FROM {quote_name(table.name)} WHERE false").drop(*partition_names(table))
        _frame_writer(table, nothing).save(folder)


def _is_ours(file: str, partitions: tuple[str, ...]) -> bool:
    """Return True for a file in a partition folder of our layout, whose names give the catalog's values."""
    batch, *folders = unquote(file).split("/")[-len(partitions) - 2 : -1]
    names = tuple(unquote(folder.partition("=")[0]).lower() for folder in folders)
    return BATCH.fullmatch(batch) is not None and names == partitions


def _batch_below(location: HiveLocation, name: str) -> str:
    return f"{location.base}/mergeplan-{name}"


def _is_listed(table: Table) -> bool:
    """Return True if the catalog lists the table's partitions, so that each can be repointed alone."""
    return bool(table.partition_columns) and (table.partitioning is not None or table.listed)


def _frame_writer(table: Table, frame: Frame) -> Any:
    return frame.write.format(table.format).options(**dict(table.options))


def is_batch(place: str) -> bool:
    """Return True for the folder of a batch, and False for the location where a table was created."""
    return BATCH_END.search(place) is not None


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
