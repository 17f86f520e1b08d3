"""Standalone audits of a plan or a run: select those that are due, with their interval, and run them.

An audit runs when a table that it reads was written, and otherwise once for each set of tables. So a merge, which shows
the tables of its pull request, runs none of them again. In a run an audit waits for the ticks of its own cron.
"""

from collections.abc import Collection, Mapping

from mergeplan.planner.apply.backfill.layout import Layout
from mergeplan.planner.apply.backfill.work import Failure
from mergeplan.planner.apply.context import ApplyContext
from mergeplan.planner.apply.events import AuditRan
from mergeplan.planner.checks.standalone import dates_interval, is_due, read_by, run_standalone
from mergeplan.planner.errors import AuditFailed, ProjectError, QueryError
from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.intervals import Timeline, merge_intervals
from mergeplan.planner.model.model import Audit
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import ChangeKind
from mergeplan.planner.project.loader import Project
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.store import StateStore


def ask_standalone(plan: Plan, first: Plan, layout: Layout, context: ApplyContext) -> tuple[Failure, ...]:
    """Run the standalone audits that are due for the plan; return failures.

    These are the blocking audits that found rows, and audits that cannot run. `first` is the plan before anything was
    written: later no table lacks rows, and models may be skipped.
    """
    project, store, failures = context.project, context.store, list[Failure]()
    model_names = project.models.keys() | project.refused.names
    options = context.audit_options(layout)
    for audit in project.standalone:
        tables = _list_tables(audit, plan)
        written = _backfill_time(audit, first)
        if audit.skip or not _is_called_for(audit, plan, written, store, model_names):
            continue
        time = written or merge_intervals(
            interval for timeline in store.intervals.load_timelines(tables).values() for interval in timeline
        )
        try:
            result = run_standalone(context.engine, audit, dates_interval(audit, time), layout.now, options)
        except (QueryError, ProjectError) as error:
            failures.append(Failure(f"the audit {audit.name}", error))
            continue
        context.emit(AuditRan("", result))
        if not result.ok and result.blocking:
            rows = "1 row" if result.count == 1 else f"{result.count} rows"
            message = f"The standalone audit `{audit.name}` found {rows}."
            failures.append(
                Failure(f"the audit {audit.name}", AuditFailed(message, place=audit.place, audit=audit.name), result)
            )
        elif tables:
            store.passed_audits.record(tables[0], _audit_digest(audit, tables, store))
    return tuple(failures)


def forget_standalone(plan: Plan, store: StateStore, project: Project) -> None:
    """Forget the passes of audits whose tables are about to be written, before the first write."""
    for audit in project.standalone:
        tables = _list_tables(audit, plan)
        if tables and _backfill_time(audit, plan):
            store.passed_audits.forget(tables[0], _audit_digest(audit, tables, store))


def tables_behind(audit: Audit, snapshots: Mapping[str, Snapshot], parents: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the sorted physical tables of ours whose rows an audit reads, also through views and embedded models."""
    through = {name: read for name, read in parents.items() if name in snapshots and not snapshots[name].kind.is_stored}
    read = read_by(audit, through)
    return sorted(snapshots[name].table for name in read if name in snapshots and snapshots[name].kind.is_stored)


def _list_tables(audit: Audit, plan: Plan) -> list[str]:
    return tables_behind(audit, plan.new.snapshots, plan.parents)


def _backfill_time(audit: Audit, plan: Plan) -> Timeline:
    """Return the time that the plan writes in the audit's tables, or all that it writes if the audit reads none."""
    tables = _list_tables(audit, plan)
    intervals = [
        interval
        for change in plan.backfills
        if change.new and not change.kind.is_seed and (not tables or change.new.table in tables)
        for interval in change.missing
    ]
    seeds = any(change.new and change.new.table in tables for change in plan.backfills if change.kind.is_seed)
    whole = (
        interval for change in plan.changes if change.new and change.new.table in tables for interval in change.needed
    )
    return merge_intervals(intervals or (whole if seeds else ()))


def _is_called_for(audit: Audit, plan: Plan, written_time: Timeline, store: StateStore, ours: Collection[str]) -> bool:
    if any(name in ours and name not in plan.new.snapshots for name in audit.depends_on):
        return False  # a run of an environment that does not have these models yet
    tables = _list_tables(audit, plan)
    if any(change.change is ChangeKind.DUE for change in plan.changes):
        return is_due(audit, written_time)
    if written_time or not tables:
        return True
    return _audit_digest(audit, tables, store) not in store.passed_audits.names_for(tables[0])


def _audit_digest(audit: Audit, tables: list[str], store: StateStore) -> str:
    # Runs of prod write these tables without an audit that only a pull request has: a pass is of the time they hold.
    timelines = store.intervals.load_timelines(tables)
    loaded_time = (f"{table} {interval}" for table in tables for interval in timelines[table])
    return digest(
        "standalone", audit.sql + audit.misread, encode_text(audit.defaults), str(audit.blocking), *tables, *loaded_time
    )
