"""rollback, invalidate, janitor: an environment put back, dropped at once, or dropped when its time is over."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from mergeplan.planner.apply import janitor
from mergeplan.planner.apply.events import Promoted, PromotionRecovered, Recovery
from mergeplan.planner.apply.events import ignore_event as no_events
from mergeplan.planner.apply.old_versions import OldVersions, find_old_versions, remove_old_versions
from mergeplan.planner.apply.promotion.promotion import drop_environment
from mergeplan.planner.apply.promotion.rollback import AskedBy, RollbackPlan, build_rollback
from mergeplan.planner.apply.promotion.rollback import apply_rollback as roll_back
from mergeplan.planner.errors import RequestError
from mergeplan.planner.parsing.files.environments import parse_ttl, replaces_views, seconds_of_promotion
from mergeplan.planner.session.use_cases.applying import Record
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.state.environments import HistoryAction
from mergeplan.planner.state.promotions import SwapOptions
from mergeplan.planner.state.retention import Forgotten
from mergeplan.planner.state.store import StateStore

HISTORY = timedelta(days=365)


@dataclass(frozen=True)
class RolledBack:
    """What a rollback did, and with how many Spark jobs: it reads no data, so there are none.

    `plan` is what was decided; None where an earlier run had decided it, which was interrupted.
    """

    promoted: Promoted
    spark_jobs: int = 0
    finished: bool = False  # it had been asked for before, was interrupted, and is finished now
    plan: RollbackPlan | None = None


@dataclass(frozen=True)
class Invalidated:
    """What the end of an environment came to: its views, and the tables that only it used."""

    promoted: Promoted
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Swept:
    environments: tuple[str, ...]
    tables: tuple[str, ...]
    dropped: bool
    forgotten: Forgotten = field(default_factory=Forgotten)
    old_versions: OldVersions = field(default_factory=OldVersions)


def plan_rollback(work: Workspace, name: str, revision: int | None) -> RollbackPlan:
    """Return what `rollback` would do, by the present state; change nothing and do not start Spark."""
    work.about = frozenset({name})
    work.environment(name)
    return build_rollback(work.store, name, revision, work.now)


def roll_back_environment(work: Workspace, name: str, revision: int | None, record: Record) -> RolledBack:
    """Point the environment again at what it showed at a revision (None: the last that was different)."""
    work.about = frozenset({name})
    work.environment(name)
    with work.lease(name, f"rollback of {name}") as lease:
        work.settle(lease)
        if (recovery := _find_recovery(work, name, HistoryAction.ROLLED_BACK)) and _went_there(
            work.store, recovery, revision
        ):
            return RolledBack(Promoted(name, recovery.revision, 0, len(recovery.views), 0, 0), finished=True)
        plan = plan_rollback(work, name, revision)
        if plan.refusal:  # before Spark is started
            raise plan.refusal
        jobs = work.engine.jobs()
        config = work.project.config
        swap = SwapOptions(seconds_of_promotion(config, name), replaces_views(config, name))
        by = AskedBy(record.who, record.note, swap)
        done = roll_back(work.store, work.engine, lease, plan, by, emit=work.on_event)
        return RolledBack(done, work.engine.jobs() - jobs, plan=plan)


def check_droppable(name: str) -> None:
    if name == PROD:
        raise RequestError("`prod` cannot be dropped.", hint="Only other environments can.")


def invalidate_environment(work: Workspace, name: str, who: str = "") -> Invalidated:
    check_droppable(name)
    work.about = frozenset({name})
    with work.lease(name, f"invalidation of {name}") as lease:
        work.settle(lease)
        recovery = _find_recovery(work, name, HistoryAction.DROPPED)
        if recovery is None or work.store.environments.get(name).exists:
            work.environment(name)
            done = drop_environment(work.store, work.engine, lease, emit=work.on_event, who=who)
        else:
            done = Promoted(name, recovery.revision, 0, 0, len(recovery.views), 0)
    work.store.overrides.forget_restatement(name)  # a category is of one change, and stays that of the same one
    return Invalidated(done, janitor.sweep_tables(work.store, work.engine, work.now, orphans=True, emit=work.on_event))


def run_janitor(work: Workspace, retention: timedelta | None = None, keep: Collection[str] = ()) -> Swept:
    """Drop expired environments and unused tables; remove old versions of rows and old records of the state.

    A table is unused if no environment, no history younger than the retention and no open plan refers to it. Versions
    that were replaced longer ago than `table_history_ttl` are removed, if that is set. The state forgets what is older
    than `history_ttl`.

    The environments to `keep` do not expire. A read-only workspace only names the environments and tables.
    """
    config = work.project.config
    if retention is None:
        retention = parse_ttl(config.snapshot_ttl) if config.snapshot_ttl else janitor.RETENTION
    pinned = {name.lower() for name in (*config.pinned_environments, *keep)}
    if work.only_looks:
        over, tables = (
            janitor.find_expired_environments(work.store, work.now, pinned),
            janitor.find_unused_tables(work.store, work.now, retention),
        )
        old = find_old_versions(work.store) if config.table_history_ttl else OldVersions()
        return Swept(tuple(over), tuple(tables), dropped=False, old_versions=old)
    over = janitor.drop_expired(work.store, work.engine, work.now, pinned, emit=no_events)
    gone = janitor.sweep_tables(work.store, work.engine, datetime.now(UTC), retention, emit=work.on_event)
    janitor.measure_sizes(work.store, work.engine, work.store.environments.get(PROD))
    history = parse_ttl(config.history_ttl) if config.history_ttl else HISTORY
    forgotten = work.store.retention.forget(datetime.now(UTC) - max(history, retention))
    old = OldVersions()
    if config.table_history_ttl:
        old = remove_old_versions(work.store, work.engine, parse_ttl(config.table_history_ttl), datetime.now(UTC))
    return Swept(tuple(over), tuple(gone), dropped=True, forgotten=forgotten, old_versions=old)


def _find_recovery(work: Workspace, name: str, action: HistoryAction) -> PromotionRecovered | None:
    finished_recoveries = (
        recovery for recovery in work.recovered if recovery.environment == name and recovery.ended is Recovery.FINISHED
    )
    return next((recovery for recovery in finished_recoveries if recovery.action == action), None)


def _went_there(store: StateStore, promotion: PromotionRecovered, revision: int | None) -> bool:
    """Return True if the finished rollback is the one that is requested again; a second would go further back."""
    if revision is None:
        return True
    rows = {row.revision: row.snapshots for row in store.environments.history(promotion.environment)}
    return rows.get(revision) == rows[promotion.revision]
