"""Which physical table each model of an environment reads and writes, and its query over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Protocol
from uuid import uuid4

from mergeplan.planner.errors import Place, QueryError
from mergeplan.planner.intervals import Interval, Timeline, batches, between, merge, subtract
from mergeplan.planner.model.model import Model, SignalCall
from mergeplan.planner.parsing.macros.expand import dates
from mergeplan.planner.parsing.render import no_rows, render, stage_statements, written_at
from mergeplan.planner.python.given import NOTHING, Given
from mergeplan.planner.snapshot.snapshot import Snapshot


class PythonRows(Protocol):
    """What computes the rows of Python models."""

    def rows(
        self,
        model: Model,
        interval: Interval,
        tables: Mapping[str, str],
        execution: datetime,
        given: Given = NOTHING,
    ) -> AbstractContextManager[str]:
        """A query that returns the model's rows for an interval, good while this lasts."""

    def ready(self, calls: Sequence[SignalCall], batch: Timeline, model: Model, tables: Mapping[str, str]) -> Timeline:
        """The part of these intervals that all of the signals say is ready."""

    def stop(self) -> None:
        """End what runs now; whoever waits for it hears Cancelled."""


@dataclass(frozen=True)
class Layout:
    """Which physical table each model of an environment reads and writes; `now` is what its queries take for now."""

    snapshots: Mapping[str, Snapshot]
    parents: Mapping[str, tuple[str, ...]]
    now: datetime
    python: PythonRows | None = None  # what computes the models that are code

    @cached_property
    def tables(self) -> Mapping[str, str]:
        """Model -> the table or physical view that its readers read."""
        return {name: each.table for name, each in self.snapshots.items() if not each.kind.is_embedded}

    @cached_property
    def embedded(self) -> Mapping[str, Model]:
        """The models whose query stands inside their readers'."""
        return {name: each.model for name, each in self.snapshots.items() if each.kind.is_embedded}

    def query(self, model: Model, interval: Interval | None, own: str = "") -> str:
        """The model's query over physical tables, for an interval; of code only its columns, without rows. `own` is
        what a query reads under its own name."""
        if model.python is not None:
            return no_rows(model.columns)
        tables = {**self.tables, model.name: own} if own else self.tables
        return render(model, tables, self.embedded, interval, self.now)

    def written_at(self, model: Model, error: QueryError) -> Place | None:
        """Where in the model's file stands what Spark refuses in its query; None when that is not known."""
        return written_at(model, self.tables, self.embedded, error.line, error.column)

    def beside(self, snapshot: Snapshot, stage: str, interval: Interval | None) -> tuple[Sequence[str], Sequence[str]]:
        """The statements that run before and after a model's query, at a stage."""
        model = snapshot.model
        if not model.pre_statements and not model.post_statements:
            return (), ()  # to know all dates as SQL takes longer than any statement of the state
        values = dates(interval, self.now)
        before, after = (
            stage_statements(listed, stage, snapshot.table, values, self.tables, self.embedded)
            for listed in (model.pre_statements, model.post_statements)
        )
        return before, after

    @contextmanager
    def rows(self, model: Model, interval: Interval, own: str = "") -> Iterator[str]:
        """A query that returns the model's rows for an interval, good while this lasts; code is run for it, over its
        `own` rows, a query in brackets, where it reads itself."""
        if model.python is None:
            yield self.query(model, interval)
            return
        assert self.python is not None
        if not own:
            with self.python.rows(model, interval, self.tables, self.now) as sql:
                yield sql
            return
        view = f"own_rows_{uuid4().hex}"  # of this batch: the next one finds other rows under its model's name
        tables = {**self.tables, model.name: view}
        with self.python.rows(model, interval, tables, self.now, Given({view: f"SELECT * FROM {own}"})) as sql:
            yield sql

    def awaited(
        self, model: Model, cut: tuple[Interval, ...], copies: Timeline
    ) -> tuple[tuple[Interval, ...], Timeline]:
        """Of a model's batches those that its signals say are ready, and the time that is not; what is copied from
        another table of the model waits for nothing."""
        copied = tuple(each for each in cut if not subtract((each,), copies))
        asked = merge(each for each in cut if each not in copied)
        if not model.signals or not asked:
            return cut, ()
        assert self.python is not None
        late = subtract(asked, self.python.ready(model.signals, asked, model, self.tables))
        if not late:
            return cut, ()
        if not model.kind.is_incremental:
            return copied, asked
        if model.is_order_dependent:  # what comes later builds on what is late
            late = subtract(asked, between(asked[0].start, late[0].start))
        return (*copied, *batches(model.cron, subtract(asked, late), model.batch_size)), late

    def reads(self, name: str) -> frozenset[str]:
        """The models whose tables a model's query reads, through embedded ones."""
        found: set[str] = set()
        for parent in self.parents.get(name, ()):
            found |= self.reads(parent) if parent in self.embedded else {parent}
        return frozenset(found)

    def sources(self, name: str) -> frozenset[str]:
        """The tables that hold the rows that a model's query reads, through views too."""
        found: set[str] = set()
        for parent in self.reads(name):
            if parent in self.snapshots and self.snapshots[parent].kind.is_view:
                found |= self.sources(parent)
            elif parent in self.tables:
                found.add(self.tables[parent])
        return frozenset(found)


@contextmanager
def at_model(model: Model, layout: Layout | None = None) -> Iterator[None]:
    """A QueryError from within is one at the model's file; with the layout, which knows the text that ran, at the line
    and the column of its query."""
    try:
        yield
    except QueryError as error:
        if error.place is None:
            error.place = (layout.written_at(model, error) if layout else None) or model.place
        raise
