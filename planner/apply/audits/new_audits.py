"""New audits of tables that a plan keeps: each runs once on all rows, and a pass is recorded.

The audits of a table that another plan built ran in that plan; those that it did not have run here.
"""

from mergeplan.planner.apply.backfill.layout import Layout, locate_query_errors
from mergeplan.planner.apply.backfill.work import Failure, audit_failure
from mergeplan.planner.apply.context import ApplyContext
from mergeplan.planner.apply.events import AuditRan
from mergeplan.planner.checks.audits import is_enabled, run_audit
from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.intervals import Interval, subtract_intervals
from mergeplan.planner.plan.build import Change, Plan
from mergeplan.planner.plan.stages import AuditStage
from mergeplan.planner.state.store import StateStore


def ask_new_audits(stage: AuditStage, layout: Layout, context: ApplyContext) -> tuple[Failure, ...]:
    """Run the new audits of kept tables that have no recorded pass; return failures for blocking ones that found rows.

    A merge has the same audits of the same tables as its pull request, so it runs none.
    """
    store, options, failures = context.store, context.audit_options(layout), list[Failure]()
    for kept in stage.tables:
        snapshot = kept.snapshot
        timeline = store.intervals.load_timelines([snapshot.table])[snapshot.table]
        if subtract_intervals(kept.needed, timeline) or not (timeline or snapshot.kind.is_view):
            continue  # what fills the table runs them
        loaded_time = Interval((kept.needed or timeline)[0].start, timeline[-1].end) if timeline else None
        for call in kept.calls:
            # Prod writes a table that it shows without the new audit: a pass is of the rows of that time alone.
            seen_time = [str(loaded_time)] if loaded_time and not kept.needed else []
            audit_digest = digest(encode_text(call), *seen_time)
            if not is_enabled(call, options.audits) or audit_digest in store.passed_audits.names_for(snapshot.table):
                continue
            with locate_query_errors(snapshot.model):
                result = run_audit(context.engine, snapshot.model, call, snapshot.table, loaded_time, options)
            context.emit(AuditRan(snapshot.name, result))
            if not result.ok and result.blocking:
                failures.append(audit_failure(snapshot.model, result))
            else:
                store.passed_audits.record(snapshot.table, audit_digest)
    return tuple(failures)


def remember_asked(plan: Plan, store: StateStore) -> None:
    """Record the audits of tables that this plan filled whole, batch by batch, as passed."""
    for change in plan.changes:
        is_filled = change.missing or (change.kind.is_view and change.shares is None)
        if change.new is None or not is_filled or subtract_intervals(change.audited, change.missing):
            continue
        calls = change.new.model.checks.audits
        for call in calls if calls and _is_whole(change, store) else ():
            store.passed_audits.record(change.new.table, digest(encode_text(call)))


def _is_whole(change: Change, store: StateStore) -> bool:
    assert change.new is not None
    return not subtract_intervals(change.needed, store.intervals.load_timelines([change.new.table])[change.new.table])
