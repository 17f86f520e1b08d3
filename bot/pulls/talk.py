"""Commands of one pull request, written or pressed: read, judged, carried out, answered once."""

import time
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from mergeplan.bot.commands.command import Command, Mistake
from mergeplan.bot.commands.description import keep_current
from mergeplan.bot.commands.facts import Facts
from mergeplan.bot.commands.form import QUESTION, UNFINISHED, Request
from mergeplan.bot.commands.policy import NotAllowed, decide_command, role_for
from mergeplan.bot.commands.reading import read_commands
from mergeplan.bot.commands.table import COMMANDS, FORMS, form_of
from mergeplan.bot.context import BotContext, parse_moment
from mergeplan.bot.forge.events import WrittenComment
from mergeplan.bot.forge.failures import ForgeFailed
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.policy.roles import ROLES, Role
from mergeplan.bot.pulls.routing import ProjectFacts, check_project, projects_of, target_projects
from mergeplan.bot.records import Answer, CommandRow, Posted, ProdRecord, Pull, PullRecord, PullState
from mergeplan.bot.report.markdown import code, inert_text
from mergeplan.bot.report.offers import has_ticks, resolve_press
from mergeplan.bot.report.replies import format_reply, reply_marker, state_sentence, withdraw_answer
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.states import blockers
from mergeplan.bot.results import changes_nothing
from mergeplan.bot.rules import BotConfig

log = structlog.get_logger(__name__)
NOT_OURS = frozenset({PullState.NEW, PullState.CLOSED})  # where a pull request into another branch stands
UNPROVEN = (
    "No webhook brought this comment, and the bot cannot see whether someone edited it. Nothing was changed: "
    "write it again."
)
EDITED = (
    "The comment was not as the bot wrote it when this was ticked. Nothing was changed: look at the comment, then tick "
    "again."
)
HIDDEN = (
    "The description had these words before, where they were no command. Nothing was changed: write the command in a "
    "comment."
)


@dataclass(frozen=True)
class _Live:
    pull: Pull
    role: Role | None
    other_projects: tuple[str, ...] = ()  # that the pull request touches; asked for before a deploy only


def pick_up(context: BotContext, gateway: RepositoryGateway, number: int, comments: tuple[Posted, ...]) -> None:
    """Store commands that no webhook delivered; ignore answered, edited, bots' and anonymous ones.

    Only a webhook tells who ticked a box: without it the tick is removed, and the person ticks again.
    """
    bot_bodies = [comment.body for comment in comments if comment.author == gateway.login]
    plan = context.inbox.pulls.get(gateway.name, number).comment.id
    if any(comment.id == plan and has_ticks(comment.body) for comment in comments):
        # The comment is written again: its boxes will be empty.
        context.inbox.pulls.update(
            gateway.name, number, lambda record: replace(record, comment=replace(record.comment, digest=""))
        )
    namespace = context.inbox.prods.get(gateway.name).namespace
    for comment in comments:
        nobodys = not comment.author or comment.by_bot or comment.author == gateway.login
        if (
            nobodys
            or comment.edited
            or any(body.startswith(reply_marker(gateway.name, comment.id)) for body in bot_bodies)
        ):
            continue
        if not read_commands(comment.body, namespace) or context.inbox.commands.knows(gateway.name, comment.id):
            continue
        written = gateway.comments.editor(comment)
        if written.edited:
            log.info("edited_comment_left_alone", repository=gateway.name, comment=comment.id, editor=written.by)
            continue
        command = WrittenComment(comment.id, comment.author, comment.body, comment.at)
        context.inbox.commands.take(gateway.name, number, command, proven=written.known)


def carry_out(context: BotContext, gateway: RepositoryGateway, pull: Pull, config: BotConfig) -> None:
    """Judge and carry out every new command, in order; one that has to wait for a run is answered later."""
    for row in context.inbox.commands.open(gateway.name, pull.number):
        if row.state != "new":
            continue
        requests = _read_requests(context, gateway, row, config)
        if row.description is not None:
            # Webhooks come out of order, and GitHub answers late: what the description asks for as it is now counts.
            edited_text = row.description or ""
            is_present = not pull.updated_at or parse_moment(pull.updated_at) >= parse_moment(row.said_at)
            present_text = pull.body if is_present else edited_text
            requests = keep_current(requests, edited_text, present_text, config.command_namespace or "")
        if not requests:  # another project's; or it came before the rules were read, and is another bot's
            context.inbox.commands.answer(replace(row, state="answered"))
            continue
        _show_eyes(context, gateway, row)
        forms = [FORMS[request.verb] for request in requests if isinstance(request, Command)]
        role = None if all(form.anybody for form in forms) else gateway.role(row.author)
        alone = gateway.project and any(form.alone for form in forms)
        every = _find_projects(context, gateway, pull.number, config) if alone else ()
        other_folders = tuple(project.folder for project in every if project.touched and project.key != gateway.name)
        live = _Live(pull, role, other_folders)
        answers = tuple(_judge_command(context, row, request, live, config) for request in requests)
        context.inbox.commands.answer(replace(row, state="accepted", answers=answers))


def _read_requests(
    context: BotContext, gateway: RepositoryGateway, row: CommandRow, config: BotConfig
) -> tuple[Command | Mistake, ...]:
    """Return the commands of a comment for this project, or those that a press means by the current offers."""
    if row.press is None:
        every = read_commands(row.body, config.command_namespace or "")
        if not gateway.project and not any(command.project for command in every):
            return every
        projects = _find_projects(context, gateway, row.number, config)
        if row.lines is None:
            of_each = {
                p.key: tuple(command.text for command in every if p.key in target_projects(command, projects))
                for p in projects
            }
            row = context.inbox.commands.share(row, of_each)
        return tuple(check_project(command, projects) for command in every if command.text in (row.lines or ()))
    record, prod = context.inbox.pulls.get(row.repository, row.number), context.inbox.prods.get(row.repository)
    return tuple(resolve_press(key, row.press, record, prod) for key in row.press.keys)


def _find_projects(
    context: BotContext, gateway: RepositoryGateway, number: int, config: BotConfig
) -> tuple[ProjectFacts, ...]:
    return projects_of(context, gateway, number, context.checkout(gateway).head(config.prod_branch))


def _show_eyes(context: BotContext, gateway: RepositoryGateway, row: CommandRow) -> None:
    """React with eyes before the work begins; the worker does so too if the pull request is busy."""
    if row.seen:
        return
    try:
        gateway.comments.react(row.number, row.comment_id, "eyes")
    except ForgeFailed as error:
        log.warning("eyes_not_shown_yet", repository=row.repository, comment=row.comment_id, why=str(error))
    else:
        context.inbox.commands.mark_seen(row)


def answer_all(context: BotContext, gateway: RepositoryGateway, number: int, config: BotConfig) -> None:
    """Answer every comment whose commands are all done, each once."""
    record = context.inbox.pulls.get(gateway.name, number)
    for row in context.inbox.commands.open(gateway.name, number):
        if row.state == "accepted" and not any(_is_waiting(answer, record) for answer in row.answers):
            answers = tuple(
                form_of(answer.text).finish(answer, record) if answer.waits_for else answer for answer in row.answers
            )
            shown = Shown(record, context.inbox.prods.get(record.repository))
            text = format_reply(row, answers, state_sentence(shown), gateway.project)
            gateway.comments.write(row.number, text, reply_marker(row.repository, row.comment_id))
            if row.comment_id > 0:
                ok = all(answer.ok for answer in answers)
                gateway.comments.react(row.number, row.comment_id, "rocket" if ok else "confused")
            context.inbox.commands.answer(replace(row, state="answered", answers=answers))
            log.info("command_answered", repository=row.repository, pull_request=row.number, comment=row.comment_id)


def withdraw_answers(context: BotContext, gateway: RepositoryGateway, number: int) -> None:
    """Edit the replies to commands whose category has ended, each once, and record that."""
    record = context.inbox.pulls.get(gateway.name, number)
    plan = record.outcome.plan if record.state in (PullState.PLANNED, PullState.FAILED) and record.outcome else None
    if plan is None or not plan.unused_overrides:
        return
    for row in context.inbox.commands.answered(gateway.name, number):
        answers = tuple(withdraw_answer(answer, record) for answer in row.answers)
        if answers == row.answers:
            continue
        shown = Shown(record, context.inbox.prods.get(record.repository))
        text = format_reply(row, answers, state_sentence(shown), gateway.project)
        gateway.comments.write(number, text, reply_marker(row.repository, row.comment_id))
        context.inbox.commands.answer(replace(row, answers=answers))
        for answer, before in zip(answers, row.answers, strict=True):
            if answer != before:
                what = (
                    f"{code(answer.text)}: {answer.sentence.partition(' ([the plan]')[0].partition(' It had said')[0]}"
                )
                context.inbox.decisions.record(row.repository, number, "mergeplan", what, plan.id)


def _is_waiting(answer: Answer, record: PullRecord) -> bool:
    if answer.waits_for in ("", QUESTION):
        return bool(answer.waits_for)
    return form_of(answer.text).waits(record)


def _judge_command(
    context: BotContext, row: CommandRow, command: Command | Mistake, live: _Live, config: BotConfig
) -> Answer:
    if isinstance(command, Mistake):
        return Answer(command.text, False, command.sentence)
    if row.description is not None and not row.proven:
        return Answer(command.text, False, HIDDEN)
    record, prod = context.inbox.pulls.get(row.repository, row.number), context.inbox.prods.get(row.repository)
    is_held = record.state is PullState.MERGED and record.rules.held
    if not row.proven and ROLES.index(role_for(command, config.permissions, is_held=is_held)) > ROLES.index("write"):
        return Answer(command.text, False, UNPROVEN if row.press is None else EDITED)
    verdict = decide_command(command, _gather_facts(row, record, prod, live, config), config.permissions)
    if isinstance(verdict, NotAllowed):
        answer = Answer(command.text, False, verdict.why)
    else:
        rules = (config.permissions, config.cost_budget, config.diff)
        request = Request(command, row.author, record, prod, live.pull, time.time(), *rules, COMMANDS)
        answer = _start_command(context, row, request)
    context.inbox.decisions.record(
        row.repository, row.number, row.author, f"{code(command.text)}: {answer.sentence}", record.shown.plan
    )
    log.info(
        "command_judged",
        repository=row.repository,
        pull_request=row.number,
        who=row.author,
        verb=command.verb,
        ok=answer.ok,
    )
    return answer


def _gather_facts(row: CommandRow, record: PullRecord, prod: ProdRecord, live: _Live, config: BotConfig) -> Facts:
    pull = live.pull
    return Facts(
        role=live.role,
        other_projects=live.other_projects,
        live_head=pull.head,
        shown_head=record.shown.head,
        shown_since=parse_moment(record.shown.since) if record.shown.since else None,
        said_at=_request_time(row, record),
        plan_since=_plan_since(record),
        shown_plan=record.shown.plan,
        is_open=pull.is_open,
        is_fork=pull.is_fork,
        is_held=record.state in (PullState.HELD, PullState.SKIPPED),
        is_running=record.state in UNFINISHED,
        changes_nothing=(record.state, record.head) == (PullState.PLANNED, pull.head)
        and changes_nothing(record.outcome),
        waits_for_cost=bool(record.outcome and record.outcome.is_too_costly),
        is_held_merge=record.state is PullState.MERGED and record.rules.held,
        deploys=config.enable_deploy_command,
        not_ready=" ".join(inert_text(problem.message) for problem in blockers(record)),
        is_promoting=record.state is PullState.MERGED and not record.rules.held,
        has_environment=record.environment.exists,
        is_built=record.environment.exists and bool(record.outcome and record.outcome.is_built),
        promoted=record.state is PullState.PROMOTED and record.promotion.revision > 0,
        promoted_revision=record.promotion.revision,
        prod_revision=prod.revision,
        elsewhere=config.prod_branch if not pull.goes_into(config.prod_branch) and record.state in NOT_OURS else "",
        below=pull.stack.layers[-1].number if pull.stack.layers else 0,
        base_moved=bool(record.shown.head) and prod.revision != record.shown.revision,
    )


def _request_time(row: CommandRow, record: PullRecord) -> datetime:
    """Return the time of the request; a button's is that of the plan shown now, even if GitHub's clock differs."""
    at = parse_moment(row.said_at)
    pressed = row.press is not None and bool(row.press.head)
    if not pressed or not record.shown.since:
        return at
    return max(at, parse_moment(record.shown.since), _plan_since(record) or at)


def _plan_since(record: PullRecord) -> datetime | None:
    shown = record.comment_plan
    return parse_moment(shown.since) if shown and shown.since else None


def _start_command(context: BotContext, row: CommandRow, request: Request) -> Answer:
    """Apply the transitions that a command starts; the jobs of the pull request and of prod do the rest."""
    start = FORMS[request.command.verb].start(request)
    if start.transition:
        context.inbox.pulls.update(row.repository, row.number, start.transition)
    if start.prod_transition:
        context.inbox.prods.update(row.repository, start.prod_transition)
    if start.wakes_prod:
        context.inbox.queue.wake(row.repository, 0)
    run = (start.waits_for, start.model, start.category, start.asked)
    return Answer(request.command.text, start.ok, start.sentence, *run)
