"""`/categorize`: overrides the category of a directly modified model. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from mergeplan.bot.commands.command import MODEL, RESET, Command, Line, Mistake, resolve_model
from mergeplan.bot.commands.facts import require_shown_plan
from mergeplan.bot.commands.form import OTHER_PLAN, Choice, Face, Form, Request, Start, report_plan
from mergeplan.bot.pull_parts import PendingOverride
from mergeplan.bot.records import Answer, ProdRecord, PullRecord, PullState
from mergeplan.bot.report.markdown import NAMES, category_of, code, inert_text, name_list
from mergeplan.bot.results import direct_changes
from mergeplan.bot.transitions.requests import add_override, set_overrides
from mergeplan.planner.contract.plan import ModelChange, PlanView

CATEGORIES: Mapping[str, str] = {
    "breaking": "breaking",
    "non-breaking": "non_breaking",
    "non_breaking": "non_breaking",
    "nonbreaking": "non_breaking",
    "forward-only": "forward_only",
    "forward_only": "forward_only",
    RESET: RESET,
}
CATEGORY_NAMES = ("breaking", "non-breaking", "forward-only", RESET)
EVERY = "--all"
OFFERED_MOST = 6  # models whose categories are offered


def _parse_line(line: Line) -> Command | Mistake:
    words = line.words
    if not 1 <= len(words) <= 2:
        return line.mistake("It takes a category, and the model's name before it when several models changed.")
    category = CATEGORIES.get(words[-1].lower())
    if category is None:
        near = get_close_matches(words[-1].lower(), CATEGORIES, n=1, cutoff=0.5)
        guess = f"Did you mean `{CATEGORIES[near[0]].replace('_', '-')}`? " if near else ""
        valid = ", ".join(f"`{name}`" for name in CATEGORY_NAMES)
        return line.mistake("That is not a category.", f"{guess}Categories: {valid}.")
    model = words[0] if len(words) == 2 else ""
    if model == EVERY:
        return replace(line.command, category=category, every=True)
    if model and not MODEL.fullmatch(model):
        return line.mistake("That cannot be the name of a model.")
    return replace(line.command, model=model.lower(), category=category)


def _start_command(request: Request) -> Start:
    command, record = request.command, request.record
    names = [model.name for model in direct_changes(record.outcome.plan if record.outcome else None)]
    if command.every:
        overrides = tuple(PendingOverride(name, command.category, request.who, record.head) for name in names)
        if not overrides:
            return Start("No model is changed directly. Nothing was changed.", ok=False)
        override_all = partial(set_overrides, overrides=overrides)
        sentence = _acknowledge_category("Every model", command)
        return Start(sentence, transition=override_all, waits_for="plan", category=command.category)
    model = resolve_model(command, names)
    if isinstance(model, Mistake):
        return Start(model.sentence, ok=False)
    override = partial(add_override, override=PendingOverride(model, command.category, request.who, record.head))
    sentence = _acknowledge_category(code(model), command)
    return Start(sentence, transition=override, waits_for="plan", model=model, category=command.category)


def _acknowledge_category(subject: str, command: Command) -> str:
    if command.category == RESET:
        return f"{subject} is categorized by its rule again."
    return f"{subject} is taken as {NAMES[command.category]}."


def _finish_answer(answer: Answer, record: PullRecord) -> Answer:
    """Complete an answer: whether the category is in force in the next plan, or at a merge that came first."""
    is_merged = record.state is PullState.PROMOTED
    if not is_merged and (not answer.model or record.state not in (PullState.PLANNED, PullState.FAILED)):
        return report_plan(answer, record)
    plan = record.last_plan
    names = [answer.model] if answer.model else [model.name for model in direct_changes(plan)]
    ok, sentence = min(_category_reply(plan, name, answer.category) for name in names or [""])
    return replace(answer, ok=ok, sentence=sentence)


def _category_reply(plan: PlanView | None, model: str, category: str) -> tuple[bool, str]:
    change = next((entry for entry in plan.models if entry.name == model), None) if plan else None
    if plan is None or change is None:
        return False, "The plan could not be made again, see the plan comment."
    if category == RESET:
        return (
            True,
            f"{code(model)} is {NAMES.get(category_of(change), '')} again, by its rule: {inert_text(change.reason)}",
        )
    if (stays := category_of(change)) != category:
        return False, f"{code(model)} stays {NAMES.get(stays, stays)}: {inert_text(change.reason)}"
    indirect = [entry for entry in plan.models if entry.change == "indirect"]
    below = [entry.name for entry in indirect if entry.recomputed]
    skipped_models = [entry.name for entry in indirect if entry.skipped]
    kept_models = [entry.name for entry in indirect if not entry.recomputed and not entry.skipped]
    effect = (
        f" Downstream recomputed: {name_list(below)}."
        if below
        else f" Downstream keeps its tables: {name_list(kept_models)}."
        if kept_models
        else ""
    )
    effect += (
        f" Skipped, because their inputs hold the same rows: {name_list(skipped_models)}." if skipped_models else ""
    )
    return True, f"{code(model)} is now {NAMES[category]}.{effect}"


def _list_choices(record: PullRecord, prod: ProdRecord) -> tuple[Choice, ...]:
    if record.state is not PullState.PLANNED:
        return ()
    plan = record.outcome.plan if record.outcome else None
    edited = direct_changes(plan)
    choices = [
        _other_category(model, alone=len(edited) == 1)
        for model in edited
        if plan and MODEL.fullmatch(model.name) and _decides_readers(plan, model)
    ]
    return tuple(choices[:OFFERED_MOST])


def _decides_readers(plan: PlanView, model: ModelChange) -> bool:
    """Return True if the other category would change what becomes of an unedited model downstream."""
    effect = {
        "non_breaking": "indirect_non_breaking",
        "breaking": "indirect_breaking",
        "undecided": "indirect_breaking",
    }
    below = {model.name}
    for reader in plan.models:  # parents come first
        if reader.change == "indirect" and not below.isdisjoint(reader.parents):
            if reader.category == effect.get(model.category or "") and not reader.skipped:
                return True
            below.add(reader.name)
    return False


def _other_category(model: ModelChange, *, alone: bool) -> Choice:
    """Return the opposite category; a button names no model, so it needs the model to be the only one."""
    if model.category == "non_breaking":
        face = Face("Mark as breaking", "Computes its readers")
        does = "models downstream are recomputed too"
        return Choice(f"/categorize {model.name} breaking", does, face if alone else None)
    face = Face("Mark as non-breaking", "Its readers keep tables")
    does = "models downstream keep their tables"
    return Choice(f"/categorize {model.name} non-breaking", does, face if alone else None)


CATEGORIZE = Form(
    usage="/categorize [MODEL] CATEGORY",
    does="overrides the category of a directly modified model, with `--all` in its place of all of them: `breaking` "
    "(models downstream are recomputed), `non-breaking` (they keep their tables) or `forward-only` (all keep their "
    "rows; new days come of the new query). It holds across pushes while that model's text stays the same, "
    "also when the pull request is reopened or its environment was dropped; `reset` takes it back. "
    "The last part of a name is enough if it is unique",
    example="/categorize shop.orders non-breaking",
    needs="write",
    rejected=OTHER_PLAN,
    parse=_parse_line,
    rule=require_shown_plan,
    start=_start_command,
    finish=_finish_answer,
    offers=_list_choices,
)
