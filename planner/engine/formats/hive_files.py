"""Parquet and ORC tables of a Hive catalog: no file is ever overwritten.

A batch is written aside, into a folder of its own, and then the table (or exactly the partitions that it replaces) is
pointed there. Old files wait for the table to be dropped. The first rows of a table that nobody reads yet go right to
its own place: were that cut off, the next attempt would write aside, and what it left would be such old files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from mergeplan.planner.engine.formats.definition import create_table, partition_names, sort_frame
from mergeplan.planner.engine.formats.files_of_tables import input_files, partition_types, table_columns
from mergeplan.planner.engine.formats.hive_location import OVERWRITE, PLACE, HiveLocation, is_batch
from mergeplan.planner.engine.formats.merge_into import NativeMerge
from mergeplan.planner.engine.formats.partition_locations import (
    Spec,
    catalog_partitions,
    empty,
    places,
    point,
    point_back,
    specs_of,
    specs_seen,
)
from mergeplan.planner.engine.formats.shared_files import let_go, share
from mergeplan.planner.engine.protocol import Expiry, Written
from mergeplan.planner.engine.spark.described import Described, describe
from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.spark.session import Frame
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.engine.table import Table
from mergeplan.planner.engine.table_files import TableFiles
from mergeplan.planner.errors import QueryError
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.naming import quote_column

HIDDEN = "(redacted)"  # what Spark shows in place of an option that may be a secret
BATCH = re.compile(r"mergeplan-[0-9a-f]{32}")
FORMER = "before"  # where the partitions of a batch pointed before it
BEFORE = "mergeplan.before"  # the property that says where a table pointed before its last merge


class HiveFiles:
    """The verbs of `FormatTables` for parquet and ORC."""

    def __init__(self, sessions: Sessions, *, comments: bool) -> None:
        self._sessions, self._comments = sessions, comments
        self._run = sessions.run

    def create(self, table: Table) -> bool:
        """Create the schema and the empty table; existing ones stay as they are. True when the table was not there."""
        listed = _is_listed(table) or not table.partition_columns
        return create_table(self._sessions, table, table.options, comments=self._comments, is_listed=listed)

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        """Create the table over the files that another one points at, of these intervals or of all."""
        self.create(table)
        own, theirs = describe(self._sessions, table.name), describe(self._sessions, old)
        if own is None or theirs is None:
            raise QueryError(f"there is no table {old} to go on with.")
        name, place = quote_name(table.name), HiveLocation(own).location.encode().hex()
        self._run(f"ALTER TABLE {name} SET TBLPROPERTIES ('{PLACE}' = '{place}')")
        if _is_listed(table):
            share(self._run, table, old, rows)
        else:
            self._run(f"ALTER TABLE {name} SET LOCATION {literal(HiveLocation(theirs).location)}")

    def replace_all(self, table: Table, frame: Frame, *, is_fresh: bool = False) -> Written:
        """Put the rows in place of all, with the location of the table."""
        if is_fresh and not table.partition_columns and (place := self._first_place(table.name)):
            return self._append(table, frame, place)
        return self._replace_all(table, frame, _batch_below(self._find_location(table.name), self._sessions.attempt))

    def replace_interval(self, table: Table, frame: Frame, interval: Interval) -> Written:
        """Put the rows in place of exactly the interval's partitions; days without rows end empty."""
        assert table.partitioning is not None
        low, high = table.partitioning.bounds(interval)
        rows, written = self._replace_listed(table, frame, lambda spec: low <= (spec[0] or "") < high)
        return Written(rows, tuple(sorted({spec[0] or "" for spec in written})))

    def replace_partitions(
        self, table: Table, frame: Frame, *, first: str | None = None, others: bool = False
    ) -> Written:
        """Put the rows in place of exactly the partitions that they lie in; others that begin with `first`, or all
        others, end empty."""
        rows, _ = self._replace_listed(table, frame, lambda spec: others or (first is not None and spec[0] == first))
        return Written(rows)

    def overwrite(self, table: Table, rows: Callable[[], Frame], batch_id: str) -> Written:
        """Put rows that are read from the table in place of exactly the partitions that they lie in, or of all.

        They are all written aside, and with them where these partitions point, before one is pointed elsewhere:
        repeated, a batch starts from what the table held before it.
        """
        self.unmerge(table, batch_id)
        if not _is_listed(table):
            return self.merge(table, lambda _: rows(), batch_id)
        known = self._find_location(table.name)
        folder = f"mergeplan-{batch_id}{uuid4().hex[len(batch_id) :]}"
        batch = f"{known.base}/{folder}"
        seen, written, existing = self._write_aside(table, rows(), batch)
        if not written:
            return Written(seen)
        before = places(self._run, table, written & existing)
        if added := written - existing:
            self._write_nothing(table, f"{batch}/empty")
            before += [(json.dumps(spec), f"{batch}/empty") for spec in added]
        kept = self._sessions.current.spark.createDataFrame(before, "spec string, place string")
        kept.coalesce(1).write.parquet(f"{batch}/{FORMER}")
        self._sessions.check()
        self._run(f"ALTER TABLE {quote_name(table.name)} SET TBLPROPERTIES ('{OVERWRITE}' = '{folder}')")
        point(self._run, table, batch, written, existing)
        return Written(seen)

    def merge(
        self, table: Table, merge_rows: Callable[[str], Frame], batch_id: str, native: NativeMerge | None = None
    ) -> Written:
        """Put the rows of a merge in place of all; a batch that is merged again starts from what the table held before
        it was merged the first time."""
        known = self._find_location(table.name)
        if known.batch_id[:8] != batch_id[:8]:
            before = literal(known.as_property)
            self._run(f"ALTER TABLE {quote_name(table.name)} SET TBLPROPERTIES ('{BEFORE}' = {before})")
        batch = _batch_below(self._find_location(table.name), batch_id + uuid4().hex[len(batch_id) :])
        if known.batch_id != batch_id:
            return self._replace_all(table, merge_rows(table.name), batch)
        view = f"mergeplan_{uuid4().hex}"
        self._read_location(table, self._previous_location(known, table.name)).createOrReplaceTempView(view)
        try:
            return self._replace_all(table, merge_rows(view), batch)
        finally:
            self._run(f"DROP VIEW IF EXISTS {view}")

    def unmerge(self, table: Table, batch_id: str) -> None:
        """Point the table at what it held before the first batch whose id begins as this one; nothing when it bears no
        such id."""
        known = self._find_location(table.name)
        if known.lists_partitions:
            self._point_back(table, known, batch_id)
        elif known.batch_id[:8] == batch_id[:8]:
            before = literal(self._previous_location(known, table.name))
            self._run(f"ALTER TABLE {quote_name(table.name)} SET LOCATION {before}")

    def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
        """Nothing: other tables, and readers, may stand on files that this one is not pointed at any more."""
        return Expiry()

    def files(self, name: str, description: Described, where: str) -> TableFiles | None:
        """The place of the table; of listed partitions those in our folders, whose names say which values the catalog
        has for them, and None with other folders."""
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
        """None is known: whoever writes such a table may put other rows into its folder."""
        return ""

    def drop(self, name: str) -> None:
        """Drop a table that exists, with its files and without those of a table that it took over."""
        known = self._find_location(name)
        if known.has_others_files and known.lists_partitions:
            let_go(self._run, name, known.base)
        if known.base != known.location:  # a drop removes the files of the place the table points at
            self._run(f"ALTER TABLE {quote_name(name)} SET LOCATION {literal(known.base)}")
        self._run(f"DROP TABLE IF EXISTS {quote_name(name)}")

    def _find_location(self, name: str) -> HiveLocation:
        known = describe(self._sessions, name)
        if known is None or known.is_view:
            raise QueryError(f"there is no table {name} to write to.")
        return HiveLocation(known)

    def _first_place(self, name: str) -> str | None:
        """Where a table lies to which nothing was written yet; None when it points at a batch already."""
        if place := self._sessions.current.location(name, PLACE):  # in a tenth of the time of a statement
            return None if is_batch(place) else place
        known = self._find_location(name)
        return known.base if known.location == known.base else None

    def _previous_location(self, location: HiveLocation, name: str) -> str:
        """Where a table's rows lay before the batch whose id it bears."""
        rows = self._run(f"SHOW TBLPROPERTIES {quote_name(name)} ('{BEFORE}')").collect()
        return location.resolve_property(rows[0][1])

    def _read_location(self, table: Table, place: str) -> Frame:
        """The rows of a table as they lie in a place where it pointed before."""
        hidden = [
            f"{quote_column(partition_column.column)} {partition_column.type}"
            for partition_column in table.partition_columns
            if partition_column.hidden
        ]
        ddl = ", ".join([*(f"{quote_column(column.name)} {column.type}" for column in table.columns), *hidden])
        return self._sessions.current.spark.read.format(table.format).schema(ddl).load(place)

    def _append(self, table: Table, frame: Frame, place: str) -> Written:
        """Write the first rows of a table right to where it was created.

        To the place and not to the table: whoever is late, after another process has pointed the table elsewhere,
        leaves files that nothing reads.
        """
        frame, observed = self._sessions.current.observe(frame, rows="count(1)")
        self._sessions.check()
        _writer(table, sort_frame(table, frame)).mode("append").save(place)
        return Written(observed().get("rows", 0))

    def _replace_all(self, table: Table, frame: Frame, batch: str) -> Written:
        frame, observed = self._sessions.current.observe(frame, rows="count(1)")
        self._sessions.check()
        _writer(table, sort_frame(table, frame)).partitionBy(*partition_names(table)).save(batch)
        self._sessions.check()
        self._run(f"ALTER TABLE {quote_name(table.name)} SET LOCATION {literal(batch)}")
        return Written(observed().get("rows", 0))

    def _replace_listed(self, table: Table, frame: Frame, takes: Callable[[Spec], bool]) -> tuple[int, frozenset[Spec]]:
        """Write rows aside, a folder per partition, and point the partitions there; others that the batch `takes` the
        place of end empty. How many rows there were, and in which partitions."""
        known = self._find_location(table.name)
        batch = _batch_below(known, self._sessions.attempt)
        rows, written, existing = self._write_aside(table, frame, batch)
        if known.overwrite:  # what it could be put back to is not what it is to hold now
            self._run(f"ALTER TABLE {quote_name(table.name)} UNSET TBLPROPERTIES IF EXISTS ('{OVERWRITE}')")
        point(self._run, table, batch, written, existing)
        if emptied := [spec for spec in existing - written if takes(spec)]:
            self._write_nothing(table, f"{batch}/empty")
            empty(self._run, table, f"{batch}/empty", emptied)
        return rows, written

    def _write_aside(self, table: Table, frame: Frame, batch: str) -> tuple[int, frozenset[Spec], frozenset[Spec]]:
        """Write rows into a folder, below it a folder per partition: how many they are, in which partitions, and which
        partitions the catalog has."""
        self._sessions.check()
        observing = {"rows": "count(1)", "parts": specs_seen(table.partition_columns)}
        frame, observed = self._sessions.current.observe(frame, **observing)
        _writer(table, sort_frame(table, frame)).partitionBy(*partition_names(table)).save(batch)
        seen = observed()
        written = specs_of(seen.get("parts", ()))
        self._sessions.check()
        return seen.get("rows", 0), written, catalog_partitions(self._run, table)

    def _write_nothing(self, table: Table, folder: str) -> None:
        """A folder without rows, for partitions that end empty."""
        nothing = self._run(f"SELECT * FROM {quote_name(table.name)} WHERE false").drop(*partition_names(table))
        _writer(table, nothing).save(folder)

    def _point_back(self, table: Table, known: HiveLocation, batch_id: str) -> None:
        """Point the partitions of the batch whose id begins so at where they pointed before it."""
        folder = known.overwrite
        if folder.removeprefix("mergeplan-")[:8] != batch_id[:8]:
            return
        former = self._sessions.current.spark.read.parquet(f"{known.base}/{folder}/{FORMER}").collect()
        point_back(self._run, table, [(row["spec"], row["place"]) for row in former])
        self._run(f"ALTER TABLE {quote_name(table.name)} UNSET TBLPROPERTIES IF EXISTS ('{OVERWRITE}')")


def _is_ours(file: str, partitions: tuple[str, ...]) -> bool:
    """True for a file in a partition as we lay them out: its folders say which values the catalog has for it."""
    batch, *folders = unquote(file).split("/")[-len(partitions) - 2 : -1]
    names = tuple(unquote(folder.partition("=")[0]).lower() for folder in folders)
    return BATCH.fullmatch(batch) is not None and names == partitions


def _batch_below(location: HiveLocation, name: str) -> str:
    """A folder for a batch of a table, by a name of 32 hex digits, in the place where the table was created."""
    return f"{location.base}/mergeplan-{name}"


def _is_listed(table: Table) -> bool:
    """True when the catalog lists the table's partitions, so that each can be pointed elsewhere alone."""
    return bool(table.partition_columns) and (table.partitioning is not None or table.listed)


def _writer(table: Table, frame: Frame) -> Any:
    """The writer of a frame's rows as the table's files are written."""
    return frame.write.format(table.format).options(**dict(table.options))
