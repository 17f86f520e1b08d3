"""The catalog of what prod shows, read by a planner child after each promotion, for the pages of the service.

The service itself opens no project: it keeps the document that the planner wrote, and shows that.
"""

from __future__ import annotations

import structlog

from mergeplan.bot.child.planner_process import new_run_id, project_home
from mergeplan.bot.context import BotContext, PlannerCall
from mergeplan.bot.git.call import BadCommit
from mergeplan.bot.inbox.queue import CATALOG, Job
from mergeplan.bot.pages.links import links_of
from mergeplan.bot.records import Prod, ProdRecord

log = structlog.get_logger(__name__)


def catalog_mark(prod: ProdRecord) -> str:
    """Return what prod's catalog follows from; '' where there is nothing to read."""
    is_there = prod.state is Prod.READY and prod.promoted_commit and prod.revision
    return f"{prod.promoted_commit}:{prod.revision}" if is_there else ""


def wake_catalog(context: BotContext, repository: str) -> None:
    """Wake the job that reads the catalog if prod shows another state, unless no page would show it."""
    if not links_of(context.settings).is_open:
        return
    mark = catalog_mark(context.inbox.prods.get(repository))
    if mark and mark != context.inbox.catalogs.mark(repository).mark:
        context.inbox.queue.wake(repository, CATALOG)


def reconcile_catalog(context: BotContext, job: Job) -> None:
    """Read the catalog of prod's commit and of prod; if it cannot be read, the last one stays."""
    prod = context.inbox.prods.get(job.repository)
    mark = catalog_mark(prod)
    if not mark or not links_of(context.settings).is_open:
        return
    gateway = context.github.repository(job.repository)
    checkout, run_id = context.checkout(gateway), new_run_id()
    file = project_home(context.settings, job.repository) / f"{run_id}.catalog.json"
    try:
        checkout.fetch(prod.branch or gateway.default_branch)
        with context.project(checkout, prod.promoted_commit) as folder:
            arguments = ("docs", "--format", "json", "--output", str(file))
            finished = context.plan(PlannerCall(job, folder, arguments, run_id, is_silent=True))
        if finished.exit_code or not file.is_file():
            log.warning("catalog_not_read", repository=job.repository, exit_code=finished.exit_code)
            return
        context.inbox.catalogs.put(job.repository, mark, file.read_bytes())
        log.info("catalog_read", repository=job.repository, revision=prod.revision)
    except BadCommit as error:
        log.warning("catalog_not_read", repository=job.repository, why=str(error))
    finally:
        file.unlink(missing_ok=True)
