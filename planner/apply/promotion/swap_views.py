"""The views of a promotion: swapped or dropped, recorded in groups, or all put back to the old tables.

In an atomic promotion they first read through a switch (`view_switch`), which is turned for all of them at once. It
waits before and after: a query under analysis may have read one view before and another one not yet. The journal says
only that a promotion is pending: in a group that is not recorded, any view may have been swapped. The process that
resumes it looks up every view in the catalog, and leaves alone those that show the right table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime

from mergeplan.planner.apply.events import (
    Emit,
    Promoted,
    PromotionUndone,
    Stage,
    StageStarted,
    ViewDropped,
    ViewSwapped,
)
from mergeplan.planner.apply.promotion.own_views import versions_of
from mergeplan.planner.apply.promotion.view_switch import (
    COLUMNS,
    find_moved_views,
    is_promoted,
    position_query,
    switch_of,
    through_switch,
)
from mergeplan.planner.engine.protocol import Engine, Stands, ViewText
from mergeplan.planner.errors import Cancelled, LeaseHeld, QueryError, RequestError
from mergeplan.planner.naming import quote_column, quote_name
from mergeplan.planner.parsing.macros.expand import dates
from mergeplan.planner.parsing.render import stage_statements
from mergeplan.planner.parsing.sql.macro_scope import EVALUATING
from mergeplan.planner.snapshot.environment import PROD, Environment, View, ViewChanges, view_changes
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.promotions import Promotion
from mergeplan.planner.state.store import StateStore

THREADS = 2  # the catalog has one lock: more threads gain nothing
GROUP = 25  # views that are recorded in one transaction
ATTEMPTS = 3
PAUSE_SECONDS = 0.2
IN_ITS_PLACE = ("EXPECT_VIEW_NOT_TABLE", "WRONG_COMMAND_FOR_OBJECT_TYPE")  # a table has the view's name
Skippable = Callable[[View], bool]


def carry_out(
    store: StateStore, engine: Engine, lease: Lease, promotion: Promotion, emit: Emit, pool: Executor | None = None
) -> Promoted:
    """Swap the views of a promotion that just began, and finish it; if one cannot be swapped, all go back.

    `pool` runs nothing else, and the catalog knows its threads.
    """
    swap = _ViewSwap(store, engine, lease, promotion, emit)
    swap.before, swap.pool = promotion.old.views_by_name, pool
    return _finish_promotion(swap)


def resume_promotion(store: StateStore, engine: Engine, lease: Lease, promotion: Promotion, emit: Emit) -> None:
    """Finish a promotion that another process began, as `carry_out` does, without knowing what its views show."""
    _finish_promotion(_ViewSwap(store, engine, lease, promotion, emit))


def _finish_promotion(swap: _ViewSwap) -> Promoted:
    store, lease, promotion, emit = swap.store, swap.lease, swap.promotion, swap.emit
    changes = promotion.changes
    emit(StageStarted(Stage.PROMOTE, len(changes.names)))
    try:
        if swap.before is None:
            swap.find_position()
        swap.show(changes, promotion.new)
    except (LeaseHeld, RequestError):
        raise  # another process swaps the views, or the journal cannot be written: the next one finishes it
    except (Exception, KeyboardInterrupt) as error:
        _undo_promotion(swap, error)
        raise
    store.promotions.finish(lease, promotion)
    shown = len(promotion.new.views_by_name) - len(changes.added) - len(changes.swapped)
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


def _undo_promotion(swap: _ViewSwap, error: BaseException) -> None:
    """Put every view back to the old map; if one fails, the promotion stays pending, for the next process to finish."""
    promotion, swap.rolling_back, swap.before = swap.promotion, True, None
    try:
        swap.show(view_changes(promotion.new, promotion.old), promotion.old)
        swap.store.promotions.roll_back(swap.lease, promotion)
    except Exception:
        return
    swap.emit(PromotionUndone(promotion.environment, str(error) or "it was interrupted."))


class _ViewSwap:
    """The view swap of one promotion, which can be resumed or rolled back."""

    def __init__(self, store: StateStore, engine: Engine, lease: Lease, promotion: Promotion, emit: Emit) -> None:
        self.store, self.engine, self.lease, self.promotion, self.emit = store, engine, lease, promotion, emit
        self.pool: Executor | None = None  # for the swaps, in place of a new one
        self.rolling_back = False
        self._had = promotion.old.views_by_name.keys()  # views of these names are ours
        self.before: Mapping[str, View] | None = None  # what all views show until they are swapped, if that is known
        self._comments: dict[str, tuple[str, ...]] = {}  # of each view, by the old and the new map
        for view in (
            view for environment in (promotion.old, promotion.new) for view in environment.views_by_name.values()
        ):
            self._comments[view.name] = (*self._comments.get(view.name, ()), view.comment)
        self._refused: set[str] = set()  # views that Spark would not swap, or whose statements it would not run
        self._pause = threading.Event()
        shown = promotion.old.views_by_name, promotion.new.views_by_name
        self._columns = store.tables.columns(
            {views[name].table for views in shown for name in promotion.changes.names if name in views}
        )
        self._moved, self._switch = find_moved_views(promotion), switch_of(promotion)
        self._promoted = False  # whether the switch may say so
        self._through = dict(self._queries_through()) if self._switch else {}
        self._switch = self._switch if self._through else ""

    def _queries_through(self) -> Iterator[tuple[str, str]]:
        old, columns = self.promotion.old.views_by_name, self._columns
        for name, view in self._moved.items():
            old_table, new_table = old[name].table, view.table
            if old_table in columns and new_table in columns:
                sql = through_switch(self._switch, (old_table, columns[old_table]), (new_table, columns[new_table]))
                if sql is not None:
                    yield name, sql

    def find_position(self) -> None:
        if self._switch:
            self._promoted = bool(is_promoted(self.engine, self._switch))

    def show(self, changes: ViewChanges, new: Environment) -> None:
        """Swap, then drop; the first failure stops those that have not begun."""
        # One pool for all groups: a catalog connects again for every new thread.
        with nullcontext(self.pool) if self.pool else ThreadPoolExecutor(THREADS, "views") as pool:
            if self._switch:
                self._show_at_once(pool, changes)
            else:
                self._run_in_groups(pool, self._swap_view, (*changes.added, *changes.swapped))
                self._run_in_groups(pool, self._drop_view, changes.dropped)
        if new.name != PROD:
            remaining_schemas = {name.rpartition(".")[0] for name in new.views_by_name}
            for schema in sorted({view.name.rpartition(".")[0] for view in changes.dropped} - remaining_schemas):
                self.engine.catalog.drop_schema_if_empty(schema)

    def _show_at_once(self, pool: Executor, changes: ViewChanges) -> None:
        """Drop views, let the others read through the switch, turn it, and then let each read its table alone.

        A new view is created after that moment, and a view that goes is dropped before: a query that reads it finds the
        complete new state or old state, or fails. The same holds for a swapped view whose columns do not allow the
        switch.
        """
        views = (*changes.added, *changes.swapped)
        self._run_in_groups(pool, self._drop_view, changes.dropped)
        if self.rolling_back and not self._promoted:  # through the switch they show the old tables, too
            self._run_in_groups(pool, self._swap_view, views)
            return
        if self._promoted is self.rolling_back:
            self._turn_switch(shows_new=self._promoted)
            self._run_in_groups(
                pool, self._read_through, [self._moved[name] for name in sorted(self._through)], record=False
            )
            self._wait_for_queries()
            self._turn_switch(shows_new=not self.rolling_back)
        self._run_in_groups(pool, self._swap_view, [view for view in views if view.name not in self._through])
        self._wait_for_queries()
        self._run_in_groups(pool, self._swap_view, [view for view in views if view.name in self._through])

    def _turn_switch(self, *, shows_new: bool) -> None:
        """Put the switch into a position; the janitor drops it like any unneeded table."""
        self.store.leases.check(self.lease)
        self.store.tables.register(self._switch, COLUMNS)
        self._promoted = self._promoted or shows_new  # set first: if the turn fails, its position is unknown
        text = ViewText(self._switch, position_query(shows_new=shows_new))
        self._attempt_step(View("", self._switch, ""), lambda: self.engine.catalog.swap_view(text), _never_skip)
        self._promoted = shows_new

    def _wait_for_queries(self) -> None:
        self._pause.wait(self.promotion.swap.wait_seconds)

    def _read_through(self, view: View) -> None:
        self.store.leases.check(self.lease)
        try:
            self._attempt_step(view, lambda: self._replace_view(view, self._through[view.name]), _never_skip)
        except QueryError:
            # Without its old table the view fails until it is swapped, and a rollback must not stop here.
            if not self.rolling_back and not self._is_gone(self.promotion.old.views_by_name[view.name].table):
                raise
            del self._through[view.name]

    def _run_in_groups(
        self, pool: Executor, step: Callable[[View], None], views: Sequence[View], *, record: bool = True
    ) -> None:
        for start in range(0, len(views), GROUP):
            group = views[start : start + GROUP]
            steps: list[Future[None]] = []
            try:
                steps += (pool.submit(step, view) for view in group)
                wait(steps, return_when=FIRST_EXCEPTION)
            finally:
                begun = [future for future in steps if not future.cancel()]
                wait(begun)
            for done in begun:
                done.result()
            if record:
                self.store.promotions.record_steps(self.lease, self.promotion, [view.name for view in group])

    def _swap_view(self, view: View) -> None:
        if view.table not in self._columns:
            gone = QueryError(f"The table `{view.table}`, which `{view.name}` is to show, is gone.")
            self._give_up(view, gone, self._has_no_table)
            return
        columns = ", ".join(quote_column(column.name) for column in self._columns[view.table])
        self.store.leases.check(self.lease)
        self._attempt_step(
            view,
            lambda: self._replace_view(view, f"SELECT {columns} FROM {quote_name(view.table)}"),
            self._has_no_table,
        )
        self._run_statements(view)
        self.emit(ViewSwapped(view.name, view.table))

    def _replace_view(self, view: View, sql: str) -> None:
        table_columns, comments = self._columns[view.table], dict(view.column_comments)
        columns = [replace(column, comment=comments.get(column.name, "")) for column in table_columns]
        if view.stored and any(column.comment for column in (*table_columns, *columns)):
            self.engine.catalog.comment_columns(view.table, columns)
        view_state = self._view_state(view)
        view_comments = self._comments.get(view.name, ())
        reads = "" if view.name in self._had or self.promotion.swap.replaces else versions_of(view)
        text = ViewText(view.name, sql, view.comment, columns, view.properties, view_state, view_comments, reads)
        self.engine.catalog.swap_view(text)

    def _view_state(self, view: View) -> Stands:
        if self.before is None:
            return Stands.UNKNOWN
        old = self.before.get(view.name)
        if old is None:
            return Stands.NOTHING
        is_unchanged = (old.comment, old.properties) == (view.comment, view.properties)
        return Stands.ALL_BUT_QUERY if is_unchanged else Stands.UNKNOWN

    def _run_statements(self, view: View) -> None:
        if not view.statements:
            return
        values = dates(None, datetime.now(UTC))
        statements = stage_statements(view.statements, EVALUATING, view.name, values, {}, {})
        if statements:
            self._attempt_step(view, lambda: _run_in_session(self.engine, statements), self._was_refused)

    def _drop_view(self, view: View) -> None:
        self.store.leases.check(self.lease)
        reads = "" if view.name in self._had else versions_of(view)  # a new view, which may not exist yet
        self._attempt_step(view, lambda: self.engine.catalog.drop_view(view.name, reads), _never_skip)
        self.emit(ViewDropped(view.name))

    def _attempt_step(self, view: View, step: Callable[[], object], skippable: Skippable) -> None:
        """Try a step several times; a rollback passes over a failed one if `skippable` says that it changes nothing."""
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
            # A table with the view's name was there before, and is no view of ours to put back.
            if self.rolling_back and ((error.condition or "").split(".")[0] in IN_ITS_PLACE or skippable(view)):
                return
            self._refused.add(view.name)
        raise error

    def _was_refused(self, view: View) -> bool:
        return view.name in self._refused

    def _has_no_table(self, view: View) -> bool:
        """Return True if the view's table is gone: nothing can show it, and the next plan builds it again."""
        return self._is_gone(view.table)

    def _is_gone(self, table: str) -> bool:
        schema, _, name = table.rpartition(".")
        try:
            return table not in self._columns or name.lower() not in self.engine.catalog.objects(schema)
        except QueryError:
            return False


def _never_skip(_view: View) -> bool:
    return False


def _run_in_session(engine: Engine, statements: tuple[str, ...]) -> None:
    with engine.separate_session(statements, ()):
        pass
