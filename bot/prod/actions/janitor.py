"""The janitor's run: it drops what is unused."""

import time
from functools import partial

from mergeplan.bot.prod.planner_calls import list_reasons
from mergeplan.bot.prod.prod_pass import ProdPass
from mergeplan.bot.transitions.prods import record_sweep


def run_janitor(current: ProdPass) -> None:
    """Drop what is unused; environments of pull requests that are not over do not expire."""
    current.update(partial(record_sweep, at=time.time()))  # first: one that fails is not tried again and again
    pulls = current.inbox.pulls.all(current.repository)
    pull_environments = [p.environment.name for p in pulls if p.environment.name and p.is_kept(time.time())]
    keep = (*pull_environments, *(record.environment for record in current.prod.branches))
    outcome = current.planner.sweep(current.prod.promoted_commit, keep)
    if not outcome.ok:
        current.log.warning("janitor_failed", why=list_reasons(outcome))
        return
    for name in outcome.kept:
        current.log.info("old_versions_kept", table=name.table, why=name.reason)
    current.log.info("janitor_ended", kept=len(keep), cleaned=list(outcome.cleaned))
