"""The objects that every stage of an apply uses."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from mergeplan.planner.apply.backfill.layout import Layout
from mergeplan.planner.apply.events import Emit
from mergeplan.planner.checks.audits import AuditContext
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.project.loader import Project
from mergeplan.planner.state.store import StateStore


@dataclass(frozen=True)
class ApplyContext:
    """The project, the Spark, the state, the emitter of events, and the options that hold for every stage.

    `pool` has a thread for each table that is created, filled or shown at the same time.
    """

    project: Project
    engine: Engine
    store: StateStore
    emit: Emit
    pool: ThreadPoolExecutor
    now: datetime
    holder: str  # of the leases
    check: Callable[[], None] = lambda: None  # raises Cancelled to end the run
    spark: str = ""  # a digest of Spark's settings; '' if they may change unnoticed

    def layout(self, plan: Plan) -> Layout:
        return Layout(plan.new.snapshots, plan.parents, self.now, stored_columns=self.store.tables.columns)

    def audit_options(self, layout: Layout) -> AuditContext:
        samples = self.project.config.audits.show_samples
        return AuditContext(self.project.audits, layout.tables, layout.models_to_embed, layout.now, samples)
