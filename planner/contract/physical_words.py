"""A change of a physical plan as a sentence, for the terminal and for reviewers."""

from collections.abc import Callable

from mergeplan.planner.contract.physical import PhysicalChangeRow
from mergeplan.planner.wording import first_names

MOST = 4  # names that are shown
WORSE = {
    "pruning": "all partitions of {tables} are read; before, a filter{on} chose some.",
    "filter": "{tables} is read without a filter; before, Spark filtered its files.",
    "cartesian_product": "a cartesian product{over} is new: every row of one side meets every row of the other.",
    "nested_loop_join": "a nested-loop join{over} is new: no equality says which rows meet, and every pair is tried.",
    "broadcast": "the rows of {tables} are shuffled for a join; before, they were broadcast.",
    "one_task": "a window without PARTITION BY{over} is new: one task gets all of its rows.",
    "python": "a step in Python{over} is new: rows go to a Python worker and back.",
    "shuffle": "rows are shuffled {after}{by}; before, {before}.",
}
BETTER = {
    "pruning": "a filter{on} chooses partitions of {tables}; before, all were read.",
    "filter": "Spark filters the files of {tables}; before, all rows were read.",
    "cartesian_product": "a cartesian product{over} is gone.",
    "nested_loop_join": "a nested-loop join{over} is gone.",
    "broadcast": "the rows of {tables} are broadcast for a join; before, they were shuffled.",
    "one_task": "a window without PARTITION BY{over} is gone.",
    "python": "a step in Python{over} is gone.",
    "shuffle": "rows are shuffled less often: {after}; before, {before}.",
}
OTHER = "{cost}: {after}; before, {before}."  # a cost that a newer planner reports


def is_worse(change: PhysicalChangeRow) -> bool:
    return change.after > change.before


def physical_sentence(change: PhysicalChangeRow, format_name: Callable[[str], str]) -> str:
    """Return how the new query's plan differs; `format_name` writes a name.

    >>> physical_sentence(PhysicalChangeRow(cost="shuffle", before=1, after=2), str)
    'rows are shuffled twice; before, once.'
    """
    tables, columns = (first_names(list(map(format_name, names)), MOST) for names in (change.tables, change.columns))
    return (
        (WORSE if is_worse(change) else BETTER)
        .get(change.cost, OTHER)
        .format(
            cost=format_name(change.cost),
            tables=tables,
            over=f" over {tables}" if tables else "",
            on=f" on {columns}" if columns else "",
            by=f", now also by {columns}" if columns else "",
            before=_format_times(change.before),
            after=_format_times(change.after),
        )
    )


def _format_times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")
