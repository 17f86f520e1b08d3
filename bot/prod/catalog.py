"""The catalog of what prod shows, read by a planner child after each promotion: for pages, and for other projects.

The service itself opens no project: it keeps the document that the planner wrote, and shows that. Of several projects
it keeps, too, which tables of others each reads.
"""

import structlog

from mergeplan.bot.child.planner_process import new_run_id, project_home
from mergeplan.bot.context import BotContext, PlannerCall
from mergeplan.bot.git.call import BadCommit
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.inbox.queue import CATALOG, Job
from mergeplan.bot.pages.links import links_of
from mergeplan.bot.prod.publishing import publish_document, publish_permission
from mergeplan.bot.records import Prod, ProdRecord

log = structlog.get_logger(__name__)


def catalog_mark(prod: ProdRecord) -> str:
    """Return what prod's catalog follows from; '' where there is nothing to read."""
    is_there = prod.state is Prod.READY and prod.promoted_commit and prod.revision
    return f"{prod.promoted_commit}:{prod.revision}" if is_there else ""


def wake_catalog(context: BotContext, repository: str) -> None:
    """Wake the job that reads the catalog if prod shows another state than a page or another project was shown."""
    mark, inbox = catalog_mark(context.inbox.prods.get(repository)), context.inbox
    has_pages = links_of(context.settings).is_open and inbox.catalogs.mark(repository).mark != mark
    if mark and (has_pages or (_has_others(context) and inbox.publications.mark(repository) != mark)):
        inbox.queue.wake(repository, CATALOG)


def _has_others(context: BotContext) -> bool:
    return bool(context.settings.other_catalogs) or len(context.inbox.prods.list_keys()) > 1


def wake_unpublished(context: BotContext) -> None:
    """Wake the catalogs of projects that were alone when their prod was promoted."""
    for project in context.inbox.prods.list_keys():
        if not context.inbox.publications.mark(project):
            wake_catalog(context, project)


def reconcile_catalog(context: BotContext, job: Job) -> None:
    """Read the catalog of prod's commit and of prod; if it cannot be read, the last one stays."""
    prod = context.inbox.prods.get(job.repository)
    mark, has_pages = catalog_mark(prod), links_of(context.settings).is_open
    if not mark or not (has_pages or _has_others(context)):
        return
    if not context.forge.live_name(job.repository):
        context.inbox.publications.forget(job.repository)
        log.info("job_left", key=job.key, why="no such repository, or the App is not installed")
        return
    gateway = context.forge.repository(job.repository)
    checkout = context.checkout(gateway)
    try:
        checkout.fetch(prod.branch or gateway.default_branch)
        publish_permission(context, job.repository, checkout, prod.promoted_commit)
        document = _read_document(context, job, checkout, prod)
        if not document:
            return
        if has_pages:
            context.inbox.catalogs.put(job.repository, mark, document)
        if _has_others(context):
            publish_document(context, job.repository, checkout, prod.promoted_commit, mark, document)
    except BadCommit as error:
        log.warning("catalog_not_read", repository=job.repository, why=str(error))
        return
    wake_unpublished(context)


def _read_document(context: BotContext, job: Job, checkout: Checkout, prod: ProdRecord) -> bytes:
    run_id = new_run_id()
    file = project_home(context.settings, job.repository) / f"{run_id}.catalog.json"
    try:
        with context.project(checkout, prod.promoted_commit) as folder:
            arguments = ("docs", "--format", "json", "--output", str(file))
            finished = context.plan(PlannerCall(job, folder, arguments, run_id, is_silent=True))
        if finished.exit_code or not file.is_file():
            log.warning("catalog_not_read", repository=job.repository, exit_code=finished.exit_code)
            return b""
        log.info("catalog_read", repository=job.repository, revision=prod.revision)
        return file.read_bytes()
    finally:
        file.unlink(missing_ok=True)
