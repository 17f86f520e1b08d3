"""Conversion of a plan to the contract's objects."""

from collections.abc import Mapping
from dataclasses import replace

from mergeplan.planner.contract import plan as rows
from mergeplan.planner.contract.base import Span, Spans
from mergeplan.planner.contract.from_errors import split_place
from mergeplan.planner.contract.result import DiffRow
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.category.override import end_of
from mergeplan.planner.plan.change import Blocker, Change, Override
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.plan.refused import RefusedFile


def plan_view(plan: Plan, estimates: Mapping[str, Estimate]) -> rows.PlanView:
    return rows.PlanView(
        id=plan.id,
        digest=plan.digest,
        environment=plan.environment,
        base=plan.base,
        virtual=plan.is_virtual,
        empty=plan.is_empty,
        models=tuple(_model_change(plan, change, estimates.get(change.name, Estimate())) for change in plan.changes),
        exposures=tuple(
            rows.ExposureRow.model_validate(replace(hit.exposure, models=hit.models)) for hit in plan.exposures
        ),
        views=rows.ViewNames(
            added=tuple(view.name for view in plan.views.added),
            swapped=tuple(view.name for view in plan.views.swapped),
            dropped=tuple(view.name for view in plan.views.dropped),
        ),
        comparisons=tuple(map(rows.TableComparison.model_validate, plan.comparisons)),
        blockers=tuple(map(_build_remark, plan.blockers)),
        warnings=tuple(map(_build_remark, plan.warnings)),
        overrides=tuple(map(_override_row, plan.overrides)),
        unused_overrides=tuple(
            _override_row(override, end_of(override, plan.changes)) for override in plan.unused_overrides
        ),
        refused=tuple(map(_refusal_row, plan.unopened.refused)),
        left_out=tuple(
            rows.LeftOutRow(model=name, reason=f"It reads `{read}`, which cannot be opened.")
            for name, read in plan.unopened.left_out.items()
        ),
        not_selected=plan.not_selected,
        restatement=rows.RestatementView(
            left_out=tuple(map(rows.LeftOutRow.model_validate, plan.restatement.left_out)),
            environments=tuple(map(rows.TouchedEnvironment.model_validate, plan.restatement.touched)),
        )
        if plan.restatement
        else None,
    )


def final_plan_view(
    shown_plan: rows.PlanView, plan: Plan, estimates: Mapping[str, Estimate], copied_spans: Mapping[str, Spans]
) -> rows.PlanView:
    """Return a plan in its final form, under the id of the plan that was shown.

    It contains the time that was computed, which is no longer missing. Models that were skipped, because their inputs
    hold the same rows, have none.
    """
    shown_intervals = {model.name: model.intervals for model in shown_plan.models}
    final = plan_view(plan, estimates)
    models = (
        model.model_copy(
            update={
                "intervals": () if model.skipped else shown_intervals.get(model.name, model.intervals),
                "copies": copied_spans.get(model.name, ()),
            }
        )
        for model in final.models
    )
    shown_fields = {
        "id": shown_plan.id,
        "virtual": shown_plan.virtual,
        "empty": shown_plan.empty,
        "planned_digest": shown_plan.digest,
    }
    return final.model_copy(update={**shown_fields, "models": tuple(models)})


def diff_row(model: rows.ModelChange) -> DiffRow:
    return DiffRow(**{key: getattr(model, key) for key in DiffRow.model_fields})


def format_span(interval: Interval) -> Span:
    """Return a half-open interval, as days if it is made of whole days."""
    is_of_days = interval.start.time() == interval.end.time() == interval.start.min.time()
    form = "%Y-%m-%d" if is_of_days else "%Y-%m-%dT%H:%M:%SZ"
    return interval.start.strftime(form), interval.end.strftime(form)


def format_spans(timeline: Timeline) -> Spans:
    return tuple(format_span(interval) for interval in timeline)


def _model_change(plan: Plan, change: Change, estimate: Estimate) -> rows.ModelChange:
    shown, check = change.new or change.old, plan.checks.get(change.name)
    assert shown is not None
    costs = {"statistics": estimate.bytes, "batches": estimate.seconds}
    basis = tuple(name for name, cost in costs.items() if cost is not None)
    seconds = round(estimate.seconds or 0, 3)
    check = plan.checks.get(change.name)
    return rows.ModelChange(
        name=change.name,
        kind=str(change.kind),
        path=shown.model.path,
        line=shown.model.line,
        owner=shown.model.metadata.owner,
        tags=tuple(dict.fromkeys(tag for side in (change.new, change.old) if side for tag in side.model.metadata.tags)),
        change=str(change.change),
        category=str(change.category) if change.category else None,
        rule=change.rule,
        reason=change.reason,
        columns=_column_changes(change),
        recomputed=change.recomputed,
        skipped=change.name in plan.spared,
        table=shown.table,
        shares=change.shares,
        intervals=format_spans(change.missing),
        copies=format_spans(change.copies),
        needed=format_spans(change.needed),
        recorded=format_spans(change.recorded),
        first_load=change.is_first_load,
        lost=format_spans(change.lost),
        preview=change.preview,
        keeps=format_spans(change.forward.rows) if change.forward else (),
        estimate=rows.CostEstimate(bytes=estimate.bytes or 0, rows=estimate.rows or 0, seconds=seconds, basis=basis),
        parents=tuple(plan.parents.get(change.name, ())),
        diff=change.diff,
        override=_override_row(change.override) if change.override else None,
        checked=rows.SparkCheck(state=check.state.value, detail=check.detail) if check else None,
    )


def _refusal_row(file: RefusedFile) -> rows.RefusedRow:
    path, line, _ = split_place(file.place)
    return rows.RefusedRow(models=file.models, path=path, line=line, message=file.sentence, deployed=file.stands)


def _column_changes(change: Change) -> rows.ColumnChanges:
    """Return the columns that a change touches; where rows change, by the names in both versions, if they are known."""
    columns = change.columns
    if columns.every and change.old and change.new:
        old, new = ({name.lower(): name for name in side.columns or ()} for side in (change.old, change.new))
        if old and new:
            columns = replace(
                columns,
                added=frozenset(name for key, name in new.items() if key not in old),
                removed=frozenset(name for key, name in old.items() if key not in new),
            )
    return rows.ColumnChanges(
        added=tuple(sorted(columns.added)),
        altered=tuple(sorted(columns.altered)),
        removed=tuple(sorted(columns.removed)),
        every=columns.every,
        lost_readers=change.lost_readers,
    )


def _build_remark(blocker: Blocker) -> rows.Remark:
    path, line, _ = split_place(blocker.place)
    return rows.Remark(message=blocker.message, path=path, line=line)


def _override_row(override: Override, ended_by: str = "") -> rows.OverrideRow:
    at, days = override.at.isoformat() if override.at else None, override.restates
    bounds = (moment.isoformat() if moment else "" for moment in (days.start, days.end)) if days else ()
    return rows.OverrideRow(
        model=override.model,
        category=str(override.category),
        who=override.who,
        at=at,
        ended_by=ended_by,
        restates="..".join(bounds),
    )
