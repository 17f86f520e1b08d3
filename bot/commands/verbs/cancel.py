"""`/cancel`: stops the running plan. Pure."""

from functools import partial

from mergeplan.bot.commands.command import Command
from mergeplan.bot.commands.facts import Facts
from mergeplan.bot.commands.form import UNFINISHED, Choice, Form, Request, Start
from mergeplan.bot.records import ProdRecord, PullRecord
from mergeplan.bot.transitions.planning import cancel_planning


def _refusal_reason(command: Command, facts: Facts) -> str:
    return "" if facts.is_running else "Nothing is running."


def _start_command(request: Request) -> Start:
    cancel = partial(cancel_planning, reason=f"{request.who} stopped it.")
    return Start("The running plan was stopped.", transition=cancel)


def _list_choices(record: PullRecord, prod: ProdRecord) -> tuple[Choice, ...]:
    return (Choice("/cancel", "stops this plan"),) if record.state in UNFINISHED else ()


CANCEL = Form(
    usage="/cancel",
    does="stops the running plan; the environment keeps what was computed",
    example="/cancel",
    needs="write",
    rejected="nothing is running",
    rule=_refusal_reason,
    start=_start_command,
    offers=_list_choices,
)
