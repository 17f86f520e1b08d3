"""Adoption of tables: those with the name of a future prod view are moved aside first, and back if that fails.

A view replaces a moved table, over the same rows, until the promotion points it at the version. The journal records
each move before it is made. An adoption that a crash interrupted is undone by the next verb that reads an environment.
If its promotion had begun, that is finished like any other instead. Only objects that mergeplan made are ever dropped:
views, and tables that point at files of others and let go of them first.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.apply.physical_tables import hold_table
from mergeplan.planner.engine.protocol import Engine, ViewText
from mergeplan.planner.errors import LeaseHeld, Refused
from mergeplan.planner.naming import quote_column, quote_name
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.state.environments import HistoryAction
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.plans import ADOPTING, SavedPlan
from mergeplan.planner.state.store import StateStore

UNDONE = "undone"


@dataclass(frozen=True)
class Move:
    """A table that makes room for a view: its old name and its new one."""

    old: str
    new: str


def apply_adoption(
    plan: Plan, moves: Iterable[Move], store: StateStore, engine: Engine, lease: Lease, carry_out: Callable[[], Outcome]
) -> Outcome:
    """Carry out the plan of an adoption after moving aside the tables in its way: all of it or nothing."""
    moves = tuple(moves)
    adopted = [c.new.table for c in plan.changes if c.new and c.adopts]
    journal = {"moves": [[move.old, move.new] for move in moves], "adopted": adopted}
    tables = [change.new.table for change in plan.changes if change.new]
    store.plans.begin_adoption(plan.id, plan.environment, tables, journal)
    try:
        for move in moves:
            store.leases.check(lease)
            _move_aside(engine, move)
        outcome = carry_out()
    except BaseException:
        _try_undo(store, engine, plan.id)
        raise
    if outcome.failures:
        _try_undo(store, engine, plan.id)
    else:
        store.plans.close(plan.id, "applied")
    return outcome


def pending_adoptions(store: StateStore) -> tuple[SavedPlan, ...]:
    return store.plans.list_by_status(ADOPTING)


def undo_interrupted(store: StateStore, engine: Engine, holder: str, lease: Lease | None = None) -> None:
    """Undo the adoptions that a crash interrupted, after promotions are finished.

    An adoption that a living process carries out is left to it. `lease` is the one that the caller holds.
    """
    if lease and lease.name == PROD:
        _undo_all(store, engine)
    elif pending_adoptions(store):
        with suppress(LeaseHeld), store.leases.hold(PROD, holder):
            _undo_all(store, engine)


def _undo_all(store: StateStore, engine: Engine) -> None:
    for plan in pending_adoptions(store):
        _undo_adoption(store, engine, plan)


def _try_undo(store: StateStore, engine: Engine, plan_id: str) -> None:
    """Undo what was begun; if that fails, it stays in the journal for the next process."""
    try:
        _undo_adoption(store, engine, store.plans.get(plan_id))
    except Exception:
        return


def _undo_adoption(store: StateStore, engine: Engine, saved_plan: SavedPlan) -> None:
    if _is_promoted(store, saved_plan.id):
        store.plans.close(saved_plan.id, "applied")
        return
    if any(promotion.new.plan_id == saved_plan.id for promotion in store.promotions.pending()):
        return  # its views are partly swapped: it can be neither finished nor undone now
    recorded_tables = store.tables.all()
    for name in saved_plan.options["adopted"]:
        with hold_table(store, engine, name, "adoption", wait=60):
            if name in recorded_tables:
                engine.tables.drop(name)
                store.tables.forget([name])
    for old, new in saved_plan.options["moves"]:
        _move_back(engine, Move(old, new))
    store.plans.close(saved_plan.id, UNDONE)


def _is_promoted(store: StateStore, plan_id: str) -> bool:
    if any(promotion.new.plan_id == plan_id for promotion in store.promotions.pending()):
        return False
    return any(
        row.plan_id == plan_id and row.action is not HistoryAction.UNDONE for row in store.environments.history(PROD)
    )


def _move_aside(engine: Engine, move: Move) -> None:
    standing = engine.catalog.standing(move.old)
    if standing is None or standing.is_view:
        raise Refused(f"The table `{move.old}` is not there any more.", hint="Adopt again.")
    engine.catalog.rename_table(move.old, move.new)
    engine.catalog.swap_view(ViewText(move.old, _stand_in(move, [column.name for column in standing.columns])))


def _move_back(engine: Engine, move: Move) -> None:
    """Give the table its name again, unless it never lost it."""
    moved, occupant = engine.catalog.standing(move.new), engine.catalog.standing(move.old)
    if moved is None or moved.is_view:
        return
    if occupant is not None:
        if not occupant.is_view or occupant.sql != _stand_in(move, [column.name for column in moved.columns]):
            message = f"`{move.old}` was created again while `{move.new}` was on its way back to that name."
            raise Refused(
                message, hint=f"Drop one of them, and rename `{move.new}` to `{move.old}` if that is the other."
            )
        engine.catalog.drop_view(move.old)
    engine.catalog.rename_table(move.new, move.old)


def _stand_in(move: Move, columns: Iterable[str]) -> str:
    named = ", ".join(map(quote_column, columns))
    return f"SELECT {named} FROM {quote_name(move.new)}"
