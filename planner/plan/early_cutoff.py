"""Early cut-off: a rebuilt table with the same rows, by Spark's hashes of contents, changes no readers."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mergeplan.planner.intervals import UNITS, Interval, Timeline, merge_intervals, partitions
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.snapshot.content_hash import WHOLE, ColumnSet, Contents, equal_periods
from mergeplan.planner.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class Comparison:
    """A comparison of a table with its replacement; with equal rows in these columns, the reader is not computed."""

    reader: str
    old: Snapshot
    new: Snapshot
    columns: ColumnSet

    @property
    def model(self) -> str:
        return self.new.name

    def answer(self, table_state: Loaded) -> bool | None:
        """Return True if both hold equal rows in all periods of either, False if a period differs, None if unknown."""
        timelines = table_state.timeline_of(self.old), table_state.timeline_of(self.new)
        periods = {period for timeline in timelines for period in _list_periods(self.new, timeline)}
        one, two = (
            _table_contents(table_state, snapshot).period_contents(self.columns) for snapshot in (self.old, self.new)
        )
        # one period that differs settles it; to call tables equal takes every period of both
        if not all(timelines) or not periods <= one.keys() or not periods <= two.keys():
            return False if any(one[p] != two[p] for p in one.keys() & two.keys()) else None
        return all(one[period] == two[period] for period in periods)

    def equal_periods(self, table_state: Loaded) -> frozenset[str]:
        held_periods = [
            set(_list_periods(snapshot, table_state.timeline_of(snapshot))) for snapshot in (self.old, self.new)
        ]
        one, two = (_table_contents(table_state, snapshot) for snapshot in (self.old, self.new))
        return equal_periods(one, two, self.columns, held_periods[0] & held_periods[1])


def build_comparison(reader: str, shape: Shape | None, old: Snapshot | None, new: Snapshot) -> Comparison | None:
    """Return the comparison that could let a reader of `new` keep its rows; None if there is none.

    Both are stored tables with the same partitions by time. The reader reads columns that both have, or reads all
    columns of two tables with the same ones.
    """
    # A view holds nothing that could be hashed, and tables that are cut otherwise have no periods in common.
    if shape is None or old is None or not (old.kind.is_stored and new.kind.is_stored) or old.table == new.table:
        return None
    if old.columns is None or new.columns is None or not shape.known or _partition_key(old) != _partition_key(new):
        return None
    reads = shape.reads.get(new.name)
    if reads is None or (reads.every and old.table_columns != new.table_columns):
        return None
    # Rows count too, not only outputs: a column in a WHERE decides which rows the reader has.
    columns = frozenset(new.columns) if reads.every else reads.rows.union(*reads.outputs.values())
    if not columns <= frozenset(old.columns):
        return None
    return Comparison(reader, old, new, tuple(sorted(columns)))


def equal_time(
    reader: Snapshot, old: Snapshot, shape: Shape | None, comparisons: Iterable[Comparison], table_state: Loaded
) -> Timeline:
    """Return the time in which a reader with the same days need not be recomputed.

    Its rows of a day come from its parents' rows of that day alone: it limits their time columns to its own interval
    wherever it reads them, and gives the same rows in batches of any size. `old` is the reader whose rows are copied.
    """
    periods: frozenset[str] | None = None
    for question in comparisons:
        # volatile rows are not the old ones, even over the same inputs
        if shape is None or shape.volatile or shape.volatile_rows or not _same_days(reader, question.new, shape):
            return ()
        # a parent that looks back further has days that were written again after the reader's
        if question.old.model.batches.lookback > old.model.batches.lookback:
            return ()
        equal = question.equal_periods(table_state)
        periods = equal if periods is None else periods & equal
    step = timedelta(seconds=min(UNITS[reader.model.cron.unit], UNITS["day"]))
    starts = (datetime.fromisoformat(period).replace(tzinfo=UTC) for period in periods or ())
    return merge_intervals(Interval(start, start + step) for start in starts)


def _same_days(reader: Snapshot, parent: Snapshot, shape: Shape) -> bool:
    cuts = _partition_key(reader), _partition_key(parent)
    if None in cuts or UNITS[reader.model.cron.unit] != UNITS[parent.model.cron.unit]:
        return False
    # Text in any other format may sort or parse otherwise than the partition's name says.
    plain = all(snapshot.model.by_time.time_format in ("", "yyyy-MM-dd") for snapshot in (reader, parent))
    day = (parent.name, parent.model.by_time.time_column)
    return plain and shape.day == day and day[1] in shape.bounded.get(parent.name, frozenset())


def open_questions(comparisons: Iterable[Comparison], table_state: Loaded) -> tuple[Comparison, ...]:
    return tuple(question for question in comparisons if question.answer(table_state) is None)


def _table_contents(table_state: Loaded, snapshot: Snapshot) -> Contents:
    return (table_state.contents or {}).get(snapshot.table, Contents())


def _partition_key(snapshot: Snapshot) -> tuple[str, str] | None:
    model = snapshot.model
    ranged = model.kind.is_by_time
    return (model.by_time.time_column, str(model.cron.unit)) if ranged else None


def _list_periods(snapshot: Snapshot, timeline: Timeline) -> list[str]:
    """Return the partitions that a timeline covers; a table that is not partitioned by time is one partition."""
    if _partition_key(snapshot) is None:
        return [WHOLE] if timeline else []
    seconds = UNITS[snapshot.model.cron.unit]
    return [period for interval in timeline for period in partitions(interval, seconds)]
