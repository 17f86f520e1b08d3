"""`/ok-to-plan`: approves exactly one commit of a fork for planning. Pure."""

import re
from dataclasses import replace
from functools import partial

from mergeplan.bot.commands.command import Command, Line, Mistake
from mergeplan.bot.commands.facts import CLOSED, Facts
from mergeplan.bot.commands.form import Choice, Face, Form, Request, Start
from mergeplan.bot.records import ProdRecord, PullRecord, PullState
from mergeplan.bot.report.markdown import code
from mergeplan.bot.transitions.requests import allow_head


def _parse_line(line: Line) -> Command | Mistake:
    words = line.words
    if len(words) == 1 and re.fullmatch(r"[0-9a-fA-F]{7,64}", words[0]):
        return replace(line.command, sha=words[0].lower())
    return line.mistake("It needs the full SHA of the commit that may be planned.", f"Type `{line.usage}`.")


def _refusal_reason(command: Command, facts: Facts) -> str:
    if not facts.is_fork:
        return "This pull request does not come from a fork: no approval is needed."
    if not facts.is_open:
        return CLOSED
    look = f"Look at it, then type `/ok-to-plan {facts.live_head}`."
    if len(command.sha) != len(facts.live_head):
        return f"An abbreviated SHA can be forged: write the full one. The head is `{facts.live_head}`. {look}"
    if command.sha != facts.live_head:
        return f"The head is now `{facts.live_head}`. {look}"
    if facts.shown_head != facts.live_head or facts.shown_since is None or facts.said_at < facts.shown_since:
        return f"The comment is older than this head. {look}"
    return ""


def _start_command(request: Request) -> Start:
    sha = request.command.sha
    return Start(f"Commit {code(sha)} may be planned.", transition=partial(allow_head, head=sha), waits_for="plan")


def _list_choices(record: PullRecord, prod: ProdRecord) -> tuple[Choice, ...]:
    if record.state is not PullState.HELD:
        return ()
    face = Face("Allow this commit", "Plans this fork's head")
    return (Choice(f"/ok-to-plan {record.head}", "lets this commit be planned", face),)


OK_TO_PLAN = Form(
    usage="/ok-to-plan HEAD",
    does="approves exactly that commit of a fork for planning; `HEAD` is its full SHA of 40 digits",
    example="/ok-to-plan 4f2a9c10b7d3e8a65f1c2b4d9e0a7c3f8b6d5e21",
    needs="maintain",
    rejected="the SHA is abbreviated, is not the head, or was shown only after the comment was written",
    parse=_parse_line,
    rule=_refusal_reason,
    start=_start_command,
    offers=_list_choices,
)
