"""The stages of applying a plan, as data: the executor runs them, and `--explain` prints them.

An apply has rounds if comparisons of tables may spare models: these wait, with all models downstream. After each
comparison the plan is made again, and with it the stages. The last round leaves nothing to compare.
"""

from collections.abc import Collection
from dataclasses import dataclass
from graphlib import TopologicalSorter

from mergeplan.planner.intervals import Timeline
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.parsing.definitions.body import StatementTokens
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Change, ChangeKind
from mergeplan.planner.plan.early_cutoff import Comparison
from mergeplan.planner.plan.schedule import ONCE
from mergeplan.planner.snapshot.environment import ViewChanges
from mergeplan.planner.snapshot.snapshot import Snapshot

Statements = tuple[tuple[StatementTokens, str], ...]


@dataclass(frozen=True)
class CreateStage:
    """Create the tables and physical views that these changes need and that do not exist."""

    changes: tuple[Change, ...]

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots whose table must exist."""
        return tuple(change.new for change in self.changes if change.new and change.kind.has_view)

    @property
    def new_tables(self) -> tuple[Change, ...]:
        """The changes whose table no environment shows yet."""
        existing = (ChangeKind.RESTATED, ChangeKind.DUE)
        views = (change for change in self.changes if change.kind.has_view and change.change not in existing)
        return tuple(change for change in views if change.shares is None or change.keeps_rows)


@dataclass(frozen=True)
class BackfillTask:
    """The rows that a table lacks by the plan (restated or late ones may be loaded), or the audits of a view."""

    snapshot: Snapshot
    missing: Timeline
    copies: Timeline = ()  # what of it another table of the model holds already
    copied_from: str = ""
    adopts: bool = False  # that table is an adopted one
    late: Timeline = ()  # what its signals hold back, as has been reported: no failure
    lookback: int = 0  # that of the table that it replaces, if it is longer


@dataclass(frozen=True)
class BackfillStage:
    """Fill tables; those of `empty` only count as filled, because the request leaves them empty."""

    tasks: tuple[BackfillTask, ...]
    empty: tuple[Change, ...] = ()


@dataclass(frozen=True)
class CompareStage:
    """Compare tables that are filled with those that they replace."""

    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True)
class KeptTableAudits:
    """Audits of a table that the plan does not fill; they run if it holds all of `needed` and they did not pass yet."""

    snapshot: Snapshot
    calls: tuple[AuditCall, ...]
    needed: Timeline = ()


@dataclass(frozen=True)
class AuditStage:
    """Audit tables that the plan keeps."""

    tables: tuple[KeptTableAudits, ...]


@dataclass(frozen=True)
class PromoteStage:
    """Show the new environment once the tables of `needed` hold all their time."""

    is_needed: bool
    views: ViewChanges
    needed: tuple[Change, ...]


@dataclass(frozen=True)
class Stages:
    """The stages of one round, in their order; AUDIT and PROMOTE follow the last round."""

    before_all: Statements
    create: CreateStage
    backfill: BackfillStage
    compare: CompareStage
    audit: AuditStage
    promote: PromoteStage
    after_all: Statements


def build_stages(
    plan: Plan, compared: Collection[Comparison] | None = None, before_all: Statements = (), after_all: Statements = ()
) -> Stages:
    """Return the stages of a plan: of one round after these comparisons, or of all together without `compared`."""
    is_compared = {(comparison.reader, comparison.model) for comparison in compared or ()}
    open_comparisons = [c for c in plan.comparisons if compared is not None and (c.reader, c.model) not in is_compared]
    waiting = find_downstream(plan, {comparison.reader for comparison in open_comparisons})
    changes = tuple(change for change in plan.changes if change.new and change.name not in waiting)
    return Stages(
        before_all,
        CreateStage(changes),
        BackfillStage(
            tuple(task for change in changes if (task := _backfill_task(plan, change))),
            tuple(change for change in changes if change.recorded),
        ),
        CompareStage(tuple(comparison for comparison in open_comparisons if comparison.model not in waiting)),
        AuditStage(tuple(audits for c in plan.changes if c.new and (audits := _list_kept_audits(c)).calls)),
        PromoteStage(plan.promotes, plan.views, tuple(c for c in plan.changes if c.new and c.needed)),
        after_all,
    )


def find_downstream(plan: Plan, names: Collection[str]) -> frozenset[str]:
    downstream = set(names)
    for name in TopologicalSorter(plan.parents).static_order():
        if not downstream.isdisjoint(plan.parents.get(name, ())):
            downstream.add(name)
    return frozenset(downstream)


def _backfill_task(plan: Plan, change: Change) -> BackfillTask | None:
    """Return the task of a table that lacks rows, or of a new view with audits, which is recorded like a batch."""
    assert change.new is not None
    if change.missing:
        source = change.adopts.place if change.adopts else change.old.table if change.old else ""
        is_adopted, late = change.adopts is not None, plan.late.get(change.name, ())
        return BackfillTask(change.new, change.missing, change.copies, source, is_adopted, late, change.lookback)
    if change.kind.is_view and change.new.model.checks.audits and change.shares is None:
        return BackfillTask(change.new, ONCE)
    return None


def _list_kept_audits(change: Change) -> KeptTableAudits:
    """Return the new audits of the same table, or all of a table that another plan may have built without them."""
    assert change.new is not None
    calls: tuple[AuditCall, ...] = ()
    if not change.kind.has_view:
        return KeptTableAudits(change.new, calls)
    if change.old is not None and change.old.table == change.new.table:
        calls = tuple(call for call in change.new.model.checks.audits if call not in change.old.model.checks.audits)
        return KeptTableAudits(change.new, calls)
    filled_here = change.missing == change.audited != () or (change.kind.is_view and change.shares is None)
    goes_on = change.forward and not (change.recomputed and change.audited)
    if not (filled_here or goes_on or change.preview or change.recorded):
        calls = change.new.model.checks.audits
    return KeptTableAudits(change.new, calls, change.audited)
