"""`/deploy`: let a held merge into prod, or promote what is open and merge it; see `prod/actions/deploys`. Pure."""

from dataclasses import replace
from functools import partial

from mergeplan.bot.commands.command import Command
from mergeplan.bot.commands.facts import Facts, require_seen_plan
from mergeplan.bot.commands.form import OTHER_PLAN, Choice, Face, Form, Request, Start, own_role
from mergeplan.bot.records import AFTER_MERGE, Answer, ProdRecord, PullRecord, PullState
from mergeplan.bot.report.approval import approval_problems
from mergeplan.bot.report.markdown import inert_text
from mergeplan.bot.results import has_effect
from mergeplan.bot.transitions.requests import request_deploy

DEPLOY_OFF = (
    "`/deploy` is off here: prod follows what people merge. Merge this pull request, and its tables are promoted. "
    "With `enable_deploy_command: true` in the base branch's `cicd_bot`, it promotes and then merges."
)


def _refusal_reason(command: Command, facts: Facts) -> str:
    if facts.is_held_merge:
        return ""
    if facts.promoted or not facts.is_open:
        return "This pull request is not open: there is nothing to deploy."
    if facts.below:
        return f"It is a layer on #{facts.below}: merged alone it would not reach prod's branch. Deploy that one first."
    if facts.other_projects:
        folders = ", ".join(f"`{folder}`" for folder in facts.other_projects)
        return (
            f"This pull request changes other projects too: {folders}. `/deploy` promotes one project before the "
            "merge, so it cannot. Merge the pull request, and each project promotes its own tables."
        )
    if refusal := require_seen_plan(command, facts):
        return refusal
    if facts.is_running:
        return "The plan is not finished. Wait for it, then run the command again."
    return f"It is not ready for prod: {facts.not_ready} Nothing was changed." if facts.not_ready else ""


def _start_command(request: Request) -> Start:
    head = request.record.deploy.head if request.record.rules.held else request.record.head
    deploy = partial(request_deploy, who=request.who, head=head)
    return Start("The promotion is queued.", transition=deploy, wakes_prod=True, waits_for="deploy")


def _is_waiting(record: PullRecord) -> bool:
    over = record.state in AFTER_MERGE and record.state is not PullState.MERGED
    return bool(record.deploy.by) and not over


def _finish_answer(answer: Answer, record: PullRecord) -> Answer:
    ok = record.state is PullState.PROMOTED
    refusal = inert_text(record.deploy.result) or "Prod was not changed."
    return replace(answer, ok=ok, sentence="It is in prod." if ok else refusal)


def _list_choices(record: PullRecord, prod: ProdRecord) -> tuple[Choice, ...]:
    if record.state is PullState.MERGED and record.rules.held:
        face = Face("Deploy", "Promotes despite rules")
        return (Choice("/deploy", "promotes it against the rules", face, moves_prod=True),)
    outcome = record.outcome
    plan = outcome.plan if outcome else None
    if record.state is not PullState.PLANNED or outcome is None or plan is None or outcome.is_too_costly:
        return ()
    stopped = not outcome.ok or not has_effect(plan) or plan.blockers or approval_problems(record.rules.decision)
    if stopped or plan.not_selected or not prod.deploys or record.stack.planned_on.layers:
        return ()
    face = Face("Deploy", "Promotes, then merges")
    return (Choice("/deploy", "promotes it, and then merges", face, moves_prod=True),)


DEPLOY = Form(
    usage="/deploy",
    does="after a merge that the [rules](guides/approvals.md#who-decides) keep from prod: promotes it against them, "
    "which needs `admin`. Before the merge, where `enable_deploy_command` is on: [promotes, then "
    "merges](guides/pull-requests.md#deploy)",
    example="/deploy",
    needs="maintain",
    rejected=f"it is off; something blocks the promotion; {OTHER_PLAN}",
    role=lambda command, needs, is_held: "admin" if is_held else own_role(command, needs, is_held),
    alone=True,
    off=lambda facts: "" if facts.is_held_merge or facts.deploys else DEPLOY_OFF,
    rule=_refusal_reason,
    start=_start_command,
    waits=_is_waiting,
    finish=_finish_answer,
    offers=_list_choices,
)
