"""`/destroy`: drops the environment; `pulls/actions/environments` does it. Pure."""

from functools import partial

from mergeplan.bot.commands.command import Command
from mergeplan.bot.commands.facts import Facts
from mergeplan.bot.commands.form import Form, Request, Start
from mergeplan.bot.transitions.requests import request_destroy


def _refusal_reason(command: Command, facts: Facts) -> str:
    if facts.is_promoting:
        return "Its promotion is running. Wait for it, then run the command again."
    return "" if facts.has_environment else "There is no environment to drop."


def _start_command(request: Request) -> Start:
    destroy = partial(request_destroy, who=request.who)
    return Start("The environment is dropped.", transition=destroy, waits_for="destroy")


DESTROY = Form(
    usage="/destroy",
    does="drops the environment and the tables that only it uses; of an open pull request `/plan` builds it again",
    example="/destroy",
    needs="write",
    rejected="there is no environment, or a promotion runs",
    rule=_refusal_reason,
    start=_start_command,
    waits=lambda record: bool(record.environment.destroy_by),
    finish=lambda answer, _: answer,
)
