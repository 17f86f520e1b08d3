"""Effects of a change on a model's rows: its tables in two environments, over the time that both hold.

Each comparison is bounded: by the number of rows before it begins, and by a deadline while Spark runs it.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mergeplan.planner.checks.diff.diff_query import DiffOptions
from mergeplan.planner.checks.diff.masking import mask_value
from mergeplan.planner.checks.diff.row_condition import row_condition
from mergeplan.planner.checks.diff.table_diff import (
    RowDiff,
    Samples,
    SchemaDiff,
    are_same_files,
    compare_tables,
    schema_diff,
)
from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import Cancelled, QueryError
from mergeplan.planner.intervals import Timeline
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import ColumnName, quote_column
from mergeplan.planner.semantics.audited_keys import never_null

CANCEL_SECONDS = 0.5  # between two tries to cancel


@dataclass(frozen=True)
class Nullability:
    """A column that a blocking audit `not_null` begins or ceases to guard."""

    column: str
    nullable: bool  # from now on


@dataclass(frozen=True)
class ModelDiff:
    """The difference of a model's rows; `rows` is None if they were not compared, and `note` says why.

    `days` is the time that was compared, () when it was all rows. `counts` are known even if the tables are too large.
    """

    model: str
    schema: SchemaDiff
    nullability: tuple[Nullability, ...] = ()
    counts: tuple[int, int] | None = None
    rows: RowDiff | None = None
    key: tuple[str, ...] = ()
    days: Timeline = ()
    left_out: Timeline = ()  # the time that only the first table holds
    samples: Samples = field(default_factory=Samples)
    note: str = ""
    is_off: bool = False  # its rows must not be compared
    same_files: bool = False  # they were counted, and not read
    seconds: float = 0.0


@dataclass(frozen=True)
class Side:
    """One of the two tables, and the compared time in it (None: all of it)."""

    table: Table
    days: Timeline | None = None

    @property
    def sql(self) -> str:
        """Its rows as the FROM of a query: the model's own columns, of these days."""
        columns = ", ".join(quote_column(column.name) for column in self.table.columns)
        return f"(SELECT {columns} FROM {self.table.name}{self.where and f' WHERE {self.where}'})"

    @property
    def where(self) -> str:
        """The condition that a row is of these days; '' for all rows."""
        by = self.table.partitioning
        if self.days is None or by is None:
            return ""
        name = quote_column(by.column)
        spans = (by.bounds(interval) for interval in self.days)
        within = (f"{name} >= CAST('{low}' AS {by.type}) AND {name} < CAST('{end}' AS {by.type})" for low, end in spans)
        return " OR ".join(f"({condition})" for condition in within)


@dataclass(frozen=True)
class Question:
    model: Model
    sides: tuple[Side, Side]
    names: tuple[str, str]  # of the environments
    equal_rows: int = 0  # of both, in the time that is known to be equal and is left out of `sides`
    is_equal: bool = False  # all of the time is
    days: Timeline = ()  # the reported time, including what is known to be equal
    left_out: Timeline = ()  # the time that only the first table holds
    where: str = ""
    samples: int = 0
    shown: Collection[str] = ()  # columns whose values are shown as they are
    note: str = ""
    by_files: bool = False  # no process overwrites a file of either table


class Budget:
    """The seconds for all comparisons together and the rows for each; a query that runs out of time is cancelled."""

    def __init__(self, engine: Engine, seconds: float, rows: int, check: Callable[[], None]) -> None:
        self._engine, self._check = engine, check
        self._seconds, self.rows = seconds, rows
        self._until = time.monotonic() + seconds

    @property
    def sentence(self) -> str:
        """The note for a comparison that did not end in time."""
        return f"not compared: the {self._seconds:g} seconds for comparing rows were over"

    @property
    def is_spent(self) -> bool:
        return time.monotonic() >= self._until

    @contextmanager
    def enforce(self) -> Iterator[None]:
        """Cancel Spark's work within when the time is up.

        Raise TimeoutError then, and Cancelled if the run itself is cancelled.
        """
        ended = threading.Event()
        watch = threading.Thread(target=self._end_in_time, args=(ended,), daemon=True)
        watch.start()
        try:
            yield
        except Cancelled:
            self._check()  # the run itself may be cancelled
            if not self.is_spent:
                raise
            raise TimeoutError from None
        finally:
            ended.set()
            watch.join()

    def _end_in_time(self, ended: threading.Event) -> None:
        """Cancel when the time is up, and repeat until it has ended: nothing can be cancelled between statements."""
        wait = max(0.0, self._until - time.monotonic())
        while not ended.wait(wait):
            self._engine.cancel()
            wait = CANCEL_SECONDS


def data_diff(engine: Engine, question: Question, budget: Budget) -> ModelDiff:
    """Compare the rows of one model as far as the budget reaches; raise RequestError for a wrong condition."""
    first, second = question.sides
    schema = schema_diff(first.table.columns, second.table.columns)
    diff = ModelDiff(question.model.name, schema, days=question.days, left_out=question.left_out, note=question.note)
    old = {column.name: column.type for column in first.table.columns}
    common_columns = {
        column.name: column.type for column in second.table.columns if old.get(column.name) == column.type
    }
    if question.where:
        question = replace(question, where=row_condition(question.where, common_columns))
    if question.is_equal:
        rows = RowDiff((question.equal_rows, question.equal_rows), common=question.equal_rows)
        return replace(diff, counts=rows.counts, rows=rows, note=join_notes(question.note, "by hashes of their rows"))
    if all(side.days == () for side in question.sides):
        return replace(diff, note="not compared: the tables hold no day in common")
    if budget.is_spent:
        return replace(diff, note=budget.sentence)
    began = time.monotonic()
    try:
        with budget.enforce():
            counts = _count_rows(engine, question)
            is_same = counts[0] == counts[1] and _are_same_files(engine, question, common_columns)
        all_rows = (counts[0] + question.equal_rows, counts[1] + question.equal_rows)
        diff = replace(diff, counts=all_rows)
        if is_same:
            rows = RowDiff(all_rows, common=all_rows[0])
            diff = replace(diff, rows=rows, same_files=True)
        elif sum(counts) > budget.rows:
            diff = replace(diff, note=f"not compared: more than {budget.rows:,} rows in both tables together")
        elif not common_columns:
            diff = replace(diff, note="not compared: there is no column in common")
        else:
            with budget.enforce():
                diff = _compare_rows(engine, question, common_columns, diff)
    except TimeoutError:
        diff = replace(diff, note=budget.sentence)
    except QueryError as error:
        diff = replace(diff, note=f"not compared: {error.message}")
    return replace(diff, seconds=round(time.monotonic() - began, 3))


def _are_same_files(engine: Engine, question: Question, both: Collection[str]) -> bool:
    first, second = question.sides
    if not (question.by_files and both) or question.where or first.where != second.where:
        return False
    return are_same_files(engine, (first.table.name, second.table.name), both, first.where)


def _compare_rows(engine: Engine, question: Question, both: Collection[str], model_diff: ModelDiff) -> ModelDiff:
    key, note = key_of(question.model, both)
    options = DiffOptions(on=key, where=question.where, samples=question.samples)
    tables = question.sides[0].sql, question.sides[1].sql
    diff = compare_tables(engine, question.names, tables, options, question.model.name)
    assert model_diff.counts is not None
    rows = replace(diff.rows, counts=model_diff.counts, common=diff.rows.common + question.equal_rows)
    samples = mask_samples(diff.samples, diff.key, question.shown)
    return replace(model_diff, rows=rows, key=diff.key, samples=samples, note=join_notes(question.note, note))


def join_notes(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def _count_rows(engine: Engine, question: Question) -> tuple[int, int]:
    """Return the number of rows of each side; for whole files Spark reads it from their footers."""
    for side in question.sides:
        engine.tables.refresh(side.table.name)  # another process may have pointed it at other files since
    where = f" WHERE {question.where}" if question.where else ""
    counts = (f"(SELECT COUNT(*) FROM {side.sql} AS t{where})" for side in question.sides)
    ((first, second),) = engine.fetch(f"SELECT {', '.join(counts)}").rows
    return int(str(first)), int(str(second))


def key_of(model: Model, columns: Collection[str]) -> tuple[tuple[str, ...], str]:
    """Return the key columns of a model's rows, and a note if there are none.

    The key is the grain, else the unique key, if both tables have all of it.
    """
    names = () if model.by_key.delete_insert else model.by_key.unique_key  # there a key has several rows
    unique = [ColumnName.parse(key) for key in names]  # None for an expression, which is no column
    declared = [key for key in (model.metadata.grain, unique) if key]
    fits = next((tuple(filter(None, key)) for key in declared if set(key) <= set(columns)), ())
    if fits:
        return fits, ""
    return (), "whole rows: a key's column differs" if declared else "whole rows: no `grain` is declared"


def mask_samples(samples: Samples, key: Collection[str], shown_columns: Collection[str]) -> Samples:
    """Return the samples with every value masked except in columns which may be shown.

    Changed rows start with the key, then have each column of both tables, as `s__name` and `t__name`.
    """

    def mask_cells(rows: Rows, names: Sequence[str]) -> Rows:
        plain = [name.lower() in shown_columns for name in names]
        cells = (tuple(c if ok else mask_value(c) for c, ok in zip(row, plain, strict=True)) for row in rows.rows)
        return Rows(rows.columns, tuple(cells))

    of_changed = [name if at < len(key) else name[len("s__") :] for at, name in enumerate(samples.changed.columns)]
    only = (mask_cells(rows, rows.columns) for rows in (samples.only_first, samples.only_second))
    return Samples(mask_cells(samples.changed, of_changed), *only)


def nullability(old: Model, new: Model) -> tuple[Nullability, ...]:
    old_columns, new_columns = never_null(old), never_null(new)
    ceased = [Nullability(column, nullable=True) for column in old_columns - new_columns]
    return tuple(
        sorted([*ceased, *(Nullability(c, nullable=False) for c in new_columns - old_columns)], key=lambda n: n.column)
    )
