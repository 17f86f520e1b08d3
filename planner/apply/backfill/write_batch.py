"""Writing of one batch as the kind of its model says; a repeated write leaves the table like the first one."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from mergeplan.planner.apply.backfill.table_columns import compare_returned_columns, fit_query
from mergeplan.planner.engine.protocol import Engine, Written
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import Place, QueryError
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.model.kind import Fill
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.table_format import FORMATS
from mergeplan.planner.project.seeds import read_seed
from mergeplan.planner.tables.batch_ids import batch_id, later_ids
from mergeplan.planner.tables.merge.merge import merge_query, merge_statement, unusual_rows_query
from mergeplan.planner.tables.partitioning import BATCH
from mergeplan.planner.tables.self_reference import previous_rows_query


class BatchQueries(Protocol):
    @property
    def now(self) -> datetime: ...

    def query(self, model: Model, interval: Interval | None, own: str = "") -> str: ...

    def rows(self, model: Model, interval: Interval, own: str = "") -> AbstractContextManager[str]: ...


@dataclass(frozen=True)
class Batch:
    """The rows of an interval on their way into a table, which holds the recorded time `held`.

    A table without recorded time counts as empty, whatever an interrupted batch has left in it; one that is `untouched`
    is empty.
    """

    layout: BatchQueries
    engine: Engine
    root: Path  # of the project, where its seeds are
    table: Table
    model: Model
    interval: Interval
    held: Timeline
    untouched: bool = False

    @property
    def id(self) -> str:
        """Its name, which is the same when it is tried again."""
        return batch_id(self.interval, self.held)

    def own_rows(self, base: str = "") -> str:
        """Return the query for its model's own rows; `base` holds the earlier rows if the table does not."""
        return previous_rows_query(self.model, self.table, self.interval, self.held, self.layout.now, base)

    def query(self, default_sql: str, own: str = "") -> str:
        """Return its query, which is `default_sql` unless the model reads `own` rows.

        It returns the table's columns if the model ignores some that come or go, and structs as the table has them.
        """
        sql = self.layout.query(self.model, self.interval, own) if own and self.model.python is None else default_sql
        return fit_query(self.model, sql, self.table.columns, self.engine.engine_for(self.table.gateway))


def write_batch(batch: Batch) -> Written:
    fill = batch.model.kind.fill
    if fill is Fill.NOTHING:
        return Written(0)  # a view exists already; only its audits are left to do
    if fill is Fill.FILE:
        return _load_seed(batch)
    # A query gets its own rows when it is written.
    previous_rows = batch.own_rows() if batch.model.python is not None else ""
    with batch.layout.rows(batch.model, batch.interval, previous_rows) as query:
        return WRITERS[fill](batch, query)


def take_back(batch: Batch) -> bool:
    """Undo the batch that was just merged; return False if the kind has no way to do so."""
    if not batch.model.takes_back or not batch.held:
        return False
    batch.engine.tables.unmerge(batch.table, batch.id)
    return True


def _load_seed(batch: Batch) -> Written:
    seed = batch.model.seed
    assert seed is not None
    names = tuple(column.name for column in batch.table.columns)
    try:
        return batch.engine.tables.load(
            batch.table, list(read_seed(batch.root, batch.model, names)), is_fresh=batch.untouched
        )
    except QueryError as error:
        error.located = Place(seed.path, error.line)  # of a cell; 0 when it is about the whole file
        raise


def _replace_table(batch: Batch, query: str) -> Written:
    rows = batch.query(query, batch.own_rows())
    return batch.engine.tables.replace(batch.table, rows, is_fresh=batch.untouched)


def _replace_interval(batch: Batch, query: str) -> Written:
    return batch.engine.tables.replace_interval(batch.table, batch.query(query, batch.own_rows()), batch.interval)


def _replace_partitions(batch: Batch, query: str) -> Written:
    if batch.model.overwrites and batch.held:
        return batch.engine.tables.overwrite(batch.table, batch.query(query, batch.own_rows()), batch.id)
    if not batch.table.parts:  # without partition columns the whole table is one partition
        return _replace_table(batch, query)
    rows = batch.query(query, batch.own_rows())
    return batch.engine.tables.replace_partitions(batch.table, rows, others=not batch.held)


def _append_rows(batch: Batch, query: str) -> Written:
    """Add the rows as a partition of the batch's own, which a repeated batch replaces."""
    if not batch.model.appends:
        return _replace_partitions(batch, query)
    batch_partition = replace(BATCH, expression=f"'{batch.id}'")
    table = replace(batch.table, parts=(batch_partition, *batch.table.parts[1:]))
    rows = batch.query(query, batch.own_rows())
    first = (batch.id, *later_ids(batch.model, batch.held, batch.interval.end))
    return batch.engine.tables.replace_partitions(table, rows, first=first, others=not batch.held)


def _merge_rows(batch: Batch, query: str) -> Written:
    names = [column.name for column in batch.table.columns]
    model = compare_returned_columns(batch.model, query, names, batch.engine.engine_for(batch.table.gateway))

    def rows(base: str) -> str:
        source = batch.query(query, batch.own_rows(base))
        return merge_query(model, source, base, batch.table.columns, batch.interval, batch.layout.now)

    if not batch.held:
        return batch.engine.tables.replace(batch.table, rows(""))
    table, execution_time = batch.table, batch.layout.now
    into = merge_statement(model, batch.query(query), table.name, table.columns, batch.interval, execution_time)
    if into is not None and not _can_merge(batch):
        into = None
    return batch.engine.tables.merge(batch.table, rows, batch.id, into)


def _can_merge(batch: Batch) -> bool:
    """Return False for names that the format's MERGE INTO cannot write, and for rows that no MERGE can correct."""
    table = batch.table
    if not FORMATS[table.format].can_merge(column.name for column in table.columns):
        return False
    sql = unusual_rows_query(batch.model, table.name, table.columns)
    return not (sql and batch.engine.engine_for(table.gateway).fetch(sql).rows)


WRITERS: Mapping[Fill, Callable[[Batch, str], Written]] = {
    Fill.WHOLE: _replace_table,
    Fill.TIME: _replace_interval,
    Fill.PARTITION: _replace_partitions,
    Fill.KEY: _merge_rows,
    Fill.APPEND: _append_rows,
    Fill.HISTORY: _merge_rows,
}
