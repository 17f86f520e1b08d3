"""Iceberg tables: each verb is one snapshot, so that readers see all of a batch or nothing of it.

The snapshot of a merge names its batch and the table's snapshot before it. A repeated batch starts from that snapshot,
and a batch that was not recorded is rolled back to it.
"""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from mergeplan.planner.engine.formats.committed_tables import CommittedTables, LastMerge
from mergeplan.planner.engine.formats.conditions import ALL, interval_condition
from mergeplan.planner.engine.formats.definition import create_table
from mergeplan.planner.engine.formats.files_of_tables import table_columns
from mergeplan.planner.engine.formats.merge_into import NativeMerge
from mergeplan.planner.engine.protocol import Expiry, Written
from mergeplan.planner.engine.spark.described import Described
from mergeplan.planner.engine.spark.errors import is_spark
from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.spark.session import Frame
from mergeplan.planner.engine.table import Table
from mergeplan.planner.engine.table_files import TableFiles
from mergeplan.planner.errors import QueryError
from mergeplan.planner.intervals import Timeline
from mergeplan.planner.naming import field_names, parts_of, quote_column

KEY = "mergeplan"  # in the summary of each of our snapshots; a merge adds its batch
OURS = "written"
MARK = re.compile(r"batch ([0-9a-f]{16}) after (\d+)")
METADATA = f"spark.sql.iceberg.snapshot-property.{KEY}"  # sets the summary of a statement's snapshot
MAX_AGE = "history.expire.max-snapshot-age-ms"
FOR_EVER = 3_155_760_000_000  # milliseconds: a hundred years
IN_HIVE = re.compile(r"[\w .$]+")  # the names of fields that Hive's metastore reads in the text of a type


class Iceberg(CommittedTables):
    def create(self, table: Table) -> bool:
        self._run(f"CREATE SCHEMA IF NOT EXISTS {quote_name(table.name.rpartition('.')[0])}")
        try:
            return create_table(self._sessions, table, _table_properties(table), comments=self._comments)
        except Exception as error:
            fields = (field for column in table.columns for field in field_names(column.type))
            field = next((field for field in fields if not IN_HIVE.fullmatch(field)), None)
            if field is None or not is_spark(error) or "IllegalArgumentException" not in str(error):
                raise
            message = f"Hive's metastore has no field `{field}` in a table of Iceberg: only letters, digits and ` _.$`."
            raise QueryError(f"{message} Rename the field.") from None

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        self.create(table)
        fields = {field.name.lower() for field in self._run(f"SELECT * FROM {quote_name(old)}").schema.fields}
        values = (
            f"cast({quote_column(c.name) if c.name in fields else 'NULL'} as {c.type}) {quote_column(c.name)}"
            for c in table.stored_columns
        )
        sql = f"SELECT {', '.join(values)} FROM {quote_name(old)} WHERE {interval_condition(table, rows)}"
        self._replace(table, self._run(sql), ALL)

    def merge(
        self, table: Table, merge_rows: Callable[[str], Frame], batch_id: str, native: NativeMerge | None = None
    ) -> Written:
        last = self._last_merge(table.name)
        base_snapshot = last.before if last.batch_id[:8] == batch_id[:8] else last.version
        mark = f"batch {batch_id} after {base_snapshot}"
        if last.batch_id != batch_id:
            merged = native.run(self._sessions, table, {METADATA: mark}) if native else None
            return merged or self._replace(table, merge_rows(table.name), ALL, mark)
        view = f"mergeplan_{uuid4().hex}"
        at = f"VERSION AS OF {base_snapshot}" if base_snapshot else "WHERE false"
        self._run(f"SELECT * FROM {quote_name(table.name)} {at}").createOrReplaceTempView(view)
        try:
            return self._replace(table, merge_rows(view), ALL, mark)
        finally:
            self._run(f"DROP VIEW IF EXISTS {view}")

    def unmerge(self, table: Table, batch_id: str) -> None:
        last = self._last_merge(table.name)
        if last.batch_id[:8] != batch_id[:8]:
            return
        if last.before:
            procedure = self._procedure_name(table.name, "rollback_to_snapshot")
            self._run(f"CALL {procedure}(table => {literal(table.name)}, snapshot_id => {last.before})")
        else:
            self._overwrite_rows(table, self._run(f"SELECT * FROM {quote_name(table.name)} WHERE false"), ALL)

    def _batch_mark(self, name: str, batch_id: str) -> str:
        return f"batch {batch_id} after {self._last_merge(name).version}"

    def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
        """Remove, by expire_snapshots, the snapshots that are older than `keep`.

        The snapshot before the last merge, any after it, and those that a branch or a tag names stay.
        """
        properties = {row[0]: row[1] for row in self._run(f"SHOW TBLPROPERTIES {quote_name(name)}").collect()}
        max_age = properties.get(MAX_AGE, "0")
        if not max_age.isdecimal():
            return Expiry(kept=f"`{MAX_AGE}` is no number of milliseconds")
        current, snapshots = self._read_snapshots(name)
        longest = max(keep, timedelta(milliseconds=min(int(max_age), FOR_EVER)))
        millis = int((now - longest).timestamp() * 1000)
        cutoff = _oldest_needed(current, snapshots, millis)
        if not any(at < cutoff for snapshot, *_, at in snapshots if snapshot != current):
            return Expiry()
        moment = f"{datetime.fromtimestamp(cutoff // 1000, UTC):%Y-%m-%d %H:%M:%S}.{cutoff % 1000:03}+00:00"
        arguments = f"table => {literal(name)}, older_than => TIMESTAMP {literal(moment)}"
        counts = self._run(f"CALL {self._procedure_name(name, 'expire_snapshots')}({arguments})").collect()
        return Expiry(removed=any(map(any, counts)))  # none where branches and tags name all of them

    def files(self, name: str, description: Described, where: str) -> TableFiles | None:
        """Return the metadata files, which name all others and how to read them; None in a catalog without them."""
        # All that a table had, the current one among them: no two metadata files name each other as earlier ones.
        rows = self._run(f"SELECT file FROM {quote_name(name)}.metadata_log_entries").collect()
        files = frozenset(row[0] for row in rows)
        columns = table_columns(self._sessions, name)
        return TableFiles(("iceberg",), columns, files) if files and None not in files else None

    def version(self, name: str, description: Described) -> str:
        """Return the metadata files as text; each commit adds one."""
        files = self.files(name, description, "")
        return repr(sorted(files.files)) if files else ""

    def drop(self, name: str) -> None:
        self._run(f"DROP TABLE IF EXISTS {quote_name(name)} PURGE")

    def _overwrite_rows(self, table: Table, frame: Frame, where: str | None, mark: str = "") -> None:
        self._sessions.check()
        writer = frame.writeTo(quote_name(table.name)).option(f"snapshot-property.{KEY}", mark or OURS)
        if where is None:
            writer.overwritePartitions()
        else:
            writer.overwrite(self._sessions.current.condition(where))

    def _count_added(self, name: str) -> int:
        snapshots = f"SELECT * FROM {quote_name(name)}.snapshots ORDER BY committed_at DESC LIMIT 1"
        rows = self._run(snapshots).selectExpr("summary['added-records']").collect()
        return int(rows[0][0] or 0) if rows else 0

    def _last_merge(self, name: str) -> LastMerge:
        return _last_merge(*self._read_snapshots(name))

    def _read_snapshots(self, name: str) -> tuple[int, list[Any]]:
        """Return the current snapshot, and all snapshots as id, parent, mark and commit time (ms)."""
        refs = self._run(f"SELECT snapshot_id FROM {quote_name(name)}.refs WHERE name = 'main'").collect()
        columns = f"snapshot_id, parent_id, summary['{KEY}'], unix_millis(committed_at)"
        snapshots = self._run(f"SELECT {columns} FROM {quote_name(name)}.snapshots").collect()
        return (refs[0][0] if refs else 0), snapshots

    def _procedure_name(self, name: str, procedure: str) -> str:
        catalog = parts_of(name)[0] or self._sessions.current.spark.catalog.currentCatalog()
        return f"{quote_name(catalog)}.system.{procedure}"


def _oldest_needed(current: int, snapshots: Iterable[Any], before: int) -> int:
    """Return the time (ms) from which on snapshots stay: `before`, or earlier if the last merge needs it.

    The last merge needs the snapshot before it, and all through which it is found from the current one.
    """
    by_snapshot = {snapshot: (parent, mark, at) for snapshot, parent, mark, at in snapshots}
    last = _last_merge(current, snapshots)
    if not last.batch_id:
        return before
    needed: list[int] = [by_snapshot[last.before][2]] if last.before in by_snapshot else []
    at: int | None = current
    while at in by_snapshot:
        at, mark, made = by_snapshot[at]
        needed.append(made)
        if mark:
            break
    return min(before, *needed)


def _last_merge(current: int, snapshots: Iterable[Any]) -> LastMerge:
    """Return the last merge that the snapshots record, from the current one back.

    Snapshots of others do not count: a batch is still interrupted if another process deleted a row after it.
    """
    by_snapshot = {snapshot: (parent, mark) for snapshot, parent, mark, _ in snapshots}
    at: int | None = current
    while at in by_snapshot:
        at, mark = by_snapshot[at]
        if mark:
            match = MARK.fullmatch(mark)
            return LastMerge(current, match[1], int(match[2])) if match else LastMerge(current)
    return LastMerge(current)


def _table_properties(table: Table) -> list[tuple[str, str]]:
    options = {"write.format.default": table.files}
    if table.sorted_by:  # its writers would sort the rows by partition, and by nothing else
        options |= {"write.distribution-mode": "none", "write.spark.fanout.enabled": "true"}
    for key, value in table.options:
        options[f"write.{table.files}.compression-codec" if key == "compression" else key] = value
    return list(options.items())
