"""The first build of prod, or its adoption where the planner has it already."""

import time
from dataclasses import replace
from functools import partial

from mergeplan.bot.context import Later
from mergeplan.bot.prod.decide import DEFECT_TRIES, build_wait
from mergeplan.bot.prod.planner_calls import Ended, list_reasons
from mergeplan.bot.prod.prod_pass import ProdPass
from mergeplan.bot.records import Prod
from mergeplan.bot.report import notices
from mergeplan.bot.report.checks.prod import prod_check
from mergeplan.bot.transitions.prods import fail_build
from mergeplan.planner.contract.result import EnvironmentRow


def adopt_prod(current: ProdPass, environment: EnvironmentRow) -> None:
    current.show_commit(current.facts.head, environment.revision, environment.plan_id)
    current.log.info("prod_adopted", revision=environment.revision)
    current.wake_pulls()


def build_prod(current: ProdPass) -> None:
    head = current.facts.head
    current.facts = replace(current.facts, built=True)
    current.update(lambda prod: replace(prod, state=Prod.BUILDING, branch=current.branch))
    current.check(head, prod_check("Building prod for the first time", "From the branch as it is.", None, True))
    ended = current.planner.apply(head, 0)
    if ended.outcome.ok:
        current.record_promotion(head, ended)
        notice = notices.announce_build(current.repository, ended.outcome)
        current.notify(notice)
        current.check(head, prod_check("Prod was built for the first time", notice.sentence, ended.outcome, False))
    else:
        _store_failure(current, ended, head)
    current.wake_pulls()


def _store_failure(current: ProdPass, end: Ended, head: str) -> None:
    """Store why the first build failed; raise Later while an immediate retry may help."""
    outcome, attempts = end.outcome, current.prod.attempts + 1
    wait = build_wait(outcome, attempts)
    current.log.warning("prod_not_built", attempt=attempts, again_in=wait or None, why=list_reasons(outcome))
    again_at = time.time() + wait if wait else 0.0
    if wait and attempts < DEFECT_TRIES:
        current.update(lambda prod: replace(prod, attempts=attempts, run_lines=end.lines, again_at=again_at))
        current.wake_pulls()
        raise Later(wait, f"the first build of prod at {head[:12]} is tried again")
    tries = attempts if wait else 0
    current.update(partial(fail_build, commit=head, lines=end.lines, attempts=tries, again_at=again_at))
    current.notify(notices.announce_build_failure(current.repository, head, outcome, is_retried=bool(wait)))
    summary = f"Prod could not be built from this commit. {notices.build_outlook(is_retried=bool(wait))}"
    current.check(head, prod_check("Prod could not be built", summary, outcome, False))
