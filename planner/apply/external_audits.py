"""Audits of tables that others write: asked before what reads them is computed."""

from __future__ import annotations

from collections.abc import Collection

from planner.apply.backfill import Failure, found_rows
from planner.apply.create_tables import Layout, at_model
from planner.apply.events import AuditRan, Emit, ModelFailed
from planner.checks.audits import AuditOptions, run_audits
from planner.engine.protocol import Engine
from planner.model.graph import graph_of
from planner.model.model import Kind
from planner.project.loader import Project


def ask_outside(
    names: Collection[str], layout: Layout, engine: Engine, project: Project, emit: Emit
) -> tuple[Failure, ...]:
    """Run the audits of the external models that these models read, directly or not; the blocking ones that found rows.

    What others write may change at any time, so that each computation asks anew.
    """
    graph = graph_of({name: snapshot.model for name, snapshot in layout.snapshots.items()})
    show = project.config.audits.show_samples
    options = AuditOptions(project.audits, layout.tables, layout.embedded, layout.now, show)
    failures = []
    for name in sorted(graph.upstream(names)):
        snapshot = layout.snapshots[name]
        if snapshot.kind is not Kind.EXTERNAL:
            continue
        with at_model(snapshot.model):
            for result in run_audits(engine, snapshot, None, options):
                emit(AuditRan(name, result))
                if not result.ok and result.blocking:
                    failures.append(found_rows(snapshot.model, result))
                    emit(ModelFailed(name, str(failures[-1].error)))
                    break
    return tuple(failures)
