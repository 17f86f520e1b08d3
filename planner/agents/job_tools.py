"""The tools that start jobs, and read them: a job is a separate `mergeplan` process with a journal.

Before an agent applies a plan it is checked whose tables that writes, and how many.
"""

import re
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from mergeplan.planner.agents.answers import dump_row, job_answer, page_rows
from mergeplan.planner.agents.jobs import AgentJobs
from mergeplan.planner.agents.policy import Policy
from mergeplan.planner.api.access import Principal
from mergeplan.planner.api.context import ApiContext
from mergeplan.planner.api.dates import check_dates
from mergeplan.planner.api.jobs import requests
from mergeplan.planner.api.jobs.job import JobKind, JobRecord, JobStatus
from mergeplan.planner.api.jobs.results import read_results
from mergeplan.planner.api.jobs.store import JobRequest
from mergeplan.planner.api.problems import Conflict
from mergeplan.planner.api.routes.environments import check_environment
from mergeplan.planner.api.routes.jobs import cancel_record, find_job, row_of
from mergeplan.planner.contract.from_plan import plan_view
from mergeplan.planner.contract.plan import PlanView
from mergeplan.planner.errors import Refused, RequestError
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.session.use_cases.plan import rebuild_plan
from mergeplan.planner.session.use_cases.planning import load_request
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.wording import first_names

Json = dict[str, Any]
B = TypeVar("B", bound=BaseModel)
LONGEST_WAIT = 30  # seconds for a job to end, in one call
DIFF_DETAILS = ("counts", "sample")
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


@dataclass(frozen=True)
class JobTools:
    """The tools over the jobs of one server; `caller` is the calling principal."""

    settings: SessionSettings
    jobs: AgentJobs
    policy: Policy

    def make_plan(
        self,
        caller: Principal,
        environment: str,
        start: str = "",
        end: str = "",
        select: tuple[str, ...] = (),
        skip_backfill: bool = False,
    ) -> Json:
        """Start a job that plans an environment and keeps the plan; nothing is applied. `job` reads its plan and id.

        `select` plans the changes of these models only: selectors. `start` and `end` are days; with `skip_backfill`
        new tables stay empty.
        """
        body = _parse_body(
            requests.PlanBody,
            environment=environment,
            start=start or None,
            end=end or None,
            select=select,
            skip_backfill=skip_backfill,
        )
        if not body.environment:
            raise RequestError("`environment` is empty.", hint="Name the environment, such as `dev`.")
        check_dates(body.start, body.end)
        return self._submit_job(self._job_requests(caller).plan(body))

    def apply_plan(self, caller: Principal, plan_id: str, note: str = "") -> Json:
        """Start a job that applies a kept plan by its id, to an environment that is not prod.

        To prod an agent can only open a pull request. `note` says why, for the environment's history.
        """
        plan = self.check_apply(caller, plan_id)
        body = _parse_body(requests.ApplyBody, note=note)
        return self._submit_job(self._job_requests(caller).apply(plan.plan_id, plan.environment, body))

    def check_apply(self, caller: Principal, plan_id: str) -> Applicable:
        """Return the plan that `apply_plan` would apply; raise Refused for one that it would not apply."""
        return check_plan(self.jobs.context(), plan_id, self.policy.max_tables(caller))

    def run_audits(
        self, caller: Principal, environment: str, select: tuple[str, ...] = (), start: str = "", end: str = ""
    ) -> Json:
        """Start a job that runs the audits of an environment's models on what its tables hold. No rows are shown."""
        body = _parse_body(
            requests.AuditBody, environment=environment, select=select, start=start or None, end=end or None
        )
        check_dates(body.start, body.end)
        check_environment(self.jobs.context(), body.environment)
        return self._submit_job(self._job_requests(caller).audit(body))

    def run_tests(self, caller: Principal, names: tuple[str, ...] = ()) -> Json:
        """Start a job that runs unit tests: all, or those of these names, models or files."""
        return self._submit_job(self._job_requests(caller).test(_parse_body(requests.TestBody, names=names)))

    def data_diff(
        self, caller: Principal, environment: str, models: tuple[str, ...] = (), detail: str = "counts"
    ) -> Json:
        """Start a job that compares the rows of an environment's changed models with prod's.

        `detail` is `counts`, or `sample` for rows that differ, masked.
        """
        if detail not in DIFF_DETAILS:
            raise RequestError(f"`{detail[:50]}` is no detail.", hint="It is `counts` or `sample`.")
        body = _parse_body(requests.DataDiffBody, environment=environment, models=models, detail=detail)
        check_environment(self.jobs.context(), body.environment)
        return self._submit_job(self._job_requests(caller).data_diff(body))

    def physical_plan(self, caller: Principal, environment: str) -> Json:
        """Start a job that compares Spark's physical plans of an environment's edited queries with prod's."""
        body = _parse_body(requests.PhysicalPlanBody, environment=environment)
        check_environment(self.jobs.context(), body.environment)
        return self._submit_job(self._job_requests(caller).physical_plan(body))

    def job(self, caller: Principal, job_id: str, wait: int = 0, limit: int = 50, offset: int = 0) -> Json:
        """Show a job: status, plan, result, errors, audits and unit tests. Waits up to `wait` seconds (30) for its end.

        `limit` and `offset` page each of its lists; `totals` says how long these are.
        """
        context = self.jobs.context()
        record = self.jobs.wait_for(find_job(context, job_id[:100], caller), max(0, min(wait, LONGEST_WAIT)))
        checks = tuple(read_results(context.jobs, record))
        return job_answer(context.jobs.view(record), checks, limit, offset)

    def jobs_list(self, caller: Principal, kind: str = "", limit: int = 50, offset: int = 0) -> Json:
        """List the jobs that this server keeps, the newest first; `kind` is `plan`, `apply`, `audit`, `test`, ..."""
        if kind and kind not in list(JobKind):
            raise RequestError(f"`{kind[:50]}` is no kind of job.", hint=f"It is one of {', '.join(JobKind)}.")
        records = self.jobs.context().jobs.list([JobKind(kind)] if kind else ())
        return {
            "total": len(records),
            "jobs": [dump_row(row_of(record)) for record in page_rows(records, limit, offset)],
        }

    def cancel(self, caller: Principal, job_id: str) -> Json:
        """Ask a job to end; a promotion that has begun comes to its end."""
        context = self.jobs.context()
        return dump_row(cancel_record(context, find_job(context, job_id[:100], caller), caller))

    def tests(self, caller: Principal, model: str = "", limit: int = 50, offset: int = 0) -> Json:
        """List the unit tests, each with its last result in the jobs that are kept; `model` is a name."""
        context = self.jobs.context()
        last = {result.name: result for result in reversed(context.checks.list("test"))}
        rows = [
            {
                "name": test.name,
                "path": test.path,
                "line": test.line,
                "description": test.description,
                "model": test.model,
                "last": dump_row(last[test.name]) if test.name in last else None,
            }
            for test in context.reader.read().project.tests
            if model in ("", test.model)
        ]
        return {"total": len(rows), "tests": page_rows(rows, limit, offset)}

    def _job_requests(self, caller: Principal) -> requests.Jobs:
        return requests.Jobs(self.settings, f"agent:{caller.name}")

    def _submit_job(self, request: JobRequest) -> Json:
        record: JobRecord = self.jobs.context().submit(request)
        return dump_row(row_of(record))


def _parse_body(kind: type[B], **values: object) -> B:
    """Return a request's body; raise RequestError with the error in it."""
    try:
        return kind(**values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise RequestError(f"`{place}`: {str(first['msg']).rstrip('.')}.") from None


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
