"""Takes jobs off the queue and does each; notices what no webhook reported; finds what a dead worker left."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

import structlog

from mergeplan.bot.context import BotContext, Later, ShuttingDown, Superseded
from mergeplan.bot.forge.failures import ForgeFailed, ForgePaused, NameReused, OwnerUnavailable
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.forge.waiting import WAITING
from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.inbox.queue import BRANCHES, CATALOG, LEASE_SECONDS, Job
from mergeplan.bot.metrics import JOBS
from mergeplan.bot.prod.branches import reconcile_branches
from mergeplan.bot.prod.catalog import reconcile_catalog
from mergeplan.bot.prod.decide import is_asked_again, sweep_is_due
from mergeplan.bot.prod.other_catalogs import OtherCatalogs
from mergeplan.bot.prod.reconcile import reconcile_prod
from mergeplan.bot.projects import owner_of, project_keys, repository_of
from mergeplan.bot.pulls.decide import LAYER_WAIT
from mergeplan.bot.pulls.reconcile import reconcile_pull
from mergeplan.bot.records import AFTER_MERGE, CommandRow, Prod, ProdRecord, Pull, PullRecord, PullState
from mergeplan.bot.service.pace import Apart, Pace
from mergeplan.bot.settings import redact_secrets
from mergeplan.bot.transitions.prods import request_build
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.isolation.processes import LEAVE, end_group, is_gone

T = TypeVar("T")
log = structlog.get_logger(__name__)
IDLE_SECONDS = 0.5
LEND_SECONDS = 0.1
WAITING_MAX = 2  # jobs that wait for GitHub while others are worked on, for each worker
SECOND_LOOK = 5.0  # seconds after a change, until which the timer looks again; clocks may differ so much
EYES_TRIES = 5
EYES_SECONDS = 1.0  # what is not shown by then goes on apart
DRAIN_TRIES = 5
KEEP_DAYS = 30.0
UNAVAILABLE_SECONDS = 60.0  # until a job whose owner is not there is tried again; a webhook may bring it back sooner
REFUSED_SECONDS = 1800.0  # until checks that GitHub refused to take are written again
CALLS_A_LOOK = 3  # of the timer, for one repository; one more while pull requests are open
LONGEST_BACKOFF = 300.0

_RECONCILERS: Mapping[int, Callable[[BotContext, Job], None]] = {
    0: reconcile_prod,
    BRANCHES: reconcile_branches,
    CATALOG: reconcile_catalog,
}
EXPECTED = (ForgeFailed, ForgePaused, CheckoutFailed, MergeplanError)  # what is tried again, and needs no trace


class Worker:
    def __init__(self, context: BotContext) -> None:
        self.context = context
        self._news = threading.Event()
        self._threads: list[threading.Thread] = []
        self._looked: dict[str, dict[int, str]] = {}
        self._eyes: dict[int, int] = {}
        self._apart = Apart()
        self._paces: dict[str, Pace] = {}
        self._given_up: dict[str, str] = {}  # queue key: why; for a run that ends, the Action's
        self._held: dict[str, int] = {}  # the queue keys that are worked on now, each with its thread
        self._other_catalogs = OtherCatalogs(context)
        self._claiming = threading.Lock()  # two threads that claim at once would each see the other's key as free
        context.inbox.queue.add_listener(self._news.set)

    def start(self) -> None:
        self.recover()
        self.retry()
        jobs = [("sweep", self._sweep_loop), ("eyes", self._show_eyes_loop), ("life", self._keep_alive)]
        workers = self.context.settings.workers
        jobs += [(f"job-{index}", self._run_job_loop) for index in range(workers)]
        jobs += [(f"more-{index}", self._run_more_loop) for index in range(workers * WAITING_MAX)]
        for name, job in jobs:
            thread = threading.Thread(target=job, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Take no new job, end children, and hand jobs back within the grace time."""
        self.context.closing.set()
        self.context.look.set()
        self._news.set()
        deadline = time.monotonic() + self.context.settings.grace_seconds + 15
        for thread in self._threads:
            thread.join(max(0.1, deadline - time.monotonic()))

    def recover(self) -> None:
        """End the children of workers that died on this machine, and free their jobs at once."""
        inbox = self.context.inbox
        for run in inbox.runs.open():
            if is_gone(run.worker):
                stopped = end_group(run.pid, run.birth, self.context.settings.grace_seconds, LEAVE)
                inbox.runs.end(run.run_id, -1)
                log.info("run_recovered", run=run.run_id, key=run.key, was_running=stopped)
        for owner in inbox.queue.owners():
            if is_gone(owner):
                inbox.queue.release_of(owner)
                log.info("jobs_recovered", worker=owner)

    def retry(self, *, passing: bool = False) -> None:
        """Retry a first build of prod that failed; with `passing`, not if only a new commit can mend it."""
        for repository in self.context.inbox.queue.repositories():
            prod = self.context.inbox.prods.get(repository)
            if prod.state is Prod.FAILED and not prod.revision and (prod.again_at or not passing):
                self.context.inbox.prods.update(repository, request_build)
                self.context.inbox.queue.wake(repository, 0)

    def drain(self, projects: Sequence[str], seconds: float) -> str:
        """Work on the jobs of these projects until none is due or postponed; else return why, in a sentence."""
        deadline = time.monotonic() + seconds
        threading.Thread(target=self._keep_alive, name="life", daemon=True).start()
        while time.monotonic() < deadline:
            self._run_safely(self.show_eyes)
            job = self.context.inbox.queue.claim(self.context.worker, projects)
            if job is not None:
                self.work(job)
                if job.key in self._given_up:
                    return self._given_up[job.key]
            elif not self.context.inbox.queue.has_plans(projects):
                return ""
            else:
                self.context.closing.wait(IDLE_SECONDS)
        return "The time was up before everything was done."

    def work(self, job: Job) -> None:
        """Run one claimed job, hold its claim until the end, and give it back as the outcome requires."""
        self._held[job.key] = threading.get_ident()
        self.context.lost.discard(job.key)
        about = {"repository": job.repository, "pull_request": job.number, "attempt": job.attempts + 1}
        try:
            with self.context.tracing.span("job", job.trace, key=job.key, **about):
                self._run_job(job)
        finally:
            self._held.pop(job.key, None)

    def _run_job(self, job: Job) -> None:
        inbox, bound = self.context.inbox, log.bind(key=job.key)
        try:
            _RECONCILERS.get(job.number, reconcile_pull)(self.context, job)
            inbox.queue.release(job)
            self._count_job("done")
        except Superseded as why:
            bound.info("job_superseded", why=str(why))
            inbox.queue.release(job, settle=True)
            self._count_job("superseded")
        except (Later, ForgePaused) as why:
            bound.info("job_put_off", why=str(why), seconds=why.seconds)
            inbox.queue.release(job, again_in=why.seconds)
            self._count_job("put_off")
        except NameReused as why:
            self._follow_repository(job, why)
        except OwnerUnavailable as why:
            bound.warning("job_put_off", why=str(why))
            inbox.queue.release(job, again_in=UNAVAILABLE_SECONDS)
            self._count_job("put_off")
            self._given_up[job.key] = str(why)
        except ShuttingDown:
            inbox.queue.release(job, again_in=0.0)
        except Exception as error:  # the one place where a job's failure ends: it is tried again, and others go on
            self._handle_failure(job, error)

    def _follow_repository(self, job: Job, why: NameReused) -> None:
        """Repeat the job of a repository under its present name; end it if that is unknown, until a sweep finds it."""
        try:
            is_found = self.context.follow_repository(job.repository)
        except Exception as error:
            self._handle_failure(job, error)
            return
        log.warning("job_put_off" if is_found else "job_ended", key=job.key, why=str(why))
        self.context.inbox.queue.release(job, again_in=0.0 if is_found else None)
        self._count_job("put_off" if is_found else "done")
        if not is_found:
            self._given_up[job.key] = str(why)

    def _count_job(self, result: str) -> None:
        JOBS.labels(result).inc()
        self.context.tracing.note(result=result)

    def _handle_failure(self, job: Job, error: Exception) -> None:
        expected = isinstance(error, EXPECTED)
        text = redact_secrets(f"{type(error).__name__}: {error}", self.context.settings.secrets())
        wait = min(LONGEST_BACKOFF, 1.0 * 2**job.attempts)
        log.error("job_failed", key=job.key, error=text, attempt=job.attempts + 1, seconds=wait, exc_info=not expected)
        self.context.inbox.queue.release(job, again_in=wait, error=text)
        self._count_job("failed")
        forbidden = isinstance(error, ForgeFailed) and error.status in (401, 403)
        if forbidden or job.attempts + 1 >= DRAIN_TRIES:
            hint = " May the token write checks, issues and pull requests?" if forbidden else ""
            self._given_up[job.key] = redact_secrets(f"{error}{hint}", self.context.settings.secrets())

    # --- threads ---

    def _run_job_loop(self) -> None:
        while not self.context.closing.is_set():
            job = self._run_safely(self.claim)
            if job is None:
                self._news.wait(IDLE_SECONDS)
                self._news.clear()
            else:
                self._run_safely(lambda job=job: self.work(job))  # type: ignore[misc]

    def _run_more_loop(self) -> None:
        """Work on a job in place of one that waits for its turn to write to GitHub."""
        while not self.context.closing.wait(LEND_SECONDS):
            if len(self._busy_keys()) < len(self._held) and (job := self._run_safely(self.claim)):
                self._run_safely(lambda job=job: self.work(job))  # type: ignore[misc]

    def _busy_keys(self) -> list[str]:
        return [key for key, thread in tuple(self._held.items()) if thread not in WAITING]

    def claim(self) -> Job | None:
        """Claim the next job unless as many as there are workers are worked on.

        A job that waits for its turn to write to GitHub is not counted. An owner who has all workers but one is skipped
        while other owners are known: one owner's huge repository delays no one else.
        """
        with self._claiming:
            busy = self._busy_keys()
            if len(busy) >= self.context.settings.workers:
                return None
            busy_jobs, jobs = Counter(map(owner_of, busy)), Counter(map(owner_of, tuple(self._held)))
            limit, most = max(1, self.context.settings.workers - 1), self.context.settings.workers * WAITING_MAX
            crowded = [owner for owner in jobs if busy_jobs[owner] >= limit or jobs[owner] >= most]
            if len(crowded) == 1 and self.context.is_only_owner(*crowded):
                crowded = []
            job = self.context.inbox.queue.claim(self.context.worker, but=crowded)
            if job is not None:
                self._held[job.key] = threading.get_ident()
            return job

    def _keep_alive(self) -> None:
        while not self.context.closing.wait(LEASE_SECONDS / 4):
            self._run_safely(self._renew_claims)
            self._run_safely(self.recover)

    def _renew_claims(self) -> None:
        """Renew the claims; end the run of a job that another worker has taken over while this one was suspended."""
        for key in self.context.inbox.queue.renew(self.context.worker, tuple(self._held)):
            if key in self._held:
                log.warning("job_lost", key=key)
                self.context.lost.add(key)

    def _show_eyes_loop(self) -> None:
        while not self.context.closing.wait(IDLE_SECONDS / 2):
            self._run_safely(self.show_eyes)

    def _sweep_loop(self) -> None:
        while not self.context.closing.is_set():
            self.context.look.clear()
            self._run_safely(self.sweep)
            self.context.look.wait(self.context.settings.sweep_seconds)

    def _run_safely(self, job: Callable[[], T]) -> T | None:
        """Run a job and log its failure, so that the thread survives; pause then, lest a lasting one is a busy loop."""
        try:
            return job()
        except Exception as error:
            text = redact_secrets(f"{type(error).__name__}: {error}", self.context.settings.secrets())
            expected = isinstance(error, EXPECTED)
            log.error("thread_failed", thread=threading.current_thread().name, error=text, exc_info=not expected)
            self.context.closing.wait(1.0)
            return None

    # --- what no webhook reported ---

    def show_eyes(self) -> None:
        """Add an eyes reaction to every comment with a command at once, however busy its owner or another is."""
        rows: dict[str, list[CommandRow]] = {}
        for row in self.context.inbox.commands.unseen():
            rows.setdefault(owner_of(row.repository), []).append(row)
        jobs = {
            ("eyes", owner): partial(self._run_safely, partial(self._show_eyes, owner_rows))
            for owner, owner_rows in rows.items()
        }
        self._apart.run(jobs, EYES_SECONDS)

    def _show_eyes(self, rows: Sequence[CommandRow]) -> None:
        """React to one owner's comments; a pause, or an owner that is unavailable, leaves them for later."""
        for row in rows:
            try:
                self.context.forge.repository(row.repository).comments.react(row.number, row.comment_id, "eyes")
            except (ForgePaused, OwnerUnavailable):
                return
            except ForgeFailed:
                tries = self._eyes[row.comment_id] = self._eyes.get(row.comment_id, 0) + 1
                if tries < EYES_TRIES:
                    continue
            self.context.inbox.commands.mark_seen(row)

    def sweep(self) -> None:
        """Compare every repository with the records and make the job of each difference due.

        Owners are swept independently; a slow one is not waited for, and is left out until it is done.
        """
        self.context.inbox.deliveries.forget_old(KEEP_DAYS)
        jobs = {
            ("sweep", owner): partial(self._run_safely, partial(self._sweep_owner, owner))
            for owner in self._list_owners()
        }
        jobs["catalogs", ""] = partial(self._run_safely, self._other_catalogs.fetch_due)
        self._apart.run(jobs, self.context.settings.sweep_seconds)

    def _list_owners(self) -> tuple[str, ...]:
        """Return the owners where the App is installed; the known ones if GitHub does not answer."""
        try:
            return self.context.forge.owners.list_owners()
        except (ForgeFailed, ForgePaused) as error:
            log.warning("sweep_failed", why=str(error))
        queue_owners = map(owner_of, self.context.inbox.queue.repositories())
        return tuple(dict.fromkeys(queue_owners))

    def _sweep_owner(self, owner: str) -> None:
        """Compare one owner's repositories no faster than GitHub allows; stop at an error that all of them share."""
        pace = self._paces.setdefault(owner, Pace(self.context.settings.polls_per_minute))
        try:
            names = self._list_project_keys(owner)
        except (ForgeFailed, ForgePaused) as error:
            log.warning("sweep_failed", owner=owner, why=str(error))
            return
        for name in names:
            calls = CALLS_A_LOOK + len(self.context.inbox.prods.get(name).branches)
            if self.context.closing.wait(pace.take(calls, time.monotonic())):
                return
            try:
                self._sweep_repository(self.context.forge.repository(name))
            except (ForgePaused, OwnerUnavailable) as error:
                log.warning("sweep_failed", owner=owner, repository=name, why=str(error))
                return
            except ForgeFailed as error:
                log.warning("sweep_failed", repository=name, why=str(error))
                if error.status in (0, 401):
                    return

    def _list_project_keys(self, owner: str) -> tuple[str, ...]:
        """Return the keys of an owner's projects.

        An App sees the repositories that its installation covers; a token, the known ones and those in the settings.
        """
        queue_keys = () if owner else tuple(map(repository_of, self.context.inbox.queue.repositories()))
        names = [self.context.inbox.repositories.find(key).name for key in queue_keys]
        keys = self.context.note_repositories(self.context.forge.repositories(owner, names))
        folders = self.context.settings.project_folders
        return tuple(project for key in dict.fromkeys([*queue_keys, *keys]) for project in project_keys(key, folders))

    def _sweep_repository(self, gateway: RepositoryGateway) -> None:
        inbox, name = self.context.inbox, gateway.name
        prod = inbox.prods.get(name)
        is_due = bool(prod.unwritten) or sweep_is_due(prod, self.context.settings.janitor_hours, time.time())
        if is_due or _prod_is_behind(gateway, prod):
            inbox.queue.wake(name, 0)
        if any(_is_moved(gateway, one.branch, one.commit, is_moved_if_gone=False) for one in prod.branches):
            inbox.queue.wake(name, BRANCHES)
        opened, closed = gateway.open_pulls(), gateway.list_closed_pulls(30)
        records = inbox.pulls.list_current(name, [pull.number for pull in closed])
        records_by_number = {record.number: record for record in records}
        if any(pull.deploy.head or pull.deploy.stage or pull.rollback.by or is_asked_again(pull) for pull in records):
            inbox.queue.wake(name, 0)  # its job may have met a GitHub that hid the repository
        looked, times = self._looked.get(name, {}), dict[int, str]()
        for pull in (*opened, *closed):
            record = records_by_number.get(pull.number, PullRecord(name, pull.number))
            if (
                (looked.get(pull.number) != pull.updated_at and (pull.is_open or record.head))
                or is_behind(pull, record)
                or is_overdue(record, time.time())
            ):
                inbox.queue.wake(name, pull.number)
            # GitHub tells whole seconds: what is said in the second in which it was looked at would not be seen.
            times[pull.number] = pull.updated_at if _is_past(pull.updated_at) else ""
        self._looked[name] = times
        for number, kind, head in group_news(records_by_number, gateway.merge_groups() if opened else {}):
            inbox.deliveries.notice(name, number, kind, head)


def _is_past(updated_at: str) -> bool:
    """Return True if a time of GitHub's is certainly over, so that nothing more can happen in its second."""
    return bool(updated_at) and time.time() - datetime.fromisoformat(updated_at).timestamp() > SECOND_LOOK


def _prod_is_behind(gateway: RepositoryGateway, prod: ProdRecord) -> bool:
    if prod.state in (Prod.UNKNOWN, Prod.BUILDING) or 0 < prod.again_at <= time.time():
        return True
    return _is_moved(gateway, prod.branch or gateway.default_branch, prod.commit, is_moved_if_gone=True)


def _is_moved(gateway: RepositoryGateway, branch: str, commit: str, *, is_moved_if_gone: bool) -> bool:
    try:
        return gateway.branch_head(branch) != commit
    except ForgeFailed as error:
        if error.status == 404:
            return is_moved_if_gone
        raise


def group_news(known_records: Mapping[int, PullRecord], groups: Mapping[int, str]) -> tuple[tuple[int, str, str], ...]:
    """Return the missed webhooks of the merge queue: pull request, kind, and head of the group."""
    known = {number: record.group.head for number, record in known_records.items() if record.group.head}
    return (
        *(
            (number, "merge_group.checks_requested", head)
            for number, head in groups.items()
            if known.get(number) != head
        ),
        *((number, "merge_group.destroyed", head) for number, head in known.items() if number not in groups),
    )


def is_overdue(record: PullRecord, now: float) -> bool:
    """Return True if a deadline of the record has passed: of a freeze, an environment, refused checks, or a layer."""
    over = record.state in (PullState.CLOSED, PullState.PROMOTED) and record.environment.exists
    refused = 0 < record.refused_at <= now - REFUSED_SECONDS
    waited = record.state is PullState.WAITING and 0 < record.stack.waits_since <= now - LAYER_WAIT
    is_expired = over and 0 < record.environment.keep_until <= now
    return refused or waited or is_expired or 0 < record.rules.decision.changes_at <= now


def is_behind(pull: Pull, record: PullRecord) -> bool:
    """Return True if a record differs from the live pull request."""
    if pull.is_open:
        freed = record.state is PullState.SKIPPED and not pull.bears(record.rules.skip_label)
        behind = record.state in (PullState.NEW, PullState.PLANNING, PullState.CLOSED)
        return record.head != pull.head or behind or freed
    if not record.head:
        return False
    return record.state not in AFTER_MERGE if pull.merged else record.state is not PullState.CLOSED
