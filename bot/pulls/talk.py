"""Commands of one pull request, written or pressed: read, judged, carried out, answered once."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog

from mergeplan.bot.commands import Command, Mistake, read_commands, resolve_model, role_for
from mergeplan.bot.context import BotContext, moment
from mergeplan.bot.github.comments import webhook_comment
from mergeplan.bot.github.gateway import GitHubFailed, RepositoryGateway
from mergeplan.bot.pulls.policy import Facts, NotAllowed, decide
from mergeplan.bot.pulls.questions import WAITS, question
from mergeplan.bot.pulls.routing import ProjectFacts, check_project, projects_of, target_projects
from mergeplan.bot.records import (
    AFTER_MERGE,
    Answer,
    CommandRow,
    PendingOverride,
    Posted,
    Prod,
    Pull,
    PullRecord,
    PullState,
)
from mergeplan.bot.report.comment import Shown, blockers
from mergeplan.bot.report.markdown import count_noun
from mergeplan.bot.report.offers import has_ticks, resolve_press
from mergeplan.bot.report.replies import (
    acknowledge_command,
    category_reply,
    help_text,
    mistake_sentence,
    reply,
    reply_marker,
    state_sentence,
)
from mergeplan.bot.report.reverts import revert_words
from mergeplan.bot.report.words import waiting_words
from mergeplan.bot.results import cost_shown, direct
from mergeplan.bot.rules import BotConfig
from mergeplan.bot.verbs import ROLES, Role, Verb

log = structlog.get_logger(__name__)
KEPT_DAYS = 7  # by /extend alone
ROOM = 1.1  # of an approved estimate
NOT_OURS = frozenset({PullState.NEW, PullState.CLOSED})  # where a pull request into another branch stands
UNPROVEN = (
    "No webhook brought this comment, and whether somebody edited it cannot be known here. Nothing was changed: "
    "write it again."
)
EDITED = (
    "The comment was not as the bot wrote it when this was ticked. Nothing was changed: look at the comment, then tick "
    "again."
)
RUNNING = frozenset({PullState.NEW, PullState.PLANNING, PullState.WAITING})


@dataclass(frozen=True)
class _Live:
    """What GitHub says at the moment of a command: of the pull request, and of who gave it."""

    pull: Pull
    role: Role | None
    other_projects: tuple[str, ...] = ()  # that the pull request touches; asked for before a deploy only


def pick_up(context: BotContext, gateway: RepositoryGateway, number: int, comments: tuple[Posted, ...]) -> None:
    """Takes in the commands that no webhook brought; answered and edited ones, bots' and nobody's are left alone.

    Who ticked a box, only its webhook says: without it the tick is taken away, and somebody ticks again.
    """
    own = [comment.body for comment in comments if comment.author == gateway.login]
    plan = context.inbox.pulls.get(gateway.name, number).comment_id
    if any(comment.id == plan and has_ticks(comment.body) for comment in comments):
        context.inbox.pulls.change(gateway.name, number, comment_digest="")  # it is written again, its boxes empty
    namespace = context.inbox.prods.get(gateway.name).namespace
    for comment in comments:
        nobodys = not comment.author or comment.by_bot or comment.author == gateway.login
        if nobodys or comment.edited or any(body.startswith(reply_marker(gateway.name, comment.id)) for body in own):
            continue
        if not read_commands(comment.body, namespace) or context.inbox.commands.knows(gateway.name, comment.id):
            continue
        written = gateway.comments.editor(comment)
        if written.edited:
            log.info("edited_comment_left_alone", repository=gateway.name, comment=comment.id, editor=written.by)
            continue
        context.inbox.commands.take(gateway.name, number, webhook_comment(comment), proven=written.known)


def carry_out(context: BotContext, gateway: RepositoryGateway, pull: Pull, config: BotConfig) -> None:
    """Judges and carries out every new command, in order; what has to wait for a run is answered later."""
    for row in context.inbox.commands.open(gateway.name, pull.number):
        if row.state != "new":
            continue
        requests = _read_requests(context, gateway, row, config)
        if not requests:  # another project's; or it came before the rules were read, and is another bot's
            context.inbox.commands.answer(replace(row, state="answered"))
            continue
        _show_eyes(context, gateway, row)
        verbs = {request.verb for request in requests if isinstance(request, Command)}
        role = gateway.role(row.author) if verbs - {Verb.HELP} else None
        every = _projects(context, gateway, pull.number, config) if gateway.project and Verb.DEPLOY in verbs else ()
        others = tuple(project.folder for project in every if project.touched and project.key != gateway.name)
        live = _Live(pull, role, others)
        answers = tuple(_one(context, row, request, live, config) for request in requests)
        context.inbox.commands.answer(replace(row, state="accepted", answers=answers))


def _read_requests(
    context: BotContext, gateway: RepositoryGateway, row: CommandRow, config: BotConfig
) -> tuple[Command | Mistake, ...]:
    """What a comment asks of this project, or a press stands for by what is offered now."""
    if row.press is None:
        every = read_commands(row.body, config.namespace)
        if not gateway.project and not any(command.project for command in every):
            return every
        projects = _projects(context, gateway, row.number, config)
        if row.lines is None:
            of_each = {
                p.key: tuple(command.text for command in every if p.key in target_projects(command, projects))
                for p in projects
            }
            row = context.inbox.commands.share(row, of_each)
        return tuple(check_project(command, projects) for command in every if command.text in (row.lines or ()))
    record, prod = context.inbox.pulls.get(row.repository, row.number), context.inbox.prods.get(row.repository)
    return tuple(resolve_press(key, row.press, record, prod) for key in row.press.keys)


def _projects(
    context: BotContext, gateway: RepositoryGateway, number: int, config: BotConfig
) -> tuple[ProjectFacts, ...]:
    return projects_of(context, gateway, number, context.checkout(gateway).head(config.prod_branch))


def _show_eyes(context: BotContext, gateway: RepositoryGateway, row: CommandRow) -> None:
    """Before the work begins; the worker shows them too, to a comment whose pull request is busy."""
    if row.seen:
        return
    try:
        gateway.comments.react(row.number, row.comment_id, "eyes")
    except GitHubFailed as error:
        log.warning("eyes_not_shown_yet", repository=row.repository, comment=row.comment_id, why=str(error))
    else:
        context.inbox.commands.mark_seen(row)


def answer_all(context: BotContext, gateway: RepositoryGateway, number: int, config: BotConfig) -> None:
    """Answers every comment whose commands have come to their end, each once."""
    record = context.inbox.pulls.get(gateway.name, number)
    for row in context.inbox.commands.open(gateway.name, number):
        if row.state == "accepted" and not any(_waits(answer, record) for answer in row.answers):
            _answer(context, gateway, row, record)


def _waits(answer: Answer, record: PullRecord) -> bool:
    if answer.waits_for == "rollback":
        return bool(record.rollback_by) or record.reversal.to_open
    if answer.waits_for == "destroy":
        return bool(record.destroy_by)
    if answer.waits_for == "deploy":
        over = record.state in AFTER_MERGE and record.state is not PullState.MERGED
        return bool(record.deploy_by) and not over
    running = not record.is_settled or record.again or bool(record.overrides)
    return answer.waits_for == WAITS or (answer.waits_for == "plan" and running)


def _answer(context: BotContext, gateway: RepositoryGateway, row: CommandRow, record: PullRecord) -> None:
    answers = tuple(_finish_answer(answer, record) for answer in row.answers)
    shown = Shown(record, context.inbox.prods.get(record.repository))
    text = reply(row, answers, state_sentence(shown), gateway.project)
    gateway.comments.write(row.number, text, reply_marker(row.repository, row.comment_id))
    if row.press is None:
        ok = all(answer.ok for answer in answers)
        gateway.comments.react(row.number, row.comment_id, "rocket" if ok else "confused")
    context.inbox.commands.answer(replace(row, state="answered", answers=answers))
    log.info("command_answered", repository=row.repository, pull_request=row.number, comment=row.comment_id)


def _finish_answer(answer: Answer, record: PullRecord) -> Answer:
    """The answer once its run has ended: what came of it."""
    if answer.waits_for == "plan":
        if answer.model and record.state in (PullState.PLANNED, PullState.FAILED):
            ok, sentence = category_reply(record, answer.model, answer.category)
            return replace(answer, ok=ok, sentence=sentence)
        ok = record.state in (PullState.PLANNED, PullState.PROMOTED)
        return replace(answer, ok=ok, sentence="Planned." if ok else "The plan did not succeed.")
    if answer.waits_for == "deploy":
        ok = record.state is PullState.PROMOTED
        return replace(
            answer, ok=ok, sentence="It is in prod." if ok else record.deploy_result or "Prod was not changed."
        )
    if answer.waits_for == "rollback":
        ok = record.state is PullState.ROLLED_BACK
        done = f"{record.reason} {revert_words(record)}" if ok else f"Prod was not changed. {record.reason}".strip()
        return replace(answer, ok=ok, sentence=done)
    return answer


def _one(context: BotContext, row: CommandRow, command: Command | Mistake, live: _Live, config: BotConfig) -> Answer:
    """Judges one command by the state as it is now, and starts what it asks for."""
    if isinstance(command, Mistake):
        return Answer(command.text, False, mistake_sentence(command))
    record = context.inbox.pulls.get(row.repository, row.number)
    held = record.state is PullState.MERGED and record.held
    if not row.proven and ROLES.index(role_for(command, config.needs, held=held)) > ROLES.index("write"):
        return Answer(command.text, False, UNPROVEN if row.press is None else EDITED)
    verdict = decide(command, _facts(context, row, record, live, config), config.needs)
    if isinstance(verdict, NotAllowed):
        answer = Answer(command.text, False, verdict.why)
    else:
        answer = _start(context, row, command, record, live.pull, config)
    context.inbox.decisions.record(
        row.repository, row.number, row.author, f"{command.text}: {answer.sentence}", record.shown_plan
    )
    log.info(
        "command_judged",
        repository=row.repository,
        pull_request=row.number,
        who=row.author,
        verb=command.verb.value,
        ok=answer.ok,
    )
    return answer


def _facts(context: BotContext, row: CommandRow, record: PullRecord, live: _Live, config: BotConfig) -> Facts:
    pull, prod = live.pull, context.inbox.prods.get(row.repository)
    return Facts(
        role=live.role,
        other_projects=live.other_projects,
        live_head=pull.head,
        shown_head=record.shown_head,
        shown_since=moment(record.shown_since) if record.shown_since else None,
        said_at=_request_time(row, record),
        shown_plan=record.shown_plan,
        is_open=pull.is_open,
        is_fork=pull.is_fork_of(row.repository),
        is_held=record.state in (PullState.HELD, PullState.SKIPPED),
        is_running=record.state in RUNNING,
        waits_for_cost=bool(record.outcome and record.outcome.is_too_costly),
        is_held_merge=record.state is PullState.MERGED and record.held,
        deploys=config.deploys,
        not_ready=" ".join(problem.message for problem in blockers(record)),
        is_promoting=record.state is PullState.MERGED and not record.held,
        has_environment=record.environment_exists,
        is_built=record.environment_exists and bool(record.outcome and record.outcome.applied),
        promoted=record.state is PullState.PROMOTED and record.promoted_revision > 0,
        promoted_revision=record.promoted_revision,
        prod_revision=prod.revision,
        elsewhere=config.prod_branch if pull.base_ref != config.prod_branch and record.state in NOT_OURS else "",
        base_moved=bool(record.shown_head) and prod.revision != record.shown_revision,
    )


def _request_time(row: CommandRow, record: PullRecord) -> datetime:
    """When it was said; a button stood beside the very plan that is shown now, whatever our clock says of GitHub's."""
    at = moment(row.said_at)
    pressed = row.press is not None and bool(row.press.head)
    return max(at, moment(record.shown_since)) if pressed and record.shown_since else at


def _start(
    context: BotContext, row: CommandRow, command: Command, record: PullRecord, pull: Pull, config: BotConfig
) -> Answer:
    inbox, where = context.inbox, (row.repository, row.number)
    match command.verb:
        case Verb.HELP:
            return Answer(command.text, True, help_text(config.needs, record.project))
        case Verb.CANCEL:
            inbox.pulls.change(
                *where, state=PullState.CANCELLED, reason=f"{row.author} stopped it.", progress="", again=False
            )
            return Answer(command.text, True, acknowledge_command(command))
        case Verb.PLAN:
            return _plan_again(context, row, command, record, pull)
        case Verb.OK_TO_PLAN:
            # What was shown until now is a head without a plan: a word about its plan is for later.
            unseen: dict[str, Any] = {"shown_head": "", "shown_since": ""} if record.state is PullState.HELD else {}
            inbox.pulls.change(*where, allowed_head=command.sha, **unseen)
            return Answer(command.text, True, acknowledge_command(command), waits_for="plan")
        case Verb.ROLLBACK if not command.dry_run:
            inbox.pulls.change(*where, rollback_by=row.author, rollback_to=command.number)
            inbox.queue.wake(row.repository, 0)
            return Answer(command.text, True, "Prod is being rolled back.", waits_for="rollback")
        case Verb.DEPLOY:
            return _deploy(context, row, command, record)
        case Verb.CATEGORIZE:
            return _categorize(context, row, command, record)
        case Verb.UNLOCK | Verb.EXTEND | Verb.DESTROY:
            return _run_environment_command(context, row, command)
        case Verb.APPROVE_COST:
            size, seconds = cost_shown(record.outcome.plan if record.outcome else None)
            # A plan that is made again may lack a batch more, never twice as much.
            cost = (int(size * ROOM), seconds * ROOM)
            inbox.pulls.change(*where, cost=cost, cost_head=record.head, again=True)
            return Answer(command.text, True, acknowledge_command(command), "plan")
        case Verb.ALLOW_DESTRUCTIVE:
            return _allow_destructive(context, row, command, record)
        case Verb.SKIP_BACKFILL | Verb.BACKFILL:
            answer = _plan_again(context, row, command, record, pull)
            if answer.ok:
                inbox.pulls.change(*where, backfill="skip" if command.verb is Verb.SKIP_BACKFILL else "full")
            return answer
        case Verb.DIFF | Verb.LINEAGE | Verb.RESTATE | Verb.ROLLBACK:
            rules = config.diff.without_samples() if pull.is_fork_of(row.repository) else config.diff
            asked = question(command, record, replace(config, diff=rules))
            return Answer(command.text, True, "The planner was asked.", WAITS, asked=asked)
        case _:  # the state stands at the end of every reply; /deploy never comes here
            return Answer(command.text, True, "This is how it stands.")


def _run_environment_command(context: BotContext, row: CommandRow, command: Command) -> Answer:
    pulls, where = context.inbox.pulls, (row.repository, row.number)
    if command.verb is Verb.UNLOCK:
        pulls.change(*where, unlock_by=row.author)
        return Answer(command.text, True, acknowledge_command(command), "plan")
    if command.verb is Verb.DESTROY:
        pulls.change(*where, destroy_by=row.author, keep_until=0.0)
        return Answer(command.text, True, acknowledge_command(command), "destroy")
    days = command.number or KEPT_DAYS
    pulls.change(*where, keep_until=time.time() + days * 86_400)
    return Answer(command.text, True, f"The environment is kept for {count_noun(days, 'day')}.")


def _plan_again(context: BotContext, row: CommandRow, command: Command, record: PullRecord, pull: Pull) -> Answer:
    if record.state in (PullState.PROMOTED, PullState.CLOSED) or (not pull.is_open and record.state not in AFTER_MERGE):
        why = "It is in prod already." if record.state is PullState.PROMOTED else "This pull request is closed."
        return Answer(command.text, False, f"{why} Nothing was changed.")
    if record.state is PullState.HELD:
        return Answer(command.text, False, "A maintainer must let this commit of a fork be planned first.")
    if record.state is PullState.WAITING:
        return Answer(command.text, True, _build_again(context, row.repository))
    if record.state not in RUNNING and record.state is not PullState.MERGED:
        context.inbox.pulls.change(row.repository, row.number, again=True)
    return Answer(command.text, True, acknowledge_command(command), waits_for="plan")


def _build_again(context: BotContext, repository: str) -> str:
    """What a pull request waits for; a first build of prod that failed is tried again at once."""
    prod = context.inbox.prods.get(repository)
    if prod.state is not Prod.FAILED:
        return waiting_words(prod)
    context.inbox.prods.change(repository, again=True)
    context.inbox.queue.wake(repository, 0)
    return f"{waiting_words(replace(prod, again_at=0.0))} The next try begins now."


def _deploy(context: BotContext, row: CommandRow, command: Command, record: PullRecord) -> Answer:
    """Lets a held merge into prod, or promotes what is open and then merges it: prod's job does either."""
    changes = {"deploy_by": row.author} | ({} if record.held else {"deploy_head": record.head})
    context.inbox.pulls.change(row.repository, row.number, **changes)
    context.inbox.queue.wake(row.repository, 0)
    return Answer(command.text, True, "Prod's turn was asked for.", waits_for="deploy")


def _categorize(context: BotContext, row: CommandRow, command: Command, record: PullRecord) -> Answer:
    names = [model.name for model in direct(record.outcome.plan if record.outcome else None)]
    if command.every:
        overrides = tuple(PendingOverride(name, command.category, row.author, record.head) for name in names)
        if not overrides:
            return Answer(command.text, False, "No model is changed directly. Nothing was changed.")
        context.inbox.pulls.change(row.repository, row.number, overrides=overrides)
        return Answer(command.text, True, acknowledge_command(command, names[0]), "plan")
    chosen = resolve_model(command, names)
    if isinstance(chosen, Mistake):
        return Answer(command.text, False, mistake_sentence(chosen))
    others = tuple(override for override in record.overrides if override.model != chosen)
    overrides = (*others, PendingOverride(chosen, command.category, row.author, record.head))
    context.inbox.pulls.change(row.repository, row.number, overrides=overrides)
    return Answer(command.text, True, acknowledge_command(command, chosen), "plan", chosen, command.category)


def _allow_destructive(context: BotContext, row: CommandRow, command: Command, record: PullRecord) -> Answer:
    plan = record.outcome.plan if record.outcome else None
    chosen = resolve_model(command, [model.name for model in plan.models] if plan else [])
    if isinstance(chosen, Mistake):
        return Answer(command.text, False, mistake_sentence(chosen))
    models = tuple(dict.fromkeys((*record.may_be_destructive, chosen)))
    where = (row.repository, row.number)
    context.inbox.pulls.change(*where, destructive=models, destructive_head=record.head, again=True)
    return Answer(command.text, True, acknowledge_command(command, chosen), "plan")
