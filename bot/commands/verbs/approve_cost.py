"""`/approve-cost`: lets a plan over the budget compute what was estimated. Pure."""

from functools import partial

from mergeplan.bot.commands.command import Command
from mergeplan.bot.commands.facts import Facts, require_seen_plan
from mergeplan.bot.commands.form import OTHER_PLAN, Choice, Face, Form, Request, Start
from mergeplan.bot.records import ProdRecord, PullRecord, PullState
from mergeplan.bot.results import cost_shown
from mergeplan.bot.transitions.requests import approve_cost

ROOM = 1.1  # of an approved estimate: a plan that is made again may lack a batch more, never twice as much


def _refusal_reason(command: Command, facts: Facts) -> str:
    if not facts.waits_for_cost:
        return "No plan waits for an approval of its cost."
    return require_seen_plan(command, facts)


def _start_command(request: Request) -> Start:
    record = request.record
    size, seconds = cost_shown(record.outcome.plan if record.outcome else None)
    approve = partial(approve_cost, cost=(int(size * ROOM), seconds * ROOM), head=record.head)
    return Start("The estimated cost is approved for this head.", transition=approve, waits_for="plan")


def _list_choices(record: PullRecord, prod: ProdRecord) -> tuple[Choice, ...]:
    outcome = record.outcome
    if record.state is not PullState.PLANNED or not (outcome and outcome.is_too_costly):
        return ()
    face = Face("Approve cost", "Computes the estimate")
    return (Choice("/approve-cost", "computes what is estimated, for this head", face),)


APPROVE_COST = Form(
    usage="/approve-cost",
    does="lets the plan of this head compute what was estimated, though that is over the budget",
    example="/approve-cost",
    needs="maintain",
    rejected=f"nothing waits for it; {OTHER_PLAN}",
    rule=_refusal_reason,
    start=_start_command,
    offers=_list_choices,
)
