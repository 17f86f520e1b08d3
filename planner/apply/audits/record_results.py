"""Recording of each audit's result as it is reported."""

from mergeplan.planner.apply.events import AuditRan, Emit, Event
from mergeplan.planner.checks.audits import AuditResult
from mergeplan.planner.state.passed.audit_results import RecordedAudit
from mergeplan.planner.state.store import StateStore


def record_results(store: StateStore, environment: str, emit: Emit) -> Emit:
    def record_and_emit(event: Event) -> None:
        if isinstance(event, AuditRan) and not event.result.unchanged:
            store.audit_results.record([audit_record(environment, event.model, event.result)])
        emit(event)

    return record_and_emit


def audit_record(environment: str, model: str, result: AuditResult) -> RecordedAudit:
    """Return a result as the state stores it: without its query and the failing rows."""
    return RecordedAudit(
        environment, model, result.name, result.table, result.count, result.blocking, result.interval, result.arguments
    )
