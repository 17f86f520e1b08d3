"""The verbs that formats with commits of their own have in common: each writes in one commit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from mergeplan.planner.engine.formats.conditions import ALL, range_condition
from mergeplan.planner.engine.formats.definition import sort_frame
from mergeplan.planner.engine.protocol import Written
from mergeplan.planner.engine.spark.quoting import literal
from mergeplan.planner.engine.spark.session import Frame
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.engine.table import Table
from mergeplan.planner.intervals import Interval
from mergeplan.planner.naming import quote_column


class CommittedTables(ABC):
    """Rows put in place of others; a subclass says how a commit of its format is written, and marked as ours."""

    def __init__(self, sessions: Sessions, *, comments: bool) -> None:
        self._sessions, self._comments = sessions, comments
        self._run = sessions.run

    def replace_all(self, table: Table, frame: Frame, *, is_fresh: bool = False) -> Written:
        """Put the rows in place of all, in one commit."""
        return self._replace(table, frame, ALL)

    def replace_interval(self, table: Table, frame: Frame, interval: Interval) -> Written:
        """Put the rows in place of exactly the interval's; days without rows end empty."""
        by = table.partitioning
        assert by is not None
        values = f"collect_set(cast({quote_column(by.column)} as string))"
        frame, observed = self._sessions.current.observe(sort_frame(table, frame), rows="count(1)", parts=values)
        self._overwrite(table, frame, range_condition(by, *by.bounds(interval)))
        seen = observed()
        return Written(seen.get("rows", 0), tuple(sorted(seen.get("parts", ()))))

    def replace_partitions(
        self, table: Table, frame: Frame, *, first: str | None = None, others: bool = False
    ) -> Written:
        """Put the rows in place of exactly the partitions that they lie in; those that begin with `first`, in which
        all rows are to lie, or all others, end empty."""
        if others:
            return self._replace(table, frame, ALL)
        if first is None:
            return self._replace(table, frame, None)
        by = table.partition_columns[0]
        return self._replace(table, frame, f"{quote_column(by.column)} = cast({literal(first)} as {by.type})")

    def overwrite(self, table: Table, rows: Callable[[], Frame], batch_id: str) -> Written:
        """Put rows that are read from the table in place of the partitions that they lie in, or of all, in one commit;
        repeated, a batch starts from the version before it."""
        self.unmerge(table, batch_id)
        where = None if table.partition_columns else ALL
        return self._replace(table, rows(), where, self._mark(table.name, batch_id))

    @abstractmethod
    def unmerge(self, table: Table, batch_id: str) -> None:
        """Let the table hold what it held before the first batch whose id begins so: see `TableStore.unmerge`."""

    @abstractmethod
    def _mark(self, name: str, batch_id: str) -> str:
        """What the commit of a batch says of itself: which one it is, and after which version of the table it comes."""

    def _replace(self, table: Table, frame: Frame, where: str | None, mark: str = "") -> Written:
        frame, observed = self._sessions.current.observe(sort_frame(table, frame), rows="count(1)")
        self._overwrite(table, frame, where, mark)
        return Written(observed().get("rows", 0))

    @abstractmethod
    def _overwrite(self, table: Table, frame: Frame, where: str | None, mark: str = "") -> None:
        """One commit in which the rows take the place of those of a condition (Spark SQL), or of the partitions that
        they lie in; without a mark it says no more than that it is ours."""
