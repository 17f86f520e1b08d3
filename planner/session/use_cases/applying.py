"""Carrying a plan out: what plans and runs have in common."""

from collections.abc import Callable
from dataclasses import dataclass

from mergeplan.planner.apply.executor import ApplyOptions
from mergeplan.planner.apply.executor import apply as apply_plan
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.checks.remembered_tests import spark_settings
from mergeplan.planner.parsing.files.environments import replaces_views
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.session.openlineage import report_openlineage
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.state.leases import Lease


@dataclass(frozen=True)
class Record:
    who: str = ""
    note: str = ""


def execute_plan(
    work: Workspace,
    plan: Plan,
    lease: Lease,
    record: Record,
    *,
    complete: bool = True,
    replan: Callable[[], Plan] | None = None,
) -> Outcome:
    """Execute the plan and report it to OpenLineage; see `mergeplan.planner.apply.executor.apply`."""
    with report_openlineage(work, plan) as reported:
        reported.outcome = apply_plan(
            plan, work.project, work.engine, work.store, lease,
            ApplyOptions(
                work.now, reported.event, record.who, record.note,
                complete=complete, replaces=_can_replace(work, plan), check=work.cancellation.check, replan=replan,
                spark=spark_settings(work.connection) or "",
            ),
        )  # fmt: skip
    return reported.outcome


def _can_replace(work: Workspace, plan: Plan) -> bool:
    """Return True if views of others are replaced; an adoption has shown them beforehand."""
    adopts = any(change.adopts for change in plan.changes)
    return adopts or replaces_views(work.project.config, plan.environment)
