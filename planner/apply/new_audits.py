"""Audits newly asked of tables that a plan keeps: run once, on all that lies there, and what passed is remembered."""

from __future__ import annotations

from collections.abc import Mapping

from planner.apply.backfill import Failure, found_rows
from planner.apply.create_tables import Layout, at_model
from planner.apply.events import AuditRan, Emit
from planner.checks.audits import AuditOptions, is_enabled, run_audit
from planner.engine.protocol import Engine
from planner.fingerprint import digest
from planner.intervals import Interval
from planner.model.model import Audit, AuditCall
from planner.parsing.files.schema import Samples
from planner.plan.build import Change, Plan
from planner.snapshot.snapshot import Snapshot
from planner.state.store import StateStore


def ask_new_audits(
    plan: Plan,
    layout: Layout,
    engine: Engine,
    store: StateStore,
    audits: Mapping[str, Audit],
    emit: Emit,
    samples: Samples = "masked",
) -> tuple[Failure, ...]:
    """Run what is newly asked of kept tables and was not answered before; the blocking audits that found rows.

    A merge, which asks the same of the same tables as its pull request did, therefore runs none.
    """
    options = AuditOptions(audits, layout.tables, layout.embedded, layout.now, samples)
    failures = []
    for change in plan.changes:
        snapshot = change.new
        for call in _newly_asked(change) if snapshot else ():
            assert snapshot is not None
            if not is_enabled(call, audits) or digest(repr(call)) in store.passed_audits(snapshot.table):
                continue
            with at_model(snapshot.model):
                held = _whole(store, snapshot)
                result = run_audit(engine, snapshot.model, call, snapshot.table, held, options)
            emit(AuditRan(snapshot.name, result))
            if not result.ok and result.blocking:
                failures.append(found_rows(snapshot.model, result))
            else:
                store.record_passed_audit(snapshot.table, digest(repr(call)))
    return tuple(failures)


def _newly_asked(change: Change) -> tuple[AuditCall, ...]:
    if change.old is None or change.new is None or change.old.table != change.new.table or not change.kind.has_view:
        return ()
    return tuple(call for call in change.new.model.audits if call not in change.old.model.audits)


def _whole(store: StateStore, snapshot: Snapshot) -> Interval | None:
    """All the time that the table holds."""
    held = store.loaded([snapshot.table])[snapshot.table]
    return Interval(held[0].start, held[-1].end) if held else None
