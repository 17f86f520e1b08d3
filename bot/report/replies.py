"""What the bot answers to commands: each command with its own result, and the state that it left. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from mergeplan.bot.projects import repository_of
from mergeplan.bot.records import Answer, CommandRow, PullRecord, PullState
from mergeplan.bot.report.losses import find_losses, loss_title
from mergeplan.bot.report.markdown import MARKER, clip_text, code, fit_blocks, inert_text
from mergeplan.bot.report.offers import list_offers
from mergeplan.bot.report.selection import selection_words
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.states import blockers
from mergeplan.bot.report.words import change_words, override_end_words, promise_sentence, view_words, work_words
from mergeplan.bot.results import has_effect

REPLY_LIMIT = 60_000


def reply_marker(project: str, comment_id: int) -> str:
    return f"{MARKER}:reply:{comment_id}{project.removeprefix(repository_of(project))} -->"


def format_reply(row: CommandRow, answers: Sequence[Answer], state: str, project: str = "") -> str:
    """Return the one reply to a comment or press: author, results, state; `project` is the folder of one of several."""
    verb = "asked" if row.press is None else "pressed a button" if row.press.head else "ticked"
    verb = "asked in the description" if row.description is not None else verb
    results = [f"{'🚀' if answer.ok else '😕'} {code(answer.text)}\n{answer.sentence}" for answer in answers]
    whom = f", and the project {code(project)} answers" if project else ""
    marker = reply_marker(row.repository, row.comment_id)
    blocks = [f"{marker}\n{code(row.author)} {verb}{whom}:", *results, f"**Now:** {state}"]
    return fit_blocks(blocks, REPLY_LIMIT, "*More is not shown.*")


def withdraw_answer(answer: Answer, record: PullRecord) -> Answer:
    """Return the answer to a /categorize or /restate as it stands: withdrawn once the plan says that it has ended."""
    plan = record.outcome.plan if record.outcome else None
    holds = answer.ok and " --reset" not in answer.text
    if plan is None or not holds or not answer.text.startswith(("/categorize ", "/restate ")):
        return answer
    is_restated = answer.text.startswith("/restate ")
    about = (unused for unused in plan.unused_overrides if bool(unused.restates) is is_restated)
    ended = next((unused for unused in about if answer.model in ("", unused.model)), None)
    if ended is None:
        return answer
    why = f"**No longer applies to {code(ended.model)}**, because {override_end_words(ended)}."
    return replace(answer, ok=False, sentence=f"{why}{_plan_link(record)} It had said: {answer.sentence}")


def state_sentence(pull_view: Shown) -> str:
    record, outcome = pull_view.record, pull_view.record.outcome
    plan = outcome.plan if outcome else None
    match record.state:
        case PullState.NEW:
            return "no plan yet."
        case PullState.PLANNED if plan and has_effect(plan):
            plan_text = f"plan `{plan.id}` of `{record.head[:7]}`"
            if words := selection_words(record):
                return f"{plan_text}: {words}{_plan_link(record)}"
            if plan.blockers:
                return f"{plan_text} is blocked: {inert_text(clip_text(plan.blockers[0].message))}{_plan_link(record)}"
            if outcome and outcome.is_too_costly:
                return f"{plan_text} waits for `/approve-cost`; nothing was computed.{_plan_link(record)}"
            loss = f"⚠️ {title}; " if (title := loss_title(find_losses(outcome), record.nearby.readers)) else ""
            work = f"{loss}{change_words(plan)}; computed: {work_words(plan)}"
            return f"{plan_text}: {work}. {promise_sentence(plan, outcome)}{_plan_link(record)}"
        case PullState.PLANNED:
            return f"`{record.head[:7]}` changes no models."
        case PullState.PROMOTED:
            done = record.promotion.outcome.promotion if record.promotion.outcome else None
            return f"in prod since revision {record.promotion.revision}. {view_words(done) if done else ''}".rstrip()
        case PullState.ROLLED_BACK:
            return "prod shows what it showed before this pull request; the branch still holds the change."
        case PullState.CLOSED:
            return f"closed; its environment is {'kept' if record.environment.exists else 'dropped'}."
        case PullState.MERGED if record.rules.held:
            return "merged; the project's rules keep it from prod; see the plan comment."
        case PullState.MERGED:
            return "merged; the promotion is running."
        case PullState.UNPROMOTED:
            return "merged; prod is unchanged; see the plan comment."
        case _:
            typed = ", ".join(code(offer.typed) for offer in list_offers(record, pull_view.prod))
            reasons = " ".join(inert_text(problem.message) for problem in blockers(record))
            return f"{reasons}{_plan_link(record)}" + (f" Accepted now: {typed}." if typed else "")


def _plan_link(record: PullRecord) -> str:
    return f" ([the plan](#issuecomment-{record.comment.id}))" if record.comment.id else ""
