"""Delta tables: each verb is one commit of the table's log, so that readers see all of a batch or nothing of it.

The commit of a merge names its batch and the version of the table before it. A repeated batch starts from that version,
and a batch that was not recorded is rolled back to it.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from mergeplan.planner.engine.formats.committed_tables import CommittedTables, LastMerge
from mergeplan.planner.engine.formats.conditions import ALL, interval_condition
from mergeplan.planner.engine.formats.definition import create_table
from mergeplan.planner.engine.formats.delta_retention import RETENTION, Commit, is_due, is_pinned, retention_policy
from mergeplan.planner.engine.formats.files_of_tables import input_files, partition_types, table_columns
from mergeplan.planner.engine.protocol import Expiry
from mergeplan.planner.engine.spark.described import Described
from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.spark.type_text import type_text
from mergeplan.planner.engine.spark.views import properties_clause
from mergeplan.planner.engine.table import Table
from mergeplan.planner.engine.table_files import TableFiles
from mergeplan.planner.errors import QueryError
from mergeplan.planner.intervals import Timeline
from mergeplan.planner.naming import quote_column

OURS = "mergeplan"  # in the metadata of each of our commits; a merge adds its batch
MARK = re.compile(rf"{OURS} batch ([0-9a-f]{{16}}) after version (\d+)")
RECENT = 20  # commits among which the last merge is looked for first
READER = "delta.minReaderVersion"
PLAIN = "1"  # a reader that knows files and the columns in them by their names, and nothing more
# Types that a table with another first schema gets only with these features, which a new table has by itself.
FEATURES = (
    (re.compile(r"\btimestamp_ntz\b(?!`?:)"), "timestampNtz"),
    (re.compile(r"\bvariant\b(?!`?:)"), "variantType"),
)
OF_FILES = ("compression", "maxrecordsperfile")  # properties of a table that its writers get as options


class Delta(CommittedTables):
    mark_setting = "spark.databricks.delta.commitInfo.userMetadata"
    mark_text = f"{OURS} batch {{}} after version {{}}"

    def create(self, table: Table) -> bool:
        is_new = create_table(self._sessions, table, table.options, comments=self._comments)
        if is_new and table.partitioning and self._current_version(table.name):
            # An interrupted drop left its files there, and Delta takes them for the table's.
            self._run(f"DELETE FROM {quote_name(table.name)}")
        return is_new

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        """Create the table as a clone without files of its own, or as a copy if columns went or changed type."""
        fields = self._run(f"SELECT * FROM {quote_name(old)}").schema.fields
        old_types = {field.name.lower(): type_text(field.dataType) for field in fields}
        new_types = {column.name: column.type for column in table.stored_columns}
        row_condition = interval_condition(table, rows)
        if any(new_types.get(name) != kind for name, kind in old_types.items()):
            self.create(table)
            common_columns = ", ".join(map(quote_column, old_types.keys() & new_types.keys()))
            self._replace(
                table, self._run(f"SELECT {common_columns} FROM {quote_name(old)} WHERE {row_condition}"), ALL
            )
            return
        name = quote_name(table.name)
        self._run(f"CREATE SCHEMA IF NOT EXISTS {quote_name(table.name.rpartition('.')[0])}")
        owner_clause = properties_clause(dict(table.owner_property))
        self._run(f"CREATE TABLE {name} SHALLOW CLONE {quote_name(old)}{owner_clause}")
        if new := {column: kind for column, kind in new_types.items() if column not in old_types}:
            for feature in (feature for pattern, feature in FEATURES if any(map(pattern.search, new.values()))):
                self._run(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.feature.{feature}' = 'supported')")
            columns = (f"{quote_column(column)} {kind}" for column, kind in new.items())
            self._run(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(columns)})")
        if row_condition != ALL:
            self._run(f"DELETE FROM {name} WHERE NOT coalesce({row_condition}, false)")

    def _restore_version(self, table: Table, version: int) -> None:
        self._run(f"RESTORE TABLE {quote_name(table.name)} TO VERSION AS OF {version}")

    def _current_version(self, name: str) -> int:
        return int(self._read_history(name, 1)[0]["version"])

    def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
        """Remove, by VACUUM, the versions that were replaced longer than `keep` ago.

        VACUUM removes no file that a clone has from another table. The version before the last merge stays.
        """
        properties = {row[0]: row[1] for row in self._run(f"SHOW TBLPROPERTIES {quote_name(name)}").collect()}
        policy = retention_policy(properties, keep)
        if policy is None:
            return Expiry(kept=f"`{RETENTION}` of the table is no number of days or hours, or less than a week")
        if policy.lacks:
            pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in policy.lacks)
            self._run(f"ALTER TABLE {quote_name(name)} SET TBLPROPERTIES ({pairs})")
        history = self._read_history(name)
        commits = [
            Commit(entry["version"], datetime.fromtimestamp(entry["at"] / 1000, UTC), entry["operation"])
            for entry in history
        ]
        if not is_due(commits, policy.keep, now):
            return Expiry()
        last = self._find_last_merge(name, history)
        if is_pinned(commits, last.before if last.batch_id else None, now):
            return Expiry(kept="its last merge, which may be taken back, is about a week old or older")
        self._run(f"VACUUM {quote_name(name)} RETAIN {policy.hours} HOURS").collect()
        return Expiry(removed=True)

    def files(self, name: str, description: Described, where: str) -> TableFiles | None:
        """Return the files of the current version, or the log of a table that needs a newer reader.

        Deletion vectors, column mapping and wider types decide how files are read. Return None for a cached table.
        """
        files = input_files(self._sessions, name, where)
        columns = table_columns(self._sessions, name)
        # Read last: what needs a newer reader is in the log before a file is read by it.
        properties = {row[0]: row[1] for row in self._run(f"SHOW TBLPROPERTIES {quote_name(name)}").collect()}
        if properties.get(READER) != PLAIN:
            return TableFiles(("delta", "log"), columns, frozenset({description.details["Location"]}))
        return TableFiles(("delta", *partition_types(description, columns)), columns, files) if files else None

    def version(self, name: str, description: Described) -> str:
        """Return the last commit as text; '' if the log no longer has it."""
        history_columns = "version", "operation", "unix_millis(timestamp)", "to_json(operationParameters)"
        commits = self._run(f"DESCRIBE HISTORY {quote_name(name)} LIMIT 1").selectExpr(*history_columns).collect()
        location = description.details.get("Location", "")
        return repr((location, *map(tuple, commits))) if commits and location else ""

    def drop(self, name: str) -> None:
        """Drop an existing table with its own files; those of a table that it was cloned from are not below it."""
        self._run(f"DROP TABLE IF EXISTS {quote_name(name)}")

    def _writer_options(self, table: Table, where: str | None, mark: str) -> dict[str, str]:
        mode = "dynamic" if where is None else "static"  # the session's own would win over a condition
        options = {key: value for key, value in table.options if key.lower() in OF_FILES}
        return options | {"partitionOverwriteMode": mode, "userMetadata": mark or OURS}

    def _count_added(self, name: str) -> int:
        history = self._run(f"DESCRIBE HISTORY {quote_name(name)} LIMIT 1")
        return int(history.selectExpr("operationMetrics['numOutputRows']").collect()[0][0] or 0)

    def _last_merge(self, name: str) -> LastMerge:
        history = self._read_history(name, RECENT)
        if self._find_own_commit(name, history) is None and len(history) == RECENT:
            history = self._read_history(name)
        return self._find_last_merge(name, history)

    def _find_last_merge(self, name: str, history: Sequence[Any]) -> LastMerge:
        commit = self._find_own_commit(name, history)
        match = MARK.fullmatch(commit["userMetadata"]) if commit else None
        return LastMerge(history[0]["version"], *((match[1], int(match[2])) if match else ()))

    def _find_own_commit(self, name: str, history: Iterable[Any]) -> Any:
        """Return the commit by which a table holds what mergeplan wrote; None if it is not listed.

        The commits are given newest first. Commits of others do not count: a batch is still interrupted if another
        process deleted a row after it. After a RESTORE the table holds what it held in the restored version.
        """
        newest: int | None = None
        for commit in history:
            if newest is not None and commit["version"] > newest:
                continue
            if commit["operation"] == "RESTORE":
                newest = self._find_restored_version(name, commit)
            elif (commit["userMetadata"] or "").startswith(OURS):
                return commit
        return None

    def _find_restored_version(self, name: str, commit: Any) -> int:
        """Return the version that a RESTORE brought back; -1 if its files are gone.

        The log of a RESTORE to a timestamp has the timestamp's text, which depends on the time zone of a session. The
        version is therefore found by its files.
        """
        if (version := commit["operationParameters"]["version"]) is not None:
            return int(version)
        restored_files = self._list_version_files(name, commit["version"])
        for older in range(commit["version"] - 1, -1, -1):
            if (files := self._list_version_files(name, older)) is None:
                break
            if files == restored_files:
                return older
        return -1

    def _list_version_files(self, name: str, version: int) -> frozenset[str] | None:
        """Return the data files of a version; None if the log no longer has it."""
        try:
            return frozenset(self._version_rows(name, version).inputFiles())
        except QueryError:
            return None

    def _read_history(self, name: str, limit: int | None = None) -> list[Any]:
        """Return the commits of a table, newest first."""
        sql = f"DESCRIBE HISTORY {quote_name(name)}{f' LIMIT {limit}' if limit else ''}"
        columns = "version", "operation", "operationParameters", "userMetadata", "unix_millis(timestamp) AS at"
        return self._run(sql).selectExpr(*columns).collect()
