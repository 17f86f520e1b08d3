"""Audits of external tables, which run before the models that read them are computed."""

from __future__ import annotations

from collections.abc import Collection

from mergeplan.planner.apply.backfill.layout import Layout, locate_query_errors
from mergeplan.planner.apply.backfill.work import Failure, audit_failure
from mergeplan.planner.apply.context import ApplyContext
from mergeplan.planner.apply.events import AuditRan, ModelFailed
from mergeplan.planner.checks.audits import run_audits
from mergeplan.planner.model.graph import graph_of


def audit_external_tables(names: Collection[str], layout: Layout, context: ApplyContext) -> tuple[Failure, ...]:
    """Run the audits of the external models upstream of these; return failures for blocking ones that found rows.

    External tables may change at any time, so the audits run before each computation.
    """
    graph = graph_of({name: snapshot.model for name, snapshot in layout.snapshots.items()})
    options = context.audit_options(layout)
    failures = []
    for name in sorted(graph.upstream(names)):
        snapshot = layout.snapshots[name]
        if not snapshot.kind.is_external:
            continue
        with locate_query_errors(snapshot.model):
            for result in run_audits(context.engine, snapshot, None, options):
                context.emit(AuditRan(name, result))
                if not result.ok and result.blocking:
                    failures.append(audit_failure(snapshot.model, result))
                    context.emit(ModelFailed(name, str(failures[-1].error)))
                    break
    return tuple(failures)
