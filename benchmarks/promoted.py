"""Puts a project into prod in the state alone, as if all its tables had been computed: for timing what follows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mergeplan.planner.plan.build import Plan
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.settings import settings_of
from mergeplan.planner.session.use_cases.planning import check_request, make_plan
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.state.environments import Cause


def promote(root: Path) -> None:
    """Record every table of the project in this folder as built, and promote them to prod."""
    work = Workspace(settings_of(os.environ, root))
    try:
        promote_plan(work, make_plan(work, check_request(work, PlanOptions()), work.project.models))
    finally:
        work.close()


def promote_plan(work: Workspace, plan: Plan) -> None:
    """Record the tables of a plan as built, and promote them to prod."""
    store = work.store
    with store.leases.hold("prod", "benchmark") as lease:
        for change in plan.changes:
            if change.new is not None:
                store.tables.register(change.new.table, ())
                for interval in change.missing:
                    store.intervals.record(change.new.table, interval, lease=lease)
        entry = store.promotions.begin(lease, plan.old, plan.new, Cause(plan.id))
        store.promotions.finish(lease, entry)


if __name__ == "__main__":
    promote(Path(sys.argv[1]))
