"""A plan explained: why each model is computed or kept, and the stages of applying it."""

from collections.abc import Iterator

from rich.console import Group
from rich.text import Text
from rich.tree import Tree

from mergeplan.planner.cli.texts.plan_text import stands_already
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Category, Change, ChangeKind, Columns
from mergeplan.planner.plan.early_cutoff import Comparison
from mergeplan.planner.plan.stages import BackfillTask, PromoteStage, Stages, Statements
from mergeplan.planner.session.wording import TITLES, display_name
from mergeplan.planner.snapshot.snapshot import Snapshot


def explain_plan(plan: Plan, stages: Stages) -> Group:
    return Group(*([_decisions_tree(plan)] if plan.changes else []), _stages_tree(plan, stages))


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
        return "Table: none; its view is dropped"
    if not change.kind.is_stored:
        return "Table: none; nothing is computed"
    if change.change is ChangeKind.RESTATED:
        return "Table: the same; each batch replaces the rows that it held"
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
            return f"Table: the one of `{change.shares}`, and its missing intervals are computed"
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


def _stages_tree(plan: Plan, stages: Stages) -> Tree:
    root = Tree(Text("Explained plan", style="bold"))
    _add_statement_steps(root, "before_all", stages.before_all)
    physical = root.add("Validate SQL and create physical layer tables and views if they do not exist")
    _add_table_steps(physical, plan, stages)
    _add_batch_steps(root.add("Backfill models by running their queries and run audits"), plan, stages)
    _add_view_steps(root.add(f"Update the virtual layer for environment '{plan.environment}'"), stages.promote)
    _add_statement_steps(root, "after_all", stages.after_all)
    return root


def _add_statement_steps(root: Tree, key: str, statements: Statements) -> None:
    branch = root.add(f"Run the statements of `{key}`") if statements else root
    for _, text in statements:
        branch.add(Text(text))


def _add_table_steps(branch: Tree, plan: Plan, stages: Stages) -> None:
    for change in stages.create.new_tables:
        assert change.new is not None
        table = branch.add(_target_text(plan, change.new))
        table.add("Dry run model query without inserting results")
        table.add("Create table if it doesn't exist")
        if change.keeps_rows:
            table.add("Point it at the files of the table that it replaces")
    if not branch.children:
        branch.add("Nothing to create")


def _add_batch_steps(branch: Tree, plan: Plan, stages: Stages) -> None:
    for task in stages.backfill.tasks:
        table = branch.add(_target_text(plan, task.snapshot))
        if task.snapshot.kind.is_stored:
            table.add(_backfill_step_text(task))
        for audit in task.snapshot.model.checks.audits:
            table.add(f"Run '{audit.name}' audit")
    for kept in stages.audit.tables:
        table = branch.add(_target_text(plan, kept.snapshot))
        for audit in kept.calls:
            table.add(f"Run '{audit.name}' audit on the rows that the table holds, unless it passed on them")
    if not branch.children:
        branch.add("Nothing to compute")


def _add_view_steps(branch: Tree, stage: PromoteStage) -> None:
    created = "Create or update views in the virtual layer to point at new physical tables and views"
    deleted = "Delete views in the virtual layer for models that were removed"
    for title, views in ((created, stage.views.added + stage.views.swapped), (deleted, stage.views.dropped)):
        view_list = branch.add(title) if views else branch
        for view in views:
            view_list.add(f"{view.name} -> {view.table}")
    if not branch.children:
        branch.add("No view changes")


def _backfill_step_text(task: BackfillTask) -> str:
    if task.snapshot.kind.is_seed:
        return "Insert seed file"
    if task.snapshot.kind.is_incremental:
        return f"Insert {', '.join(str(interval) for interval in task.missing)}"
    return "Fully refresh table"


def _target_text(plan: Plan, snapshot: Snapshot) -> str:
    return f"{display_name(plan, snapshot.name)} -> {snapshot.table}"
