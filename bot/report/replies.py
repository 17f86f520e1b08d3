"""What the bot answers to commands: each command with its own result, and the state that it left. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mergeplan.bot.commands import MARKER, RESET, Command, Mistake
from mergeplan.bot.projects import repository_of
from mergeplan.bot.records import Answer, CommandRow, PullRecord, PullState
from mergeplan.bot.report.comment import Shown, blockers
from mergeplan.bot.report.markdown import NAMES, category_of, clip_text, code, count_noun, fitting, inert, within
from mergeplan.bot.report.offers import offers
from mergeplan.bot.report.rows import rows_blocks, rows_title, schema_block
from mergeplan.bot.report.words import change_words, promise_sentence, view_words, work_words
from mergeplan.bot.results import PlannerOutcome, touches
from mergeplan.bot.verbs import FORMS, Role, Verb
from mergeplan.planner.contract.result import ResultLine

LINKS = re.compile(r"\[([^\[\]]+)\]\([^)]*\)")
REPLY_LIMIT = 60_000
LINEAGE_MOST = 20_000  # characters


def reply_marker(project: str, comment_id: int) -> str:
    """The hidden key of a project's reply to one comment: there is never a second one."""
    return f"{MARKER}:reply:{comment_id}{project.removeprefix(repository_of(project))} -->"


def reply(row: CommandRow, answers: Sequence[Answer], state: str, project: str = "") -> str:
    """The one reply to a comment or a press: who asked, each command with its result, the resulting state.

    `project` is the folder of the project that answers, where the repository has several.
    """
    how = "asked" if row.press is None else "pressed a button" if row.press.head else "ticked"
    results = [f"{'🚀' if answer.ok else '😕'} {code(answer.text)}\n{answer.sentence}" for answer in answers]
    whom = f", and the project {code(project)} answers" if project else ""
    marker = reply_marker(row.repository, row.comment_id)
    blocks = [f"{marker}\n{code(row.author)} {how}{whom}:", *results, f"**Now:** {state}"]
    return within(blocks, REPLY_LIMIT, "*More is not shown.*")


def mistake_sentence(mistake: Mistake) -> str:
    """Why a line is no command, and what to type instead."""
    return f"{mistake.cause} {mistake.instead} Nothing was changed."


def help_text(needs: Mapping[str, Role], project: str = "") -> str:
    """The commands that are enabled here: what each does, who may use it, an example.

    `project` is the folder of one of several projects.
    """
    lines = [
        "A command stands at the start of a line in a comment; several run in order. Those that are accepted now stand "
        "at the end of the plan comment, most with a box to tick; with the App they are buttons on the checks too.",
        "",
    ]
    if project:
        own = f"`/plan --project {project}`"
        lines[1:1] = ["", f"A command is for the projects that the pull request changes; {own} is for one of them."]
    for verb, form in FORMS.items():
        who = "anybody" if verb is Verb.HELP else f"needs `{needs.get(verb.value, 'admin')}`"
        does = LINKS.sub(r"\1", form.does)  # they lead through the documentation
        lines.append(f"- `{form.usage}`: {does}. *{who[0].upper() + who[1:]}.* Example: `{form.example}`")
    return "\n".join(lines)


def diff_reply(outcome: PlannerOutcome) -> str:
    """What a /diff found."""
    blocks = [*rows_blocks(outcome), *schema_block(outcome)]
    return (
        "\n\n".join([f"**{rows_title(outcome)}**", *blocks]) if blocks else "No model has another table than in prod."
    )


def restate_reply(outcome: PlannerOutcome) -> str:
    """What a /restate computed again, and what it left as it is."""
    plan = outcome.plan
    models = [model for model in plan.models if model.change == "restated"] if plan else []
    if plan is None or not models:
        return "Nothing had to be computed again."
    done = (
        f"Computed again in {code(plan.environment)}: {_names([model.name for model in models])} ({work_words(plan)})."
    )
    left = plan.restatement.left_out if plan.restatement else ()
    kept = [f"- {code(skip.model)} stays as it is: {inert(skip.reason)}" for skip in left]
    return "\n".join([done, *fitting(kept, LINEAGE_MOST)])


def lineage_reply(result: ResultLine) -> str:
    """What a /lineage found: the models, each with the columns that are reached in it."""
    asked = code(".".join(filter(None, (result.model, result.column))))
    columns: dict[str, list[str]] = {}
    for node in result.nodes or ():
        if node.model != result.model:
            columns.setdefault(node.model, []).append("its rows" if node.column is None else node.column)
    if not columns:
        return f"Nothing is made from {asked}."
    lines = [
        f"- {code(model)}: {', '.join(sorted(code(column) for column in names))}" for model, names in columns.items()
    ]
    head = f"From {asked} {count_noun(len(columns), 'model')} downstream {'is' if len(columns) == 1 else 'are'} made:"
    return "\n".join([head, "", *fitting(lines, LINEAGE_MOST)])


def acknowledge_command(command: Command, model: str = "") -> str:
    """The answer to a command that has begun to work, should its end never be known."""
    match command.verb:
        case Verb.CATEGORIZE:
            subject = "Every model" if command.every else code(model)
            if command.category == RESET:
                return f"{subject} is categorized by its rule again."
            return f"{subject} is taken as {NAMES[command.category]}."
        case Verb.APPROVE_COST:
            return "The estimated cost is approved for this head."
        case Verb.ALLOW_DESTRUCTIVE:
            return f"{code(model)} may lose columns in the plan of this head."
        case Verb.UNLOCK:
            return "The promotion was stopped."
        case Verb.DESTROY:
            return "The environment is dropped."
        case Verb.PLAN:
            return "A new plan was asked for."
        case Verb.CANCEL:
            return "The running plan was stopped."
        case Verb.OK_TO_PLAN:
            return f"Commit {code(command.sha)} may be planned."
        case _:
            return "Done."


def state_sentence(shown: Shown) -> str:
    """Where the pull request stands, in one or two sentences."""
    record, outcome = shown.record, shown.record.outcome
    plan = outcome.plan if outcome else None
    match record.state:
        case PullState.PLANNED if plan and touches(plan):
            which = f"plan `{plan.id}` of `{record.head[:7]}`"
            if plan.blockers:
                return f"{which} is blocked: {inert(clip_text(plan.blockers[0].message))}{_link(record)}"
            if outcome and outcome.is_too_costly:
                return f"{which} waits for `/approve-cost`; nothing was computed.{_link(record)}"
            work = f"{change_words(plan)}; computed: {work_words(plan)}"
            return f"{which}: {work}. {promise_sentence(plan, outcome)}{_link(record)}"
        case PullState.PLANNED:
            return f"`{record.head[:7]}` changes no models."
        case PullState.PROMOTED:
            done = record.promotion_outcome.promotion if record.promotion_outcome else None
            return f"in prod since revision {record.promoted_revision}. {view_words(done) if done else ''}".rstrip()
        case PullState.ROLLED_BACK:
            return "prod shows what it showed before this pull request; the branch still holds the change."
        case PullState.CLOSED:
            return f"closed; its environment is {'kept' if record.environment_exists else 'dropped'}."
        case PullState.MERGED:
            return "merged; the promotion is running."
        case PullState.UNPROMOTED:
            return "merged; prod is unchanged; see the plan comment."
        case _:
            typed = ", ".join(code(offer.typed) for offer in offers(record, shown.prod))
            why = " ".join(inert(problem.message) for problem in blockers(record))
            return f"{why}{_link(record)}" + (f" Accepted now: {typed}." if typed else "")


def category_reply(record: PullRecord, model: str, category: str) -> tuple[bool, str]:
    """Whether a person's word is in force in the plan that was made after it, and what it did."""
    plan = record.outcome.plan if record.outcome else None
    change = next((entry for entry in plan.models if entry.name == model), None) if plan else None
    if plan is None or change is None:
        return False, "The plan could not be made again, see the plan comment."
    if category == RESET:
        return True, f"{code(model)} is {NAMES.get(category_of(change), '')} again, by its rule: {inert(change.reason)}"
    if (stays := category_of(change)) != category:
        return (
            False,
            f"{code(model)} stays {NAMES.get(stays, stays)}: {inert(change.reason)}",
        )
    indirect = [entry for entry in plan.models if entry.change == "indirect"]
    below = [entry.name for entry in indirect if entry.recomputed]
    same = [entry.name for entry in indirect if entry.skipped]
    kept = [entry.name for entry in indirect if not entry.recomputed and not entry.skipped]
    effect = (
        f" Downstream recomputed: {_names(below)}."
        if below
        else f" Downstream keeps its tables: {_names(kept)}."
        if kept
        else ""
    )
    effect += f" Skipped, as their inputs hold the same rows: {_names(same)}." if same else ""
    return True, f"{code(model)} is now {NAMES[category]}.{effect}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(code(name) for name in names[:6]) + more


def _link(record: PullRecord) -> str:
    return f" ([the plan](#issuecomment-{record.comment_id}))" if record.comment_id else ""
