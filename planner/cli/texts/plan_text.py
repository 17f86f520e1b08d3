"""A plan for a person on the terminal: trees, coloured diffs, the days that will be computed."""

from collections.abc import Iterable, Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from mergeplan.planner.apply.events import BatchAwaited, BatchDone, BatchRepeated, Compared, EnvironmentTouched
from mergeplan.planner.cli.texts.line_tree import LineTree
from mergeplan.planner.model.graph import reach_names
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.category.override import end_of
from mergeplan.planner.plan.change import Category, Change, ChangeKind
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.plan.restatement import Touched
from mergeplan.planner.plan.witness.check import CheckState
from mergeplan.planner.session.wording import (
    TITLES,
    cost_text,
    days_text,
    differences_text,
    display_name,
    plan_headline,
)
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.wording import count_noun, first_names, join_names, shorten_name, visible_text

STYLES = {
    Category.BREAKING: "red",
    Category.NON_BREAKING: "green",
    Category.FORWARD_ONLY: "yellow",
    Category.METADATA: "cyan",
    Category.EQUIVALENT: "cyan",
    Category.INDIRECT_BREAKING: "red",
    Category.INDIRECT_NON_BREAKING: "green",
    Category.UNDECIDED: "red",
}
PREVIEWED = " (preview)"


NAMES_MAX = 5  # models in a line
NARROW = 12  # columns that a name gets at least


def due_text(plan: Plan, estimates: Mapping[str, Estimate]) -> RenderableType:
    if plan.is_empty:
        return Text(f"Nothing is due in `{plan.environment}`.", style="bold")
    return Group(Text(f"Due in the `{plan.environment}` environment:\n", style="bold"), *_render_costs(plan, estimates))


def plan_text(plan: Plan, estimates: Mapping[str, Estimate], *, diffs: bool = True) -> RenderableType:
    if plan.is_empty:
        warnings = [
            _note_text(f"Warning: {warning.place or ''} {warning.message}".replace("  ", " "))
            for warning in plan.warnings
        ]
        return Group(Text(plan_headline(plan), style="bold"), *_render_unopened(plan), *_not_selected(plan), *warnings)
    parts: list[RenderableType] = [Text(plan_headline(plan), style="bold"), Text()]
    if not plan.old.exists and plan.environment != PROD:
        parts += [Text(), Text(differences_text(plan), style="bold"), Text()]
    if plan.changes and plan.restatement is None:
        parts.append(_models_tree(plan))
    parts += _render_decisions(plan, diffs=diffs)
    parts += _existing_tables_tree(plan)
    parts += _render_checks(plan)
    parts += _render_exposures(plan)
    parts += _render_costs(plan, estimates)
    parts += restatement_lines(plan)
    parts += _render_unopened(plan)
    parts += _not_selected(plan)
    parts += [_note_text(f"Warning: {obstacle.place or ''} {obstacle.message}") for obstacle in plan.warnings]
    parts += [_note_text(f"Left empty by request: {display_name(plan, c.name)}.") for c in plan.changes if c.recorded]
    parts += [
        Text.assemble(("Blocked: ", "bold red"), f"{blocker.place or ''} {blocker.message}".strip())
        for blocker in plan.blockers
    ]
    edited = {change.name for change in plan.changes if change.change is ChangeKind.DIRECT and not change.override}
    for override in {unused.model: unused for unused in plan.unused_overrides}.values():  # the latest of each model
        if override.model in edited or override.restates:
            subject = "restatement" if override.restates else "category"
            end_words = (
                f"`{plan.base}` has another version of the model since"
                if end_of(override, plan.changes) == "base"
                else "the model or what it reads was edited since"
            )
            parts.append(_note_text(f"The {subject} of `{override.model}` no longer applies: {end_words}."))
    return Group(*parts)


MODIFIED = {
    ChangeKind.DIRECT: "Directly Modified",
    ChangeKind.RESTATED: "Restated",
    ChangeKind.METADATA: "Metadata Updated",
}


def difference_text(plan: Plan, what: str) -> RenderableType:
    """Return the differences from the plan's environment: models and their diffs, without what applying would do."""
    if not plan.changes:
        return Text(f"{what[0].upper()}{what[1:]} matches the `{plan.environment}` environment.", style="bold")
    head = Text(f"Differences of {what} from the `{plan.environment}` environment:\n", style="bold")
    return Group(head, _models_tree(plan), *_render_decisions(plan, diffs=True))


def _render_unopened(plan: Plan) -> Iterator[RenderableType]:
    for file in plan.unopened.refused:
        names = f"{', '.join(file.models)}: " if file.models else ""
        stays = " It stays in prod as it is deployed." if file.stands else ""
        yield Text.assemble(("Cannot be opened: ", "bold red"), f"{file.place}: {names}{file.sentence}{stays}")
    for name, read in plan.unopened.left_out.items():
        stays = ": it stays as it is" if name in plan.unopened.held else ""
        yield _note_text(f"Left out: {name}, which reads {read}{stays}.")


def _not_selected(plan: Plan) -> Iterator[RenderableType]:
    if plan.not_selected:
        yield _note_text(
            f"Not selected, so not planned: {', '.join(display_name(plan, n) for n in plan.not_selected)}."
        )


def _render_checks(plan: Plan) -> Iterator[RenderableType]:
    states = [check.state for check in plan.checks.values()]
    agreed = len(states) - states.count(CheckState.UNCHECKED)
    if agreed:
        yield Text(f"Checked by Spark: {count_noun(agreed, 'model keeps', 'models keep')} rows.", style="dim")
    reasons: dict[str, list[str]] = {}
    for name, check in plan.checks.items():
        if check.state is CheckState.UNCHECKED:
            reasons.setdefault(check.detail, []).append(display_name(plan, name))
    for reason, names in reasons.items():
        yield Text(f"Not checked by Spark ({reason}): {first_names(names, NAMES_MAX)}", style="dim")


def _render_exposures(plan: Plan) -> Iterator[RenderableType]:
    for hit in plan.exposures:
        about = ", ".join(filter(None, (hit.exposure.type, hit.exposure.owner)))
        names = ", ".join(display_name(plan, name) for name in hit.models)
        yield _note_text(f"Exposure: {hit.exposure.name}{f' ({about})' if about else ''} uses {names}.")


def _render_costs(plan: Plan, estimates: Mapping[str, Estimate]) -> Iterator[RenderableType]:
    if plan.backfills:
        yield _backfills_tree(plan, estimates)
    if len(plan.backfills) > 1 and (cost := cost_text(list(estimates.values()))):
        yield Text(f"Estimated: {cost}", style="dim")


def comparison_text(event: Compared) -> Text:
    """Return the result of comparing two tables for a reader; the text must hold for each of several comparisons."""
    where = f" in {', '.join(event.columns)}" if event.columns else ""
    if event.spared:
        return Text(
            f"- {event.reader} keeps its table: {event.model} holds the same rows as before{where}", style="green"
        )
    return Text(f"- {event.reader} is computed: not the same rows (looked at {event.model}{where})", style="dim")


def savings_text(plan: Plan, estimates: Mapping[str, Estimate]) -> Text | None:
    """Return what was not computed because tables were compared, and what that saved."""
    if not plan.spared:
        return None
    names = ", ".join(display_name(plan, name) for name in sorted(plan.spared))
    saved = cost_text([estimates[name] for name in plan.spared if name in estimates])
    saved_text = f" (saved {saved})" if saved else ""
    return Text(f"Not computed, because they read the same rows as before: {names}{saved_text}")


def batch_text(event: BatchDone, plan: Plan | None, most: int, columns: int) -> Text:
    """Return a finished batch in columns; `most` is the greatest number of batches that a model has.

    A line that is longer than the `columns` of the terminal loses spaces first, and then the beginning of the name.
    """
    snapshot = plan.new.snapshots.get(event.model) if plan else None
    kind = snapshot.kind if snapshot else Kind.INCREMENTAL_BY_TIME_RANGE
    verb = "copy" if event.copied else "insert"
    whole = "copy of the old table" if event.copied else "full refresh"
    action_text = f"{verb} {event.interval}" if kind.is_incremental else whole
    action_text = "insert seed file" if kind.is_seed else action_text
    action_text = "unchanged, like all its inputs" if event.unchanged else action_text
    action_text += f", audits ✔{event.audits}" if event.audits else ""
    action_text += f", {count_noun(event.audits_unchanged, 'audit')} unchanged" if event.audits_unchanged else ""
    number, seconds = f"{f'[{event.index}/{event.of}]':<{2 * len(str(most)) + 3}}", f"{event.seconds:6.2f}s"
    names = [display_name(plan, change.name) for change in plan.backfills] if plan else []
    room = max(columns - len(number) - len(action_text) - len(seconds) - 7, NARROW)  # brackets, and the spaces between
    shown = shorten_name(display_name(plan, event.model) if plan else event.model, room)
    width = min(max([len(shown), *map(len, names)]), room)
    padded = f"{f'[{action_text}]':<{min(44, len(action_text) + 2 + room - width)}}"
    return Text(f"{number} {shown:<{width}}   {padded} {seconds}")


def leftover_batch_text(event: BatchAwaited | BatchRepeated, plan: Plan | None) -> Text:
    snapshot = plan.new.snapshots.get(event.model) if plan else None
    batch_name = f"the batch of {event.interval}" if snapshot and snapshot.kind.is_incremental else "the batch"
    name = display_name(plan, event.model) if plan else event.model
    if isinstance(event, BatchRepeated):
        return Text(
            f"- {name}: {batch_name} that an earlier run began on Spark is lost, it is computed again", style="dim"
        )
    return Text(f"- {name}: waiting for {batch_name} that an earlier run began on Spark", style="dim")


def _models_tree(plan: Plan) -> LineTree:
    root = LineTree(Text("Models:", style="bold"))
    sections = (
        ("Added", ChangeKind.ADDED, "green"),
        ("Removed", ChangeKind.REMOVED, "red"),
        ("Directly Modified", ChangeKind.DIRECT, "magenta"),
        ("Restated", ChangeKind.RESTATED, "magenta"),
        ("Metadata Updated", ChangeKind.METADATA, "cyan"),
        ("Indirectly Modified", ChangeKind.INDIRECT, "blue"),
    )
    for title, kind, style in sections:
        names = sorted(change.name for change in plan.changes if _shown_kind(change) is kind)
        if names:
            branch = root.add(Text(f"{title}:", style=f"bold {style}"))
            for name in names:
                branch.add(Text(display_name(plan, name), style=style))
    return root


def _shown_kind(change: Change) -> ChangeKind:
    return ChangeKind.RESTATED if change.is_restated else change.change


def _render_decisions(plan: Plan, *, diffs: bool) -> Iterator[RenderableType]:
    indirect = [change for change in plan.changes if change.change is ChangeKind.INDIRECT]
    readers: dict[str, list[str]] = {}
    for name, parents in plan.parents.items():
        for parent in parents:
            readers.setdefault(parent, []).append(name)
    for change in plan.changes:
        if change.change not in (ChangeKind.DIRECT, ChangeKind.METADATA) or change.category is None:
            continue
        if change.diff and diffs:
            yield Text()
            yield from _render_diff(change.diff)
            yield Text()
        title, style = TITLES[change.category], STYLES[change.category]
        modified = MODIFIED[_shown_kind(change)]
        title += PREVIEWED if change.preview else ""
        head = Text.assemble(f"{modified}: {display_name(plan, change.name)} ", (f"({title})", f"bold {style}"))
        tree = LineTree(head)
        tree.add(Text(change.reason, style="dim"))
        below = reach_names(readers.get(change.name, ()), readers)
        children = [child for child in indirect if child.name in below]
        if children:
            _add_children(plan, tree.add(Text("Indirectly Modified Children:")), children)
        yield tree


def _add_children(plan: Plan, branch: LineTree, children: Iterable[Change]) -> None:
    for child in children:
        assert child.category is not None
        title, style = TITLES[child.category], STYLES[child.category]
        title += PREVIEWED if child.preview else ""
        leaf = branch.add(Text.assemble(f"{display_name(plan, child.name)} ", (f"({title})", style)))
        leaf.add(Text(child.reason, style="dim"))


def _render_diff(diff: str) -> Iterator[Text]:
    for line in diff.splitlines():
        style = (
            "green"
            if line.startswith("+")
            else "red"
            if line.startswith("-")
            else "cyan"
            if line.startswith("@")
            else ""
        )
        yield Text(visible_text(line), style=style)


def _existing_tables_tree(plan: Plan) -> Iterator[LineTree]:
    existing_changes = sorted(filter(stands_already, plan.changes), key=lambda change: change.name)
    if not existing_changes:
        return
    root = LineTree(Text("Models computed already:", style="bold"))
    for change in existing_changes:
        root.add(Text(f"{display_name(plan, change.name)}: `{change.shares}` has it, nothing is computed"))
    yield root


def stands_already(change: Change) -> bool:
    """Return True if a change's new table exists, with all its rows, because an environment shows it."""
    is_new = change.recomputed or (change.change is ChangeKind.ADDED and change.kind.is_stored)
    return is_new and change.shares is not None and not change.missing


def _backfills_tree(plan: Plan, estimates: Mapping[str, Estimate]) -> LineTree:
    root = LineTree(Text("Models to restate:" if plan.restatement else "Models needing backfill:", style="bold"))
    for change in sorted(plan.backfills, key=lambda change: change.name):
        cost = cost_text([estimates.get(change.name, Estimate())])
        line = f"{display_name(plan, change.name)}: {days_text(change)}{PREVIEWED if change.preview else ''}"
        root.add(Text.assemble(line, (f"  {cost}" if cost else "", "dim"), (_skip_condition_text(plan, change), "dim")))
    return root


def _skip_condition_text(plan: Plan, change: Change) -> str:
    models = [comparison.model for comparison in plan.comparisons if comparison.reader == change.name]
    if not models:
        return ""
    return f", unless {' and '.join(models)} come{'s' if len(models) == 1 else ''} out the same"


def _note_text(text: str) -> Text:
    return Text(text, style="yellow")


def restatement_lines(plan: Plan) -> Iterator[Text]:
    if plan.restatement is None:
        return
    for exclusion in plan.restatement.left_out:
        name = plan.new.naming.view(exclusion.model, plan.environment)
        yield Text(f"Not restated: {name}, because {exclusion.reason}.", style="yellow")
    for touched in plan.restatement.touched:
        yield Text(restatement_effect_text(touched), style="yellow")


def restatement_effect_text(effect: Touched | EnvironmentTouched) -> str:
    effects = []
    if effect.shared:
        effects.append(f"shows the same table of {join_names(effect.shared)}")
    if effect.outdated:
        effects.append(f"must compute this time of {join_names(effect.outdated)} again, at its next plan or run")
    return f"`{effect.environment}` {' and '.join(effects)}."
