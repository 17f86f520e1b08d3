"""A merge as one statement of a format that has it: only the files of rows that change are written again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mergeplan.planner.engine.protocol import MergeInto, Written
from mergeplan.planner.engine.spark.quoting import quote_name
from mergeplan.planner.engine.spark.session import Frame
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import QueryError
from mergeplan.planner.naming import quote_column

# Several rows of the batch match one row of the table, by Delta's check and by that of Spark.
AMBIGUOUS = ("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", "MERGE_CARDINALITY_VIOLATION")


@dataclass(frozen=True)
class NativeMerge:
    """A `MergeInto` whose rows become a frame in the table's types, in the session of the merge."""

    into: MergeInto
    rows: Callable[[], Frame]

    def run(self, sessions: Sessions, table: Table, settings: Mapping[str, str]) -> Written | None:
        """Merge the rows in one commit, in a session with these settings, and count the rows of the batch.

        Return None, with nothing written, where several rows match one of the table: after an edit of its key a history
        may hold several versions in force of one new key.
        """
        try:
            return self._merge_rows(sessions, table, settings)
        except QueryError as error:
            if error.condition not in AMBIGUOUS:
                raise
            return None

    def _merge_rows(self, sessions: Sessions, table: Table, settings: Mapping[str, str]) -> Written:
        """Compute and store the rows, then merge them.

        A merge reads them twice. Iceberg's merge accepts no query with `uuid()`, and none that Spark recognises as
        empty.
        """
        with sessions.having(settings), sessions.statement():
            frame = self.rows().localCheckpoint()
            count = frame.count()
            with sessions.temporary_view(frame) as view:
                sessions.check()
                sessions.run(build_merge_into(table.name, view, frame.columns, self.into))
            return Written(count)


def build_merge_into(table: str, rows: str, columns: Sequence[str], merge_into: MergeInto) -> str:
    """Return MERGE INTO as Spark SQL; without WHENs a matched row takes all values of the batch's row."""
    names = [quote_column(name) for name in columns if name != merge_into.mark]
    values = [f"source.{name}" for name in names]
    updated = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
    added = f" AND {merge_into.added}" if merge_into.added else ""
    return "\n".join(
        (
            f"MERGE INTO {quote_name(table)} AS target USING {quote_name(rows)} AS source",
            f"ON {merge_into.on}",
            *(merge_into.matched or (f"WHEN MATCHED THEN UPDATE SET {updated}",)),
            f"WHEN NOT MATCHED{added} THEN INSERT ({', '.join(names)}) VALUES ({', '.join(values)})",
        )
    )
