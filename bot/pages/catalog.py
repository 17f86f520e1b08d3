"""What the bot knows, as the pages of `mergeplan ui` show it: plans of pull requests, and environments. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from mergeplan.bot.records import ProdRecord, PullRecord, PullState
from mergeplan.planner.api.jobs.job import JobKind, JobRecord, JobStatus
from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.contract.lines import ErrorLine
from mergeplan.planner.contract.result import EnvironmentRow
from mergeplan.planner.site.progress import RunProgress
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.ui.catalog_pages import PlanRow
from mergeplan.planner.ui.job_facts import JobFacts
from mergeplan.planner.ui.job_pages import ShownJob
from mergeplan.planner.ui.render import format_when

TABS = (("/", "Catalog"), ("/lineage", "Lineage"), ("/environments", "Environments"), ("/plans", "Plans"))
BEGUN = frozenset({PullState.NEW, PullState.WAITING, PullState.HELD, PullState.SKIPPED})
STATUS: Mapping[PullState, JobStatus] = {
    PullState.PLANNING: JobStatus.RUNNING,
    PullState.FAILED: JobStatus.FAILED,
    PullState.UNPROMOTED: JobStatus.FAILED,
    PullState.CANCELLED: JobStatus.CANCELLED,
}


@dataclass(frozen=True)
class PlanSummary:
    """The summary of a pull request's plan for a list; reading the whole plan takes much longer."""

    id: str
    models: frozenset[str]
    revision: int  # of its environment, 0 where none was promoted


@dataclass(frozen=True)
class PullPlan:
    record: PullRecord
    plan: PlanSummary

    def row(self, base: str) -> PlanRow:
        record, at = self.record, format_when(self.record.run.planned_at)
        address = plan_address(record.number, base)
        return PlanRow(f"#{record.number}", record.environment.name, record.state.value, at, address)

    @property
    def environment(self) -> EnvironmentRow | None:
        if not self.record.environment.exists or not self.plan.revision:
            return None
        return EnvironmentRow(
            name=self.record.environment.name,
            revision=self.plan.revision,
            plan_id=self.plan.id,
            promoted_at=self.record.run.planned_at or None,
            models=len(self.plan.models),
        )


def summarize_plan(record: PullRecord) -> PlanSummary | None:
    outcome = record.outcome
    if outcome is None or outcome.plan is None:
        return None
    revision = outcome.promotion.revision if outcome.promotion else 0
    return PlanSummary(outcome.plan.id, frozenset(model.name for model in outcome.plan.models), revision)


def plan_address(number: int, base: str) -> str:
    return f"{base}/plans/{int(number)}"


def environment_rows(catalog: Catalog, prod: ProdRecord, plans: Iterable[PullPlan]) -> tuple[EnvironmentRow, ...]:
    promoted = catalog.promoted_at if catalog.revision == prod.revision else None
    models = sum(model.deployed is not None for model in catalog.models.values())
    at = promoted.isoformat() if promoted else None
    return (
        EnvironmentRow(name=PROD, revision=prod.revision, plan_id=prod.plan_id, promoted_at=at, models=models),
        *(EnvironmentRow(name=one.environment, revision=one.revision) for one in prod.branches if one.revision),
        *(row for plan in plans if (row := plan.environment)),
    )


def shown_plan(record: PullRecord, progress: RunProgress | None) -> ShownJob:
    """Return a pull request's plan for the page of a plan: read only, with nothing to follow it by."""
    outcome = record.outcome
    is_own = progress is not None and progress.run_id == record.run.id
    job = JobRecord(
        id=str(record.number),
        kind=JobKind.PLAN,
        status=STATUS.get(record.state, JobStatus.WAITING if record.state in BEGUN else JobStatus.DONE),
        environment=record.environment.name,
        plan_id=outcome.plan.id if outcome and outcome.plan else "",
        created_at=record.run.planned_at,
        arguments=(),
    )
    facts = JobFacts(
        progress if progress is not None and is_own else RunProgress(str(record.number)),
        plan=outcome.plan if outcome else None,
        tests=outcome.tests if outcome else (),
        audits=(),
        errors=tuple(
            ErrorLine(
                message=problem.message, path=problem.path, line=problem.line, hint=problem.hint, kind=problem.kind
            )
            for problem in (outcome.problems if outcome else ())
        ),
    )
    address = f"{record.place.site}/pull/{record.number}" if record.place.site.startswith("https://") else ""
    return ShownJob(job, facts, origin=(f"pull request #{record.number}", quote(address, safe=":/")))


def categories_of(record: PullRecord) -> Mapping[str, str]:
    plan = record.outcome.plan if record.outcome else None
    return {model.name: str(model.category or model.change) for model in plan.models} if plan else {}
