"""The jobs of agents: a separate folder for each server, taken when a tool first needs it."""

import threading
import time
from collections.abc import Mapping
from dataclasses import replace

from mergeplan.planner.api.access import Access
from mergeplan.planner.api.context import ApiContext
from mergeplan.planner.api.jobs.job import JobRecord
from mergeplan.planner.api.jobs.store import JobLimits
from mergeplan.planner.api.opening import open_context
from mergeplan.planner.errors import LeaseHeld
from mergeplan.planner.session.settings import SessionSettings

POLL = 0.2  # seconds between two looks at a job
SERVERS = 16  # that may serve agents of one project at the same time
WAITERS = 8  # calls that may wait for a job at the same time: each holds a thread
LIMITS = JobLimits(running=1, waiting=5, kept=50)


class AgentJobs:
    """The jobs of one server; safe to share between threads."""

    def __init__(
        self, settings: SessionSettings, access: Access, environ: Mapping[str, str], passed: tuple[str, ...] = ()
    ) -> None:
        self._settings, self._access, self._environ, self._passed = settings, access, dict(environ), passed
        self._context: ApiContext | None = None
        self._lock, self._waiters = threading.Lock(), threading.Semaphore(WAITERS)

    def context(self) -> ApiContext:
        """Return the open context; raise LeaseHeld if too many servers have opened theirs."""
        with self._lock:
            if self._context is None:
                self._context = self._open_context()
            return self._context

    def wait_for(self, record: JobRecord, seconds: float) -> JobRecord:
        """Return the job when it has ended, or after `seconds`; at once if too many calls wait already."""
        jobs, until = self.context().jobs, time.monotonic() + seconds
        if not self._waiters.acquire(blocking=False):
            return record
        try:
            while not record.status.is_final and time.monotonic() < until:
                time.sleep(POLL)
                record = jobs.get(record.id) or record
            return record
        finally:
            self._waiters.release()

    def close(self) -> None:
        """Stop watching; jobs continue, and the next server finds them."""
        with self._lock:
            if self._context is not None:
                self._context.jobs.close()
                self._context.reader.close()
            self._context = None

    def _open_context(self) -> ApiContext:
        for number in range(1, SERVERS + 1):
            limits = replace(LIMITS, folder=f"agents/jobs-{number}")
            try:
                return open_context(self._settings, self._access, self._environ, passed=self._passed, limits=limits)
            except LeaseHeld:
                continue  # it is another server's
        raise LeaseHeld(f"{SERVERS} servers do jobs for agents of this project already.", hint="End one of them.")
