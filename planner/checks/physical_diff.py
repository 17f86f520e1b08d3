"""The effect of an edit on a query's physical plan: expensive parts, counted before and after. It is advice."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter

from mergeplan.planner.checks.physical_plan import PhysicalPlan, Scan, Tables


class Cost(StrEnum):
    PRUNING = "pruning"  # all partitions of a table are read
    FILTER = "filter"  # all of a table is read
    CARTESIAN_PRODUCT = "cartesian_product"  # a join without a condition
    NESTED_LOOP_JOIN = "nested_loop_join"  # a join whose condition holds no equality
    BROADCAST = "broadcast"  # a side of a join is shuffled and not broadcast
    ONE_TASK = "one_task"  # all rows of a window go through one task
    PYTHON = "python"  # rows go through Python
    SHUFFLE = "shuffle"  # rows are sent to other tasks, by hash, by range or round robin


@dataclass(frozen=True)
class PhysicalChange:
    """A cost that a query has more or less often than before: how often, for which tables, by which columns."""

    cost: Cost
    before: int
    after: int
    tables: Tables = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class PhysicalDiff:
    """The difference between the physical plans of a model's old and new query; `note` says why there is none."""

    model: str
    changes: tuple[PhysicalChange, ...] = ()
    note: str = ""


def compare_plans(old: PhysicalPlan, new: PhysicalPlan) -> tuple[PhysicalChange, ...]:
    """Return the costs that are more frequent in the new plan, in the order of `Cost`, or else those less frequent.

    Fewer shuffles beside a new cartesian product would be misleading.
    """
    worse = tuple(_find_increases(old, new))
    if worse:
        return worse
    return tuple(
        PhysicalChange(change.cost, change.after, change.before, change.tables, change.columns)
        for change in _find_increases(new, old)
    )


def _find_increases(old: PhysicalPlan, new: PhysicalPlan) -> Iterator[PhysicalChange]:
    unpruned = {
        change.tables: change for change in _read_whole(Cost.PRUNING, attrgetter("is_pruned"), old.scans, new.scans)
    }
    yield from unpruned.values()
    unfiltered = _read_whole(Cost.FILTER, attrgetter("is_filtered"), old.scans, new.scans)
    yield from (change for change in unfiltered if change.tables not in unpruned)
    yield from _cost_increase(Cost.CARTESIAN_PRODUCT, old.cartesian, new.cartesian)
    yield from _cost_increase(Cost.NESTED_LOOP_JOIN, old.nested_loops, new.nested_loops)
    lost = tuple(_no_longer_broadcast(old, new))
    yield from lost
    yield from _cost_increase(Cost.ONE_TASK, old.one_task, new.one_task)
    yield from _cost_increase(Cost.PYTHON, old.python, new.python)
    if not lost:  # a shuffled join reports that already
        yield from _more_shuffles(old.shuffles, new.shuffles)


def _read_whole(
    cost: Cost, chooses: Callable[[Scan], bool | None], old: Sequence[Scan], new: Sequence[Scan]
) -> Iterator[PhysicalChange]:
    """Yield tables that are read whole although a filter chose before; `columns` are those of the chosen partitions."""
    for table in sorted({scan.table for scan in old} & {scan.table for scan in new}):
        old_scans, new_scans = _table_scans(old, table), _table_scans(new, table)
        if any(chooses(scan) is None for scan in (*old_scans, *new_scans)):
            continue
        whole = [sum(not chooses(scan) for scan in scans) for scans in (old_scans, new_scans)]
        columns = {name for scan in old_scans for name in scan.columns} if cost is Cost.PRUNING else set()
        if whole[1] > whole[0] and whole[0] < len(old_scans):
            yield PhysicalChange(cost, whole[0], whole[1], (table,), tuple(sorted(columns)))


def _table_scans(scans: Iterable[Scan], table: str) -> list[Scan]:
    return [scan for scan in scans if scan.table == table]


def _no_longer_broadcast(old: PhysicalPlan, new: PhysicalPlan) -> Iterator[PhysicalChange]:
    """Yield the tables that a join no longer broadcasts and that another join now shuffles."""
    fewer, new_shuffles = Counter(old.broadcast) - Counter(new.broadcast), Counter(new.shuffled) - Counter(old.shuffled)
    for tables in sorted(fewer.keys() & new_shuffles.keys()):
        if tables:
            old_count = Counter(old.shuffled)[tables]
            yield PhysicalChange(Cost.BROADCAST, old_count, old_count + new_shuffles[tables], tables)


def _cost_increase(cost: Cost, old: Sequence[Tables], new: Sequence[Tables]) -> Iterator[PhysicalChange]:
    if len(new) > len(old):
        tables = {table for group in Counter(new) - Counter(old) for table in group}
        yield PhysicalChange(cost, len(old), len(new), tuple(sorted(tables)))


def _more_shuffles(old: Sequence[tuple[str, ...]], new: Sequence[tuple[str, ...]]) -> Iterator[PhysicalChange]:
    """Yield the additional shuffles; their columns are reported only if no other shuffle changed its columns."""
    if len(new) <= len(old):
        return
    new_shuffles = Counter(new) - Counter(old)
    columns = (
        {name for shuffle in new_shuffles for name in shuffle} if new_shuffles.total() == len(new) - len(old) else set()
    )
    yield PhysicalChange(Cost.SHUFFLE, len(old), len(new), columns=tuple(sorted(columns)))
