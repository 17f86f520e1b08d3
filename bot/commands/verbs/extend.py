"""`/extend`: keeps the environment for some days more. Pure."""

from dataclasses import replace
from functools import partial

from mergeplan.bot.commands.command import NUMBER, Command, Line, Mistake
from mergeplan.bot.commands.facts import Facts
from mergeplan.bot.commands.form import Form, Request, Start
from mergeplan.bot.transitions.requests import keep_environment
from mergeplan.planner.wording import count_noun

DAYS, DAYS_MOST = 7, 90  # by default, and at most


def _parse_line(line: Line) -> Command | Mistake:
    words = line.words
    if not words or (len(words) == 1 and NUMBER.fullmatch(words[0])):
        return replace(line.command, number=int(words[0]) if words else 0)
    return line.mistake("It takes one whole number, or nothing.")


def _refusal_reason(command: Command, facts: Facts) -> str:
    if not facts.has_environment:
        return "There is no environment to keep."
    return f"An environment is kept for {DAYS_MOST} days at most." if command.number > DAYS_MOST else ""


def _start_command(request: Request) -> Start:
    days = request.command.number or DAYS
    keep = partial(keep_environment, until=request.now + days * 86_400)
    return Start(f"The environment is kept for {count_noun(days, 'day')}.", transition=keep)


EXTEND = Form(
    usage="/extend [DAYS]",
    does="keeps the environment for so many days, 7 by default, though the pull request is merged or closed before",
    example="/extend 14",
    needs="write",
    rejected="there is no environment; more than 90 days",
    parse=_parse_line,
    rule=_refusal_reason,
    start=_start_command,
)
