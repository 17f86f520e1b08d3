"""audit: the audits of an environment's models, and the standalone ones, on what its tables hold now."""

from collections.abc import Collection, Iterator

from mergeplan.planner.apply.audits.record_results import audit_record
from mergeplan.planner.apply.audits.reuse import AuditReuse, run_kept_audits
from mergeplan.planner.apply.events import AuditRan
from mergeplan.planner.checks.audits import AuditContext, AuditResult, run_audits
from mergeplan.planner.checks.diff.masking import parse_samples
from mergeplan.planner.checks.remembered_tests import spark_settings
from mergeplan.planner.checks.standalone import run_standalone
from mergeplan.planner.errors import RequestError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.plan.schedule import ONCE
from mergeplan.planner.session.events import Warned
from mergeplan.planner.session.moments import parse_moment
from mergeplan.planner.session.options import AuditOptions
from mergeplan.planner.session.use_cases.git_changes import select_by_request
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.passed.audit_results import LISTED, RecordedAudit


def stream_audits(work: Workspace, environment: Environment, audit_options: AuditOptions) -> Iterator[AuditResult]:
    records = True
    for result in _run_selected_audits(work, environment, audit_options):
        if not result.unchanged:
            records = records and _record_result(work, environment, result)
        work.on_event(AuditRan(result.model, result))
        yield result
        work.cancellation.check()


def _record_result(work: Workspace, environment: Environment, result: AuditResult) -> bool:
    """Record a result; return False if the state cannot be written, as by a reader. The audits run all the same."""
    try:
        work.store.audit_results.record([audit_record(environment.name, result.model, result)])
    except RequestError as error:
        work.on_event(Warned(f"The results are not kept: {error.message}"))
        return False
    return True


def audit_history(
    work: Workspace, environment: Environment, selectors: Collection[str] = (), limit: int = LISTED
) -> tuple[RecordedAudit, ...]:
    """Return an environment's audit results of three months, newest first, without selectors also standalone ones."""
    models = _select_models(work, environment, selectors) if selectors else None
    return work.store.audit_results.load(models, environment=environment.name, limit=limit)


def _select_models(work: Workspace, environment: Environment, selectors: Collection[str]) -> frozenset[str]:
    shown = {name: snapshot.model for name, snapshot in environment.snapshots.items()}
    return select_by_request(work.project, selectors, graph_of({**shown, **work.project.models}))


def _run_selected_audits(
    work: Workspace, environment: Environment, audit_options: AuditOptions
) -> Iterator[AuditResult]:
    since = parse_moment(audit_options.start, work.now) or ONCE[0].start
    until = parse_moment(audit_options.end, work.now, end=True) or work.now
    if since >= until:
        raise RequestError("The end does not come after the start.")
    project, time = work.project, Interval(since, until)
    chosen = frozenset(environment.snapshots)
    if audit_options.select:
        chosen = select_by_request(project, audit_options.select)
    tables = {n: s.table for n, s in environment.snapshots.items() if not s.kind.is_embedded}
    embedded = {n: s.model for n, s in environment.snapshots.items() if s.kind.is_embedded}
    show = parse_samples(audit_options.samples) or project.config.audits.show_samples
    options = AuditContext(project.audits, tables, embedded, work.now, show)
    reuse = _make_reuse(work, environment) if audit_options.skip_unchanged else None
    for name, snapshot in sorted(environment.snapshots.items()):
        if name in chosen and (snapshot.kind.has_view or snapshot.kind.is_external):
            if reuse is not None:
                yield from run_kept_audits(snapshot, time, options, reuse)
            else:
                yield from run_audits(work.engine, snapshot, time, options)
    project_names = project.models.keys() | project.refused.names
    for audit in project.standalone:
        is_runnable = all(name in environment.snapshots or name not in project_names for name in audit.depends_on)
        if is_runnable and not audit.skip and (not audit_options.select or chosen & set(audit.depends_on)):
            yield run_standalone(work.engine, audit, time, work.now, options)


def _make_reuse(work: Workspace, environment: Environment) -> AuditReuse:
    stored_tables = {snapshot.table for snapshot in environment.snapshots.values() if snapshot.kind.is_stored}
    return AuditReuse(work.store, work.engine, stored_tables, spark_settings(work.connection) or "")
