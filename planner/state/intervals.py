"""Which time each physical table holds."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval, Timeline, merge_intervals, subtract_intervals
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.contents import drop_contents
from mergeplan.planner.state.leases import Lease, check_lease
from mergeplan.planner.state.physical_tables import lock_table
from mergeplan.planner.state.transaction import ProjectStore, Transaction, split_chunks

Change = Callable[[Timeline], Timeline]


class LaterTimelines(Mapping[str, Timeline]):
    """The timelines of tables, which are read all at once when one is first needed."""

    def __init__(self, read: Callable[[], Mapping[str, Timeline]]) -> None:
        self._read = cache(read)

    def __getitem__(self, table: str) -> Timeline:
        return self._read()[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


class Intervals(ProjectStore):
    """The intervals that one project's tables hold."""

    def load_timelines(self, tables: Collection[str]) -> Mapping[str, Timeline]:
        """Table -> the time it holds, for the given tables; () for one that holds none or is unknown."""
        intervals_by_table: dict[str, list[Interval]] = {name: [] for name in tables}
        with self._database.reading() as tx:
            for chunk in split_chunks(sorted(intervals_by_table)):
                for row in tx.execute(tx.select(t.intervals).where(t.intervals.c.table_name.in_(chunk))).all():
                    intervals_by_table[row.table_name].append(Interval(row.start_at, row.end_at))
        return {name: merge_intervals(intervals) for name, intervals in intervals_by_table.items()}

    def digest(self) -> str:
        with self._database.reading() as tx:
            rows = tx.execute(tx.select(t.intervals)).all()
        return digest(*sorted(f"{row.table_name} {row.start_at} {row.end_at}" for row in rows))

    def record(self, table: str, interval: Interval, *, lease: Lease | None = None) -> None:
        """Keep that the table holds the interval: merged with what it held, safely when two processes do it at once."""
        self._change_interval(table, interval, lease, lambda timeline: merge_intervals((*timeline, interval)))

    def extend(self, table: str, interval: Interval, *, lease: Lease) -> None:
        """Keep that the table holds the interval, as it is: it was not written."""
        with self._database.writing() as tx:
            check_lease(tx, lease)
            change_timeline(tx, table, lambda timeline: merge_intervals((*timeline, interval)))

    def forget(self, table: str, interval: Interval, *, lease: Lease | None = None) -> None:
        """Keep that the table does not hold the interval, so that it is computed again."""
        self._change_interval(table, interval, lease, lambda timeline: subtract_intervals(timeline, (interval,)))

    def _change_interval(self, table: str, interval: Interval, lease: Lease | None, change: Change) -> None:
        with self._database.writing() as tx:
            if lease:
                check_lease(tx, lease)
            change_timeline(tx, table, change)
            drop_contents(tx, table, interval)


def change_timeline(tx: Transaction, table: str, change: Change) -> None:
    """Put what `change` makes of the time that a table holds in its place; no other process does so meanwhile."""
    lock_table(tx, table)
    statement = tx.select(t.intervals).where(t.intervals.c.table_name == table)
    old_timeline = merge_intervals(Interval(row.start_at, row.end_at) for row in tx.execute(statement))
    new_timeline = change(old_timeline)
    gone, new = set(old_timeline) - set(new_timeline), set(new_timeline) - set(old_timeline)
    for interval in gone:
        where = (t.intervals.c.table_name == table, t.intervals.c.start_at == interval.start)
        tx.execute(tx.delete(t.intervals).where(*where))
    rows = [{"table_name": table, "start_at": span.start, "end_at": span.end} for span in sorted(new)]
    tx.put(t.intervals, rows)
