"""The checks before an agent applies a plan: whose tables it writes, and how many."""

import re
from dataclasses import dataclass

from mergeplan.planner.api.context import ApiContext
from mergeplan.planner.api.jobs.job import JobKind, JobStatus
from mergeplan.planner.api.problems import Conflict
from mergeplan.planner.contract.from_plan import plan_view
from mergeplan.planner.contract.plan import PlanView
from mergeplan.planner.errors import Refused, RequestError
from mergeplan.planner.session.use_cases.plan import rebuild_plan
from mergeplan.planner.session.use_cases.planning import load_request
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.wording import first_names

PLAN_ID = re.compile(r"[0-9a-f]{1,64}")
SHOWN = 5  # names in a sentence
TO_PROD = "An agent cannot change prod: it can only open a pull request, where people approve what it does."


@dataclass(frozen=True)
class Applicable:
    """A stored plan that an agent may apply, as far as its environment and its size go."""

    plan_id: str
    environment: str
    tables: int  # that it computes

    @property
    def question(self) -> str:
        """The question to a person about the plan."""
        tables = "1 table" if self.tables == 1 else f"{self.tables} tables"
        return f"Apply the plan `{self.plan_id}` to the environment `{self.environment}`? It computes {tables}."


def check_plan(context: ApiContext, plan_id: str, most: int) -> Applicable:
    """Return the plan, rebuilt; raise Refused if an agent may not apply it.

    Refused are a plan of prod, a restatement, a blocked plan, a plan that writes tables of prod, and one of more tables
    than `most`. Raise PlanMoved if it comes out differently now, and RequestError if there is none.
    """
    if not PLAN_ID.fullmatch(plan_id):
        raise RequestError(f"`{plan_id[:50]}` is no id of a plan.", hint="`job` has it as `plan_id`.")
    context.reader.expire()
    with context.reader.open_state() as work:
        saved = work.store.plans.get(plan_id)
        if saved.environment == PROD:
            raise Refused(TO_PROD, hint="Commit the change to a branch and open a pull request.")
        if load_request(work, plan_id).restate:
            message = "An agent applies no restatement: it writes tables that other environments show."
            raise Refused(message, hint="A person applies it with `mergeplan apply`.")
        shown_by_prod = {snapshot.table for snapshot in work.store.environments.get(PROD).snapshots.values()}
    view = _find_plan_view(context, plan_id)
    if view.blockers:
        raise Refused(f"The plan is blocked: {view.blockers[0].message}")
    if view.empty:
        raise Conflict("The plan has nothing to apply.")
    computed = [model for model in view.models if model.intervals]
    if names := [f"`{model.name}`" for model in computed if model.table in shown_by_prod]:
        message = f"The plan computes tables that prod shows: {first_names(names, SHOWN)}."
        raise Refused(f"{message} {TO_PROD}", hint="`mergeplan run` computes what is due in prod.")
    if len(computed) > most:
        message = f"The plan computes {len(computed)} tables, and an agent may compute {most} at most."
        raise Refused(message, hint="Plan fewer models with `select`, or let a person apply it.")
    context.jobs.check_apply(plan_id)
    return Applicable(plan_id, saved.environment, len(computed))


def _find_plan_view(context: ApiContext, plan_id: str) -> PlanView:
    """Return the plan as it is now, or as recorded if that needs Spark: its job makes it again and applies no other."""
    with context.reader.open() as work:
        try:
            return plan_view(rebuild_plan(work, plan_id)[0], {})
        except RequestError as error:
            if "needs Spark" not in error.message:
                raise
    for record in context.jobs.list([JobKind.PLAN]):
        if record.status is JobStatus.DONE and (view := context.jobs.view(record)).plan and view.plan.id == plan_id:
            return view.plan
    raise Refused(
        f"The tables that `{plan_id}` computes are not known without Spark.", hint="Make the plan with `make_plan`."
    )
