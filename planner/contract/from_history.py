"""Conversion of revisions, rollbacks, recorded audits and the freshness of tables to the contract's objects."""

from mergeplan.planner.apply.promotion.rollback import Behind, RollbackPlan
from mergeplan.planner.checks.freshness import FreshnessResult
from mergeplan.planner.contract.from_plan import format_spans
from mergeplan.planner.contract.history import AuditHistoryRow, BehindRow, MovedViewRow, RevisionRow, RollbackView
from mergeplan.planner.contract.result import EnvironmentRow
from mergeplan.planner.contract.schedule import FreshnessRow, freshness_limits
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.environments import Revision
from mergeplan.planner.state.passed.audit_results import RecordedAudit


def revision_row(row: Revision) -> RevisionRow:
    return RevisionRow(
        revision=row.revision,
        action=str(row.action),
        plan_id=row.plan_id,
        at=row.at.isoformat(),
        models=len(row.snapshots),
        who=row.who,
        note=row.note,
    )


def audit_history_row(result: RecordedAudit) -> AuditHistoryRow:
    return AuditHistoryRow(
        at=result.at.isoformat(timespec="seconds") if result.at else "",
        model=result.model,
        audit=result.audit,
        arguments=dict(result.arguments),
        outcome=result.outcome,
        rows=result.rows,
        start=result.interval.start.isoformat() if result.interval else None,
        end=result.interval.end.isoformat() if result.interval else None,
        table=result.table,
    )


def freshness_row(result: FreshnessResult) -> FreshnessRow:
    return FreshnessRow(
        **freshness_limits(result.freshness).model_dump(),
        model=result.model.name,
        path=result.model.path,
        line=result.model.line,
        owner=result.model.metadata.owner,
        status=result.status.value,
        measured_by=result.measured_by.value,
        newest_at=result.newest_at.isoformat() if result.newest_at else None,
        age_seconds=result.age.total_seconds() if result.age is not None else None,
        message=result.message,
    )


def environment_row(environment: Environment) -> EnvironmentRow:
    return EnvironmentRow(
        name=environment.name,
        revision=environment.revision,
        plan_id=environment.plan_id,
        promoted_at=environment.promoted_at.isoformat() if environment.promoted_at else None,
        models=len(environment.snapshots),
        views=len(environment.views),
        expires_at=environment.expires_at.isoformat() if environment.expires_at else None,
    )


def rollback_view(plan: RollbackPlan) -> RollbackView:
    return RollbackView(
        environment=plan.old.name,
        revision=plan.old.revision,
        target=revision_row(plan.target),
        until=plan.until.isoformat(),
        since=tuple(map(revision_row, plan.since)),
        views=tuple(
            MovedViewRow(model=view.model, view=view.name, before=view.before, after=view.after) for view in plan.views
        ),
        behind=tuple(map(_behind_row, plan.behind)),
        gone=plan.gone,
    )


def _behind_row(behind: Behind) -> BehindRow:
    return BehindRow(
        model=behind.shown.name,
        kind=str(behind.shown.kind),
        table=behind.shown.table,
        held=format_spans(behind.held),
        lacks=format_spans(behind.lacks),
        due=format_spans(behind.due),
    )
