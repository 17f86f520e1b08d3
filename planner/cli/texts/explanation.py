"""A plan explained: why each model is computed or kept, and what applying it would do, step by step."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group
from rich.text import Text
from rich.tree import Tree

from mergeplan.planner.cli.texts.plan_text import stands_already
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Category, Change, ChangeKind, Columns
from mergeplan.planner.plan.early_cutoff import Comparison
from mergeplan.planner.session.wording import TITLES, display_name
from mergeplan.planner.snapshot.snapshot import Snapshot


def explain_plan(plan: Plan) -> Group:
    return Group(*([_decisions_tree(plan)] if plan.changes else []), _steps_tree(plan))


def _decisions_tree(plan: Plan) -> Tree:
    root = Tree(Text("Decisions", style="bold"))
    for change in plan.changes:
        title = TITLES[change.category].partition(":")[0] if change.category else str(change.change).capitalize()
        branch = root.add(Text(f"{display_name(plan, change.name)}: {title}, by the rule `{change.rule}`"))
        for line in _explain_change(plan, change):
            branch.add(Text(line))
    return root


def _explain_change(plan: Plan, change: Change) -> Iterator[str]:
    yield change.reason
    if columns := _column_changes_text(change.columns):
        yield f"Columns: {columns}"
    yield _table_text(change)
    if change.copies:
        copied_time = ", ".join(str(interval) for interval in change.copies)
        reason = "whose rows stay" if change.category is Category.FORWARD_ONLY else "which holds the same rows"
        yield f"Copied from its old table, {reason}: {copied_time}"
    questions = [comparison for comparison in plan.comparisons if comparison.reader == change.name]
    if change.missing and questions:
        yield _wait_condition_text(questions)


def _column_changes_text(columns: Columns) -> str:
    if columns.every:
        return "all, because rows change"
    verbs = (("adds", columns.added), ("alters", columns.altered), ("removes", columns.removed))
    return "; ".join(f"{verb} {', '.join(sorted(names))}" for verb, names in verbs if names)


def _table_text(change: Change) -> str:
    if change.change is ChangeKind.REMOVED:
        return "Table: none; its view goes"
    if not change.kind.is_stored:
        return "Table: none; nothing is computed"
    if change.change is ChangeKind.RESTATED:
        return "Table: the same; each batch takes the place of what it held"
    if stands_already(change):
        return f"Table: the one of `{change.shares}`, which has it already; nothing is computed"
    if change.preview and change.forward:
        return "Table: a preview of its own, never shared and never promoted"
    if change.keeps_rows:
        return "Table: a new one over the files of the one it replaces" + (
            ", of which the latest days are computed again" if change.missing else "; nothing is computed"
        )
    if change.shares:
        if change.missing:
            return f"Table: the one of `{change.shares}`, and what it lacks is computed"
        return f"Table: the one of `{change.shares}` is kept; nothing is computed"
    return (
        "Table: a new one, which is computed" if change.missing else "Table: a new one; nothing is computed for it now"
    )


def _wait_condition_text(questions: list[Comparison]) -> str:
    models = " and ".join(question.model for question in questions)
    looked_at = [f"in {', '.join(question.columns)}" if question.columns else "in number" for question in questions]
    if len(questions) == 1:
        condition = f"it holds the same rows as before {looked_at[0]}"
    else:
        each_in = "; ".join(f"{question.model} {where}" for question, where in zip(questions, looked_at, strict=True))
        condition = f"they hold the same rows as before ({each_in})"
    return f"Waits for {models} to be built: if {condition}, this is not computed"


def _steps_tree(plan: Plan) -> Tree:
    root = Tree(Text("Explained plan", style="bold"))
    created = [
        change
        for change in plan.changes
        if change.new and (change.shares is None or change.keeps_rows) and change.kind.has_view
    ]
    created = [change for change in created if change.change is not ChangeKind.RESTATED]
    physical = root.add("Validate SQL and create physical layer tables and views if they do not exist")
    for change in created:
        branch = physical.add(_target_text(plan, change.new))
        branch.add("Dry run model query without inserting results")
        branch.add("Create table if it doesn't exist")
        if change.keeps_rows:
            branch.add("Point it at the files of the table that it replaces")
    batches = root.add("Backfill models by running their queries and run audits")
    for change in plan.backfills:
        branch = batches.add(_target_text(plan, change.new))
        branch.add(_backfill_step_text(change))
        for audit in change.new.model.audits if change.new else ():
            branch.add(f"Run '{audit.name}' audit")
    layer = root.add(f"Update the virtual layer for environment '{plan.environment}'")
    _add_view_steps(plan, layer)
    nothing = ((physical, "Nothing to create"), (batches, "Nothing to compute"), (layer, "No view changes"))
    for stage, text in nothing:
        if not stage.children:
            stage.add(text)
    return root


def _add_view_steps(plan: Plan, layer: Tree) -> None:
    for title, views in (
        (
            "Create or update views in the virtual layer to point at new physical tables and views",
            plan.views.added + plan.views.swapped,
        ),
        ("Delete views in the virtual layer for models that were removed", plan.views.dropped),
    ):
        if views:
            branch = layer.add(title)
            for view in views:
                branch.add(f"{view.name} -> {view.table}")


def _backfill_step_text(change: Change) -> str:
    if change.kind.is_seed:
        return "Insert seed file"
    if change.kind.is_incremental:
        return f"Insert {', '.join(str(interval) for interval in change.missing)}"
    return "Fully refresh table"


def _target_text(plan: Plan, snapshot: Snapshot | None) -> str:
    assert snapshot is not None
    return f"{display_name(plan, snapshot.name)} -> {snapshot.table}"
