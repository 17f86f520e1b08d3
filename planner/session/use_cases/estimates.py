"""What the backfills of a plan would cost."""

from __future__ import annotations

from collections.abc import Mapping

from mergeplan.planner.apply.backfill.estimate import forecast
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.session.workspace import Workspace


def estimates(work: Workspace, plan: Plan) -> Mapping[str, Estimate]:
    """What the plan's backfills would cost; Spark is asked only when it runs already."""
    return forecast(plan, work.store, work.engine if work.has_engine else None, work.now)
