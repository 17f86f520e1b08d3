"""The load of the table that a unit test expects: what a batch asks of its model, over the test's rows."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.parsing.definitions.unit_tests import UnitTest

OwnRows = Callable[[tuple[Column, ...]], str]  # from the table's columns to the query for the rows that it holds before


@dataclass(frozen=True)
class TestLoad:
    """A load of one batch: its queries have the form of those of `apply.backfill.write_batch`.

    `evaluate` and `render` return the query for a relation with the model's own earlier rows ('' for none); code runs
    for the first. `previous_rows` is None for a table that is new.
    """

    __test__ = False  # pytest must not collect it

    test: UnitTest
    model: Model
    interval: Interval
    now: datetime
    render: Callable[[Model, str], str]
    evaluate: Callable[[str], AbstractContextManager[str]]
    previous_rows: OwnRows | None

    def query(self, model: Model, interval: Interval | None, own: str = "") -> str:
        return self.render(model, own)

    def rows(self, model: Model, interval: Interval, own: str = "") -> AbstractContextManager[str]:
        return self.evaluate(own)


LoadTable = Callable[[TestLoad], AbstractContextManager[str]]  # to a query for the table's rows, valid in the context
