"""A plan and any other job as pages. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from mergeplan.planner.api.jobs.job import JobKind, JobRecord, JobStatus
from mergeplan.planner.api.jobs.results import CheckResult
from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.contract.lines import AuditLine
from mergeplan.planner.contract.plan import ModelChange, PlanView
from mergeplan.planner.site.progress import ModelProgress
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.state.passed.audit_results import RecordedAudit
from mergeplan.planner.ui.catalog_pages import AuditResultRow, RunRow
from mergeplan.planner.ui.job_facts import EVENT_NAMES, JobFacts, error_sentence
from mergeplan.planner.ui.render import Frame, format_when, render
from mergeplan.planner.wording import count_noun, duration_text, size_text

REFRESH_SECONDS = 3  # without JavaScript
SEVERE = ("breaking", "undecided", "indirect_breaking", "forward_only", "non_breaking", "indirect_non_breaking")
TITLES: Mapping[JobKind, str] = {
    JobKind.PLAN: "Plan of {environment}",
    JobKind.RESTATEMENT: "Restatement of {environment}",
    JobKind.APPLY: "Apply to {environment}",
    JobKind.RUN: "Run of {environment}",
    JobKind.ROLLBACK: "Rollback of {environment}",
    JobKind.INVALIDATE: "Drop {environment}",
    JobKind.AUDIT: "Audits of {environment}",
    JobKind.TEST: "Unit tests",
    JobKind.TABLE_DIFF: "Table diff",
    JobKind.DATA_DIFF: "Data diff of {environment}",
    JobKind.PHYSICAL_PLAN: "Physical plans of {environment}",
    JobKind.EVALUATION: "Rows of a query",
}


@dataclass(frozen=True)
class JobRow:
    id: str
    what: str
    state: str
    at: str
    address: str


@dataclass(frozen=True)
class ShownJob:
    record: JobRecord
    facts: JobFacts
    may_cancel: bool = False
    may_apply: bool = False
    may_categorize: bool = False
    events: str = ""  # the address of what follows it, '' where nothing does
    origin: tuple[str, str] = ("", "")  # what it was made for: the words, and the address


def job_title(record: JobRecord) -> str:
    environment = f"`{record.environment}`" if record.environment else "the default environment"
    return TITLES[record.kind].format(environment=environment)


def job_row(record: JobRecord) -> JobRow:
    at = format_when(record.created_at)
    return JobRow(record.id, job_title(record).replace("`", ""), str(record.status), at, f"/jobs/{record.id}")


def audit_row(record: JobRecord, audit: AuditLine) -> AuditResultRow:
    at = format_when(record.ended_at or record.created_at)
    return AuditResultRow(audit.name, audit.model, audit.ok, audit.count, at, sample=audit.sample)


def check_row(result: CheckResult) -> AuditResultRow:
    environment = f" in {result.environment}" if result.environment else ""
    at, job = format_when(result.at), f"/jobs/{result.job}"
    return AuditResultRow(result.name, result.model, result.ok, result.count, f"{at}{environment}", job=job)


def recorded_row(result: RecordedAudit) -> AuditResultRow:
    at = result.at.isoformat() if result.at else None
    environment = f" in {result.environment}" if result.environment else ""
    return AuditResultRow(result.audit, result.model, not result.rows, result.rows, f"{format_when(at)}{environment}")


def run_row(record: JobRecord, progress: ModelProgress) -> RunRow:
    at = format_when(record.started_at or record.created_at)
    title = job_title(record).replace("`", "")
    return RunRow(title, f"/jobs/{record.id}", progress.step, progress.rows, progress.seconds, at)


def job_page(catalog: Catalog, frame: Frame, job: ShownJob) -> str:
    record, facts = job.record, job.facts
    values = {
        "what": job_title(record),
        "begun": format_when(record.started_at) if record.started_at else "",
        "ended": format_when(record.ended_at) if record.ended_at else "",
        "tests": facts.tests,
        "audits": tuple(audit_row(record, audit) for audit in facts.audits),
        "violations": facts.violations,
        "differences": facts.differences,
        "physical_plan": (facts.result.physical_plan if facts.result else None) or (),
        "done": {
            JobStatus.DONE: "Done.",
            JobStatus.CANCELLED: "It was cancelled: what is recorded stays recorded.",
            JobStatus.INTERRUPTED: "Its process ended without a result: the same request goes on from there.",
        }.get(record.status, ""),
    }
    return _render_page("job.html", catalog, frame, job, values)


def plan_page(catalog: Catalog, frame: Frame, job: ShownJob, applies: Iterable[JobRecord] = ()) -> str:
    """Return a plan's page: what changes, why, what is computed, the diffs, the forms for categories and applying."""
    record, facts, plan = job.record, job.facts, job.facts.plan
    values = {
        "plan": plan,
        "environment": plan.environment if plan else record.environment or PROD,
        "headline": _plan_headline(plan) if plan else "",
        "costs": _plan_cost_text(plan) if plan else "",
        "groups": _group_by_category(plan) if plan else (),
        "diffs": tuple(model for model in plan.models if model.diff) if plan else (),
        "choosable": _choosable_models(plan) if plan and job.may_categorize else frozenset(),
        "may_apply": job.may_apply,
        "applies": tuple(map(job_row, applies)),
        "tests": tuple(test for test in facts.tests if not test.ok),
        "violations": facts.violations,
        "prod": PROD,
        "origin": job.origin,
    }
    return _render_page("plan.html", catalog, frame, job, values)


def may_apply_plan(record: JobRecord, plan: PlanView | None) -> bool:
    """Return True for a plan that is complete, not empty and not blocked."""
    return record.status is JobStatus.DONE and plan is not None and not plan.empty and not plan.blockers


def _render_page(template: str, catalog: Catalog, frame: Frame, job: ShownJob, values: Mapping[str, object]) -> str:
    record, facts = job.record, job.facts
    is_live = not record.status.is_final
    common: dict[str, object] = {
        "id": record.id,
        "here": "Plans",
        "state": str(record.status),
        "facts": facts,
        "progress": _shows_progress(job),
        "error": " ".join(map(error_sentence, facts.errors)),
        "events": job.events if is_live else "",
        "event_names": " ".join(EVENT_NAMES),
        "refresh": REFRESH_SECONDS if is_live else 0,
        "may_cancel": job.may_cancel and is_live,
        "is_cancelled": record.cancelled,
        "catalog": catalog,
    }
    return render(template, frame, **(common | dict(values)))


def _shows_progress(job: ShownJob) -> bool:
    """Return True for a job that runs, and for one that has computed something."""
    status, kind = job.record.status, job.record.kind
    if not status.is_final:
        return status is JobStatus.RUNNING
    return kind in (JobKind.APPLY, JobKind.RUN) and bool(job.facts.progress.models)


def _plan_headline(plan: PlanView) -> str:
    if plan.empty:
        return f"No changes to plan: the project matches the `{plan.environment}` environment"
    if plan.restatement is not None:
        return f"Restatement of `{plan.environment}`"
    changed = count_noun(len(plan.models), "model")
    return f"Plan of `{plan.environment}`: {changed} against `{plan.base}`"


def _group_by_category(plan: PlanView) -> tuple[tuple[str, tuple[ModelChange, ...]], ...]:
    groups: dict[str, list[ModelChange]] = {}
    for model in plan.models:
        groups.setdefault(str(model.category or model.change), []).append(model)
    order = {category: number for number, category in enumerate(SEVERE)}
    return tuple((name, tuple(groups[name])) for name in sorted(groups, key=lambda c: (order.get(c, len(order)), c)))


def _choosable_models(plan: PlanView) -> Collection[str]:
    return frozenset(model.name for model in plan.models if model.change == "direct" and model.category)


def _plan_cost_text(plan: PlanView) -> str:
    read = sum(model.estimate.bytes for model in plan.models)
    seconds = sum(model.estimate.seconds for model in plan.models)
    parts = [f"about {size_text(read)} read" if read else "", f"about {duration_text(seconds)}" if seconds else ""]
    return ", ".join(filter(None, parts))
