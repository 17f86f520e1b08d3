"""Puts a project into prod in the state alone, as if all its tables had been computed: for timing what follows.

python -m benchmarks.promoted FOLDER             no table has columns: Spark cannot check what a plan keeps
python -m benchmarks.promoted FOLDER --columns   a Spark is started once, and finds the columns of all tables
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from mergeplan.planner.apply.witness.questions import Questions
from mergeplan.planner.apply.witness.stand_ins import StandIns
from mergeplan.planner.engine.analysis import Analysis, PairResult
from mergeplan.planner.model.model import Column
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.settings import settings_of
from mergeplan.planner.session.use_cases.planning import check_request, make_plan
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.state.environments import Cause


def promote(root: Path, *, has_columns: bool = False) -> None:
    """Record every table of the project in this folder as built, and promote them to prod."""
    work = Workspace(settings_of(os.environ, root))
    try:
        plan = make_plan(work, check_request(work, PlanOptions()), work.project.models)
        promote_plan(work, plan, find_columns(work, plan) if has_columns else {})
    finally:
        work.close()


def find_columns(work: Workspace, plan: Plan) -> Mapping[str, tuple[Column, ...]]:
    """Return the columns of each model's table, as Spark's analyzer finds them over empty tables."""

    def ask(analysis: Analysis) -> Sequence[PairResult]:
        return work.engine.compare_queries(analysis, may_start=True) or ()

    stand_ins = StandIns(plan, lambda snapshot: snapshot.model.columns if snapshot.kind.is_external else None)
    Questions(stand_ins, ask).check_claims((), also=work.project.models)
    return stand_ins.planned


def promote_plan(work: Workspace, plan: Plan, columns: Mapping[str, tuple[Column, ...]] = MappingProxyType({})) -> None:
    """Record the tables of a plan as built, and promote them to prod."""
    store = work.store
    with store.leases.hold("prod", "benchmark") as lease:
        for change in plan.changes:
            if change.new is not None:
                store.tables.register(change.new.table, columns.get(change.name, ()))
                for interval in change.missing:
                    store.intervals.record(change.new.table, interval, lease=lease)
        entry = store.promotions.begin(lease, plan.old, plan.new, Cause(plan.id))
        store.promotions.finish(lease, entry)


if __name__ == "__main__":
    promote(Path(sys.argv[1]), has_columns="--columns" in sys.argv)
