"""Layouts: the physical table that each model of an environment reads and writes, and its query over them."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Protocol
from uuid import uuid4

from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.apply.physical_tables import physical_table
from mergeplan.planner.errors import Place, QueryError
from mergeplan.planner.intervals import Interval, Timeline, batches, build_timeline, merge_intervals, subtract_intervals
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.schedule import SignalCall
from mergeplan.planner.naming import quote_column, quote_name
from mergeplan.planner.parsing.macros.expand import dates
from mergeplan.planner.parsing.render import locate_error, no_rows, render_model, stage_statements
from mergeplan.planner.parsing.sql.tokens import SourceText, tokenize
from mergeplan.planner.python.run_inputs import NOTHING, RunInputs
from mergeplan.planner.semantics.shape_memory import NO_MEMORY
from mergeplan.planner.semantics.traits import traits_of
from mergeplan.planner.snapshot.snapshot import Snapshot

_TABLE_ONLY = re.compile(r"\b(?:_metadata|table)\b", re.IGNORECASE)  # what needs a table, and takes no query
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


StoredColumns = Callable[[Collection[str]], Mapping[str, Sequence[Column]]]  # by table


class PythonRows(Protocol):
    def rows(
        self,
        model: Model,
        interval: Interval,
        tables: Mapping[str, str],
        execution: datetime,
        inputs: RunInputs = NOTHING,
    ) -> AbstractContextManager[str]:
        """Return a query for the model's rows in an interval, valid within the context."""

    def ready(self, calls: Sequence[SignalCall], batch: Timeline, model: Model, tables: Mapping[str, str]) -> Timeline:
        """Return the part of these intervals that all of the signals report as ready."""

    def stop(self) -> None:
        """End what runs now; the threads that wait for it get Cancelled."""


def reads_projections(model: Model, embedded: Mapping[str, Model]) -> bool:
    """Return True for a model whose texts may use unnamed columns: it reads only the columns by which it was judged."""
    texts = [model.sql, *(statement.query for statement in model.statements.around)]
    texts += [embedded[name].sql for name in _list_embedded(model, embedded)]
    if not model.written.misread and all(not traits_of(text, NO_MEMORY).unnamed for text in texts if text):
        return False
    tokens = [t for text in texts if _TABLE_ONLY.search(text) for t in tokenize(SourceText("", text, "spark"))]
    return not any(
        (token.token_type in _NAMES and token.text.lower() == "_metadata")
        or (token.token_type is TokenType.TABLE and following.token_type in (TokenType.L_PAREN, *_NAMES))
        for token, following in pairwise(tokens)
    )


def find_projection(snapshot: Snapshot) -> tuple[str, ...] | None:
    """Return the columns of a table that such a model reads; None if it reads the table as it is."""
    is_table = snapshot.kind.is_stored or (snapshot.kind.is_external and not snapshot.model.open_columns)
    return (snapshot.table_columns or None) if is_table else None


def _select_columns(table: str, columns: Iterable[str]) -> str:
    return f"(SELECT {', '.join(map(quote_column, columns))} FROM {quote_name(table)})"


def _list_embedded(model: Model, embedded: Mapping[str, Model]) -> frozenset[str]:
    direct = frozenset(model.depends_on) & embedded.keys()
    return direct.union(*(_list_embedded(embedded[name], embedded) for name in direct))


@dataclass(frozen=True)
class Layout:
    """The physical table that each model of an environment reads and writes; `now` is its queries' current time."""

    snapshots: Mapping[str, Snapshot]
    parents: Mapping[str, tuple[str, ...]]
    now: datetime
    python: PythonRows | None = None  # what computes the models that are code
    stored_columns: StoredColumns | None = None  # of the tables that exist, without the hidden ones

    @cached_property
    def tables(self) -> Mapping[str, str]:
        """Model -> the table or physical view that its readers read."""
        return {name: snapshot.table for name, snapshot in self.snapshots.items() if not snapshot.kind.is_embedded}

    @cached_property
    def models_to_embed(self) -> Mapping[str, Model]:
        """The models whose query is inlined into their readers'."""
        return {name: snapshot.model for name, snapshot in self.snapshots.items() if snapshot.kind.is_embedded}

    def query(self, model: Model, interval: Interval | None, own: str = "") -> str:
        """Return the model's query over physical tables for an interval, or code's columns; `own` is its own name."""
        if model.python is not None:
            return no_rows(model.columns)
        tables = self._tables_read_by(model)
        tables = {**tables, model.name: own} if own else tables
        return render_model(model, tables, self.models_to_embed, interval, self.now)

    def _tables_read_by(self, model: Model) -> Mapping[str, str]:
        """Return the tables as a model's texts read them.

        A model that may use unnamed columns sees only the columns by which it was judged, in that order, whatever
        columns the table has.
        """
        if not reads_projections(model, self.models_to_embed):
            return self.tables
        read = {model.name, *self.reads(model.name)}
        return {**self._table_projections, **self._project_stored(self._unknown_tables & read)}

    def _project_stored(self, names: frozenset[str]) -> Mapping[str, str]:
        """Return models of unknown columns -> a query for the visible columns of their table."""
        stored = self._load_stored(names)
        columns = {name: stored.get(self.tables[name], ()) for name in names}
        return {
            name: _select_columns(self.tables[name], [column.name for column in listed])
            for name, listed in columns.items()
            if listed
        }

    @cached_property
    def _unknown_tables(self) -> frozenset[str]:
        return frozenset(
            name for name, snapshot in self.snapshots.items() if snapshot.kind.is_stored and not snapshot.table_columns
        )

    @cached_property
    def _table_projections(self) -> Mapping[str, str]:
        """Model -> a query in brackets for its table's columns in their order; the table itself if they are unknown."""
        projections = dict(self.tables)
        for name, snapshot in self.snapshots.items():
            if columns := find_projection(snapshot):
                projections[name] = _select_columns(snapshot.table, columns)
        return projections

    def locate_error(self, model: Model, error: QueryError) -> Place | None:
        return locate_error(model, self._tables_read_by(model), self.models_to_embed, error.line, error.column)

    def statements_around(
        self, snapshot: Snapshot, stage: str, interval: Interval | None
    ) -> tuple[Sequence[str], Sequence[str]]:
        model = snapshot.model
        if not model.statements.around:
            return (), ()  # writing all dates as SQL takes longer than any statement of the state
        values, tables = dates(interval, self.now), self._tables_read_by(model)
        pre_statements, post_statements = (
            stage_statements(listed, stage, snapshot.table, values, tables, self.models_to_embed)
            for listed in (model.statements.pre_statements, model.statements.post_statements)
        )
        return pre_statements, post_statements

    @contextmanager
    def rows(self, model: Model, interval: Interval, own: str = "") -> Iterator[str]:
        """Yield a query for the model's rows in an interval, valid within the context.

        Code is run for it. Code that reads its own model gets the model's rows from `own`, a query in brackets.
        """
        if model.python is None:
            yield self.query(model, interval)
            return
        assert self.python is not None
        tables, views = self._tables_of_code(model)
        if own:
            view = f"own_rows_{uuid4().hex}"  # of this batch: the next one finds other rows under its model's name
            tables[model.name], views[view] = view, f"SELECT * FROM {own}"
        with self.python.rows(model, interval, tables, self.now, RunInputs(views)) as sql:
            yield sql

    def _tables_of_code(self, model: Model) -> tuple[dict[str, str], dict[str, str]]:
        """Return the tables by the names that code reads, and the views among them, as name -> query.

        A table with hidden columns is read through a view without these.
        """
        tables, views = dict(self.tables), dict[str, str]()
        read = {name: self.snapshots[name] for name in self.reads(model.name) & self.tables.keys()}
        read = {name: snapshot for name, snapshot in read.items() if snapshot.kind.is_stored}
        stored = self._load_stored(read)
        for name, snapshot in read.items():
            columns = tuple(stored.get(snapshot.table, ()))
            if columns and any(part.hidden for part in physical_table(snapshot, columns).partition_columns):
                tables[name] = view = f"rows_{uuid4().hex}"
                views[view] = f"SELECT * FROM {_select_columns(snapshot.table, [column.name for column in columns])}"
        return tables, views

    def _load_stored(self, names: Collection[str]) -> Mapping[str, Sequence[Column]]:
        """Return the tables of models -> their visible columns; a table that does not exist yet is left out."""
        return self.stored_columns({self.tables[name] for name in names}) if names and self.stored_columns else {}

    def check_signals(
        self, model: Model, cut: tuple[Interval, ...], copies: Timeline
    ) -> tuple[tuple[Interval, ...], Timeline]:
        """Return the batches of a model that its signals report as ready, and the time that is not ready.

        What is copied from another table of the model waits for no signal.
        """
        copied = tuple(batch for batch in cut if not subtract_intervals((batch,), copies))
        uncopied_time = merge_intervals(batch for batch in cut if batch not in copied)
        signals = model.schedule.signals
        if not signals or not uncopied_time:
            return cut, ()
        assert self.python is not None
        late = subtract_intervals(uncopied_time, self.python.ready(signals, uncopied_time, model, self.tables))
        if not late:
            return cut, ()
        if not model.kind.is_incremental:
            return copied, uncopied_time
        if model.is_order_dependent:  # later batches build on the late ones
            late = subtract_intervals(uncopied_time, build_timeline(uncopied_time[0].start, late[0].start))
        return (*copied, *batches(model.cron, subtract_intervals(uncopied_time, late), model.batches.batch_size)), late

    def reads(self, name: str) -> frozenset[str]:
        """Return the models whose tables a model's query reads, also through embedded models."""
        names: set[str] = set()
        for parent in self.parents.get(name, ()):
            names |= self.reads(parent) if parent in self.models_to_embed else {parent}
        return frozenset(names)

    def sources(self, name: str) -> frozenset[str]:
        """Return the tables that hold the rows that a model's query reads, also through views."""
        tables: set[str] = set()
        for parent in self.reads(name):
            if parent in self.snapshots and self.snapshots[parent].kind.is_view:
                tables |= self.sources(parent)
            elif parent in self.tables:
                tables.add(self.tables[parent])
        return frozenset(tables)


@contextmanager
def locate_query_errors(model: Model, layout: Layout | None = None) -> Iterator[None]:
    """Locate a QueryError from within at the model's file, by the layout at the line and column of the query."""
    try:
        yield
    except QueryError as error:
        if error.located is None:
            error.located = (layout.locate_error(model, error) if layout else None) or model.place
        raise
