"""The views of a promotion on their way: each swapped or dropped, and recorded, or all put back where they were.

The journal says only that a promotion is pending; a view that already shows what it should is left alone. Whoever
finds it pending therefore simply does it all again, from wherever it stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime

from planner.apply.events import Emit, Promoted, PromotionUndone, Stage, StageStarted, ViewDropped, ViewSwapped
from planner.engine.protocol import Engine, ViewText
from planner.errors import Cancelled, LeaseHeld, QueryError, RequestError
from planner.model.model import Column
from planner.parsing.macros.expand import dates
from planner.parsing.render import stage_statements
from planner.parsing.sql.macro_scope import EVALUATING
from planner.snapshot.environment import PROD, Environment, View, ViewChanges, view_changes, views_of
from planner.state.leases import Lease
from planner.state.promotions import Promotion
from planner.state.store import StateStore

THREADS = 2  # the catalog has one lock: more of them gain nothing
ATTEMPTS = 3
PAUSE_SECONDS = 0.2
IN_ITS_PLACE = ("EXPECT_VIEW_NOT_TABLE", "WRONG_COMMAND_FOR_OBJECT_TYPE")  # a table stands where a view should
Skippable = Callable[[View], bool]


def carry_out(store: StateStore, engine: Engine, lease: Lease, promotion: Promotion, emit: Emit) -> Promoted:
    """Swap the views of a promotion that has begun, and finish it; when one cannot be swapped, all go back."""
    changes = promotion.changes
    emit(StageStarted(Stage.PROMOTE, len(changes.names)))
    swapping = _Swapping(store, engine, lease, promotion, emit)
    try:
        swapping.show(changes, promotion.new)
    except (LeaseHeld, RequestError):
        raise  # another process is at it, or the journal cannot be written: the next one finishes it
    except (Exception, KeyboardInterrupt) as error:
        _undo(swapping, error)
        raise
    store.promotions.finish(lease, promotion)
    shown = len(views_of(promotion.new)) - len(changes.added) - len(changes.swapped)
    done = Promoted(
        promotion.environment,
        promotion.new.revision,
        len(changes.added),
        len(changes.swapped),
        len(changes.dropped),
        shown,
    )
    emit(done)
    return done


def _undo(swapping: _Swapping, error: BaseException) -> None:
    """Every view back to the old map; what cannot be put back stays pending, for the next process to finish."""
    promotion, swapping.goes_back = swapping.promotion, True
    try:
        swapping.show(view_changes(promotion.new, promotion.old), promotion.old)
        swapping.store.promotions.roll_back(swapping.lease, promotion)
    except Exception:
        return
    swapping.emit(PromotionUndone(promotion.environment, str(error) or "it was interrupted."))


class _Swapping:
    """The views of one promotion on their way."""

    def __init__(self, store: StateStore, engine: Engine, lease: Lease, promotion: Promotion, emit: Emit) -> None:
        self.store, self.engine, self.lease, self.promotion, self.emit = store, engine, lease, promotion, emit
        self.goes_back = False
        self._refused: set[str] = set()  # views that Spark would not swap, or whose statements it would not run
        self._pause = threading.Event()
        self._columns: Mapping[str, tuple[Column, ...]] = {
            name: table.columns for name, table in store.tables.all().items()
        }

    def show(self, changes: ViewChanges, new: Environment) -> None:
        """Swap, then drop; the first failure stops those that have not begun."""
        self._each(self._swap, (*changes.added, *changes.swapped))
        self._each(self._drop, changes.dropped)
        if new.name != PROD:
            kept = {name.rpartition(".")[0] for name in views_of(new)}
            for schema in sorted({view.name.rpartition(".")[0] for view in changes.dropped} - kept):
                self.engine.catalog.drop_schema_if_empty(schema)

    def _each(self, step: Callable[[View], None], views: Iterable[View]) -> None:
        with ThreadPoolExecutor(THREADS, thread_name_prefix="views") as pool:
            try:
                steps = [pool.submit(step, view) for view in views]
                wait(steps, return_when=FIRST_EXCEPTION)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        for done in steps:
            if not done.cancelled():
                done.result()

    def _swap(self, view: View) -> None:
        if view.table not in self._columns:
            gone = QueryError(f"The table `{view.table}`, which `{view.name}` is to show, is gone.")
            self._give_up(view, gone, self._has_no_table)
            return
        columns = ", ".join(f"`{column.name}`" for column in self._columns[view.table])
        table = ".".join(f"`{part}`" for part in view.table.split("."))
        self.store.leases.check(self.lease)
        self._attempt(view, lambda: self._show(view, f"SELECT {columns} FROM {table}"), self._has_no_table)
        self._run_statements(view)
        self.store.promotions.record_step(self.lease, self.promotion, view.name)
        self.emit(ViewSwapped(view.name, view.table))

    def _show(self, view: View, sql: str) -> None:
        known, comments = self._columns[view.table], dict(view.column_comments)
        columns = [replace(column, comment=comments.get(column.name, "")) for column in known]
        if view.stored and any(column.comment for column in (*known, *columns)):
            self.engine.catalog.comment_columns(view.table, columns)
        self.engine.catalog.swap_view(ViewText(view.name, sql, view.comment, columns, view.properties))

    def _run_statements(self, view: View) -> None:
        """What the model says of its view, each time that this is made or moved."""
        values = dates(None, datetime.now(UTC))
        statements = stage_statements(view.statements, EVALUATING, view.name, values, {}, {})
        if statements:
            self._attempt(view, lambda: _run(self.engine, statements), self._was_refused)

    def _drop(self, view: View) -> None:
        self.store.leases.check(self.lease)
        self._attempt(view, lambda: self.engine.catalog.drop_view(view.name), _never)
        self.store.promotions.record_step(self.lease, self.promotion, view.name)
        self.emit(ViewDropped(view.name))

    def _attempt(self, view: View, step: Callable[[], object], skippable: Skippable) -> None:
        """Try a step; given up, on the way back it may be left out where `skippable` says that it changes nothing."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                step()
                return
            except Cancelled:
                raise
            except Exception as error:  # a catalog may be busy for a moment
                if attempt == ATTEMPTS:
                    self._give_up(view, error, skippable)
                    return
                self._pause.wait(PAUSE_SECONDS * attempt)

    def _give_up(self, view: View, error: Exception, skippable: Skippable) -> None:
        if isinstance(error, QueryError):
            # A table in the view's place was there before, and is no view of ours to put back.
            if self.goes_back and ((error.condition or "").split(".")[0] in IN_ITS_PLACE or skippable(view)):
                return
            self._refused.add(view.name)
        raise error

    def _was_refused(self, view: View) -> bool:
        return view.name in self._refused

    def _has_no_table(self, view: View) -> bool:
        """True when the view's table is gone: nothing can show it, and the next plan finds it missing and builds it."""
        return self._is_gone(view.table)

    def _is_gone(self, table: str) -> bool:
        schema, _, name = table.rpartition(".")
        try:
            return table not in self._columns or name.lower() not in self.engine.catalog.objects(schema)
        except QueryError:
            return False


def _never(_view: View) -> bool:
    return False


def _run(engine: Engine, statements: tuple[str, ...]) -> None:
    with engine.beside(statements, ()):
        pass
