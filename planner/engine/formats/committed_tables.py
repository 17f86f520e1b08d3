"""The verbs that formats with commits of their own have in common: each writes in one commit."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mergeplan.planner.engine.formats.conditions import ALL, range_condition
from mergeplan.planner.engine.formats.definition import sort_frame
from mergeplan.planner.engine.formats.merge_into import NativeMerge
from mergeplan.planner.engine.protocol import Written
from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.spark.session import Frame, aggregate_rows
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.engine.table import Table
from mergeplan.planner.intervals import Interval
from mergeplan.planner.naming import quote_column

COUNTED = {"rows": "count(1)"}


@dataclass(frozen=True)
class LastMerge:
    """The version of a table, and the last merged batch with the version before it; `batch_id` is '' for none."""

    version: int
    batch_id: str = ""
    before: int = 0


class CommittedTables(ABC):
    """The verbs that replace rows; a subclass defines how a commit of its format is written and marked as ours."""

    mark_setting: ClassVar[str]  # of Spark, for the mark of a statement's commit
    mark_text: ClassVar[str]  # the mark of a batch's commit, of the batch and of the version that it follows

    def __init__(self, sessions: Sessions, *, comments: bool) -> None:
        self._sessions, self._comments = sessions, comments
        self._run = sessions.run

    def replace_all(self, table: Table, frame: Frame, *, is_fresh: bool = False) -> Written:
        return self._replace(table, frame, ALL)

    def replace_interval(self, table: Table, frame: Frame, interval: Interval) -> Written:
        by = table.partitioning
        assert by is not None
        aggregates = {**COUNTED, "parts": f"collect_set(cast({quote_column(by.column)} as string))"}
        values = self._write_rows(table, frame, range_condition(by, *by.bounds(interval)), aggregates)
        return Written(values["rows"], tuple(sorted(values["parts"])))

    def replace_partitions(
        self, table: Table, frame: Frame, *, first: Sequence[str] = (), others: bool = False
    ) -> Written:
        if others:
            return self._replace(table, frame, ALL)
        if not first:
            return self._replace(table, frame, None)
        by = table.partition_columns[0]
        return self._replace(table, frame, f"{quote_column(by.column)} IN ({', '.join(map(literal, first))})")

    def overwrite(self, table: Table, rows: Callable[[], Frame], batch_id: str) -> Written:
        """Replace the partitions of the rows, or all rows, with rows read from the table, in one commit.

        A repeated batch starts from the version before it.
        """
        self.unmerge(table, batch_id)
        where = None if table.partition_columns else ALL
        return self._replace(table, rows(), where, self.mark_text.format(batch_id, self._current_version(table.name)))

    def merge(
        self, table: Table, merge_rows: Callable[[str], Frame], batch_id: str, native: NativeMerge | None = None
    ) -> Written:
        last = self._last_merge(table.name)
        base_version = last.before if last.batch_id[:8] == batch_id[:8] else last.version
        mark = self.mark_text.format(batch_id, base_version)
        if last.batch_id != batch_id:
            merged = native.run(self._sessions, table, {self.mark_setting: mark}) if native else None
            return merged or self._replace(table, merge_rows(table.name), ALL, mark)
        with self._sessions.temporary_view(self._version_rows(table.name, base_version)) as view:
            return self._replace(table, merge_rows(view), ALL, mark)

    def unmerge(self, table: Table, batch_id: str) -> str:
        last = self._last_merge(table.name)
        if last.batch_id[:8] != batch_id[:8]:
            return last.batch_id
        self._restore_version(table, last.before)
        return ""

    def _version_rows(self, name: str, version: int) -> Frame:
        return self._run(f"SELECT * FROM {quote_name(name)} VERSION AS OF {version}")

    @abstractmethod
    def _restore_version(self, table: Table, version: int) -> None: ...

    @abstractmethod
    def _current_version(self, name: str) -> int: ...

    @abstractmethod
    def _last_merge(self, name: str) -> LastMerge: ...

    def _replace(self, table: Table, frame: Frame, where: str | None, mark: str = "") -> Written:
        return Written(self._write_rows(table, frame, where, COUNTED, mark)["rows"])

    def _write_rows(
        self, table: Table, frame: Frame, where: str | None, aggregates: Mapping[str, str], mark: str = ""
    ) -> dict[str, Any]:
        """Replace rows in one commit, and return aggregates (Spark SQL) over the new ones: of all rows their number."""
        frame, observed = self._sessions.current.observe(sort_frame(table, frame), **aggregates)
        self._overwrite_rows(table, frame, where, mark)
        if values := observed():
            return values
        if where is None:
            return {"rows": self._count_added(table.name)}
        return aggregate_rows(self._run(f"SELECT * FROM {quote_name(table.name)} WHERE {where}"), aggregates)

    @abstractmethod
    def _count_added(self, name: str) -> int:
        """Return the number of rows that the last commit wrote."""

    def _overwrite_rows(self, table: Table, frame: Frame, where: str | None, mark: str = "") -> None:
        """Replace the rows of a condition (Spark SQL), or the partitions of the new rows, in one commit.

        Without a mark, the commit only says that it is ours.
        """
        self._sessions.check()
        writer = frame.writeTo(quote_name(table.name)).options(**self._writer_options(table, where, mark))
        if where is None:
            writer.overwritePartitions()
        else:
            writer.overwrite(self._sessions.current.condition(where))

    @abstractmethod
    def _writer_options(self, table: Table, where: str | None, mark: str) -> dict[str, str]: ...
