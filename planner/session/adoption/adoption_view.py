"""Tables that are adopted as the contract shows them."""

from mergeplan.planner.contract.adoption import AdoptedTable, AdoptionView
from mergeplan.planner.contract.from_errors import split_place
from mergeplan.planner.contract.from_plan import format_spans
from mergeplan.planner.contract.plan import RefusedRow
from mergeplan.planner.project.refused import Refusal
from mergeplan.planner.session.adoption.adopting import Adopting, Survey
from mergeplan.planner.session.adoption.adoption_checks import Checked


def survey_view(survey: Survey) -> AdoptionView:
    return AdoptionView(
        opened=survey.opened,
        refused=tuple(map(_refusal_row, survey.refused)),
        deployed=survey.deployed,
        without=survey.without,
        tables=tuple(_build_table_row(candidate) for candidate in survey.candidates),
    )


def adoption_view(preparation: Adopting) -> AdoptionView:
    plan = preparation.plan
    versions = {c.name: c.new.table for c in plan.changes if c.new and c.adopts} if plan else {}
    moved = {move.old: move.new for move in preparation.moves}
    tables = tuple(
        _build_table_row(check).model_copy(
            update={
                "left": format_spans(preparation.left.get(check.declared.model, ())),
                "moved_to": moved.get(check.declared.table),
                "version": versions.get(check.declared.model, ""),
            }
        )
        for check in preparation.checked
    )
    return AdoptionView(plan_id=plan.id if plan else "", tables=tables, replaced=preparation.replaced)


def _build_table_row(check: Checked) -> AdoptedTable:
    return AdoptedTable(
        model=check.declared.model,
        table=check.declared.table,
        fits=not check.problems,
        problems=check.problems,
        notes=check.notes,
        copies=check.copies,
        rows=check.rows,
        holds=format_spans(check.held),
    )


def _refusal_row(refusal: Refusal) -> RefusedRow:
    first = refusal.errors[0]
    path, line, _ = split_place(first.place)
    message = f"{first.message} {first.hint}".strip()
    return RefusedRow(models=refusal.models, path=path or refusal.path, line=line, message=message)
