"""`/skip-backfill` and `/backfill`: whether a pull request's new tables are computed before its merge. Pure."""

from dataclasses import replace
from functools import partial

from mergeplan.bot.commands.facts import require_open
from mergeplan.bot.commands.form import Choice, Face, Form, Request, Start
from mergeplan.bot.commands.verbs.plan import plan_again
from mergeplan.bot.records import ProdRecord, PullRecord, PullState
from mergeplan.bot.results import has_effect
from mergeplan.bot.transitions.planning import Transition


def _plan_with(request: Request, backfill: str) -> Start:
    start = plan_again(request)
    transition = partial(_set_backfill, backfill=backfill, transition=start.transition)
    return replace(start, transition=transition) if start.ok else start


def _set_backfill(record: PullRecord, backfill: str, transition: Transition | None) -> PullRecord:
    changed = transition(record) if transition else record
    return replace(changed, wishes=replace(changed.wishes, backfill=backfill))


def _skip_offers(record: PullRecord, prod: ProdRecord) -> tuple[Choice, ...]:
    outcome = record.outcome
    if record.state is not PullState.PLANNED or not (outcome and outcome.is_too_costly):
        return ()
    face = Face("Skip backfill", "The merge computes rows")
    return (Choice("/skip-backfill", "leaves new tables empty: the merge computes them", face),)


def _fill_offers(record: PullRecord, prod: ProdRecord) -> tuple[Choice, ...]:
    outcome = record.outcome
    if record.state is not PullState.PLANNED or outcome is None or outcome.is_too_costly:
        return ()
    may_lack_rows = record.wishes.backfill == "skip" or not outcome.is_built
    if not outcome.ok or not has_effect(outcome.plan) or not may_lack_rows:
        return ()
    face = Face("Backfill", "Computes the rows now")
    return (Choice("/backfill", "computes the rows before the merge", face),)


SKIP_BACKFILL = Form(
    usage="/skip-backfill",
    does="plans again and leaves new tables empty: the merge computes them",
    example="/skip-backfill",
    needs="write",
    rejected="the pull request is closed",
    rule=require_open,
    start=partial(_plan_with, backfill="skip"),
    offers=_skip_offers,
)
BACKFILL = Form(
    usage="/backfill",
    does="plans again and computes what `/skip-backfill`, or `skip_pr_backfill`, left empty",
    example="/backfill",
    needs="write",
    rejected="the pull request is closed",
    rule=require_open,
    start=partial(_plan_with, backfill="full"),
    offers=_fill_offers,
)
