"""`/plan`: plans again, or tries a promotion again. Pure."""

from dataclasses import replace
from functools import partial

from mergeplan.bot.commands.command import SELECTOR, Command, Line, Mistake
from mergeplan.bot.commands.facts import CLOSED, Facts
from mergeplan.bot.commands.form import UNFINISHED, Choice, Face, Form, Request, Start
from mergeplan.bot.records import AFTER_MERGE, Prod, ProdRecord, PullRecord, PullState
from mergeplan.bot.report.inflight import is_waiting_for_layer, layer_wait_words
from mergeplan.bot.report.markdown import code
from mergeplan.bot.report.words import waiting_words
from mergeplan.bot.transitions.prods import request_build
from mergeplan.bot.transitions.requests import select_models

SELECTORS_MOST = 20


def _parse_line(line: Line) -> Command | Mistake:
    """Parse no words, or selectors after `--select`, which may be repeated before each of them."""
    words = [part for word in line.words for part in word.split("=", 1)]
    if not words:
        return line.command
    selectors = tuple(dict.fromkeys(word.lower() for word in words if word != "--select"))
    if words[0] != "--select" or words[-1] == "--select" or not selectors:
        return line.mistake("`/plan` takes nothing after it but `--select` with models.")
    for selector in selectors:
        if not SELECTOR.fullmatch(selector):
            return line.mistake(f"{code(selector)} selects no models.")
    if len(selectors) > SELECTORS_MOST:
        return line.mistake(f"It takes at most {SELECTORS_MOST} selectors.")
    return replace(line.command, select=selectors)


def _refusal_reason(command: Command, facts: Facts) -> str:
    if command.select and not facts.is_open:
        return f"{CLOSED} A merge is planned whole."
    return CLOSED if facts.is_fork and not facts.is_open else ""


def plan_again(request: Request) -> Start:
    record = request.record
    over = record.state in (PullState.PROMOTED, PullState.CLOSED)
    if over or (not request.pull.is_open and record.state not in AFTER_MERGE):
        reason = "It is in prod already." if record.state is PullState.PROMOTED else CLOSED
        return Start(f"{reason} Nothing was changed.", ok=False)
    if record.state is PullState.HELD:
        return Start("A maintainer must let this commit of a fork be planned first.", ok=False)
    select = partial(select_models, select=request.command.select)
    if is_waiting_for_layer(record):
        return Start(layer_wait_words(record), transition=select)
    if record.state is PullState.WAITING:
        return replace(_build_again(request.prod), transition=select)
    begun = record.state in UNFINISHED or record.state is PullState.MERGED
    select = partial(select_models, select=request.command.select, again=not begun)
    return Start("A new plan is queued.", transition=select, waits_for="plan")


def _build_again(prod: ProdRecord) -> Start:
    """Explain what the pull request waits for, and try a failed first build of prod again at once."""
    if prod.state is not Prod.FAILED:
        return Start(waiting_words(prod))
    sentence = f"{waiting_words(replace(prod, again_at=0.0))} The next try begins now."
    return Start(sentence, prod_transition=request_build, wakes_prod=True)


def _list_choices(record: PullRecord, prod: ProdRecord) -> tuple[Choice, ...]:
    match record.state:
        case PullState.PLANNED | PullState.FAILED | PullState.CANCELLED if record.wishes.select:
            face = Face("Plan all models", "Plans all changed models")
            return (Choice("/plan", "plans all changed models, against prod as it is now", face),)
        case PullState.PLANNED | PullState.FAILED | PullState.CANCELLED:
            face = Face("Plan again", "Plans on prod as it is")
            return (Choice("/plan", "plans again, against prod as it is now", face),)
        case PullState.SKIPPED:
            return (Choice("/plan", "plans this commit once", Face("Plan once", "Plans this commit")),)
        case PullState.UNPROMOTED | PullState.ROLLED_BACK:
            face = Face("Try again", "Plans and promotes it")
            return (Choice("/plan", "plans the merged branch again and promotes it", face, moves_prod=True),)
        case _:
            return ()


PLAN_AGAIN = Form(
    usage="/plan [--select SELECTOR]",
    does="plans again, against the current prod; after a merge that did not reach prod: tries the promotion again. "
    "With `--select`: [only these models](guides/pull-requests.md#planning-some-of-the-models)",
    example="/plan --select shop.orders+",
    needs="write",
    rejected="the pull request is closed, or in prod",
    parse=_parse_line,
    rule=_refusal_reason,
    start=plan_again,
    offers=_list_choices,
)
