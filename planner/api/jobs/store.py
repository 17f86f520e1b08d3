"""The jobs of one project: kept in files, started in turn, watched, cancelled, taken over from a server that died."""

import contextlib
import logging
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

from filelock import FileLock, Timeout

from mergeplan.planner.api.jobs.child import Launch, ask_to_end, is_running, is_written, kill_group
from mergeplan.planner.api.jobs.job import JOB_ID, JobKind, JobRecord, JobStatus, JobView, new_job_id
from mergeplan.planner.api.jobs.journal import Journal
from mergeplan.planner.api.problems import ApiError, Conflict
from mergeplan.planner.errors import LeaseHeld
from mergeplan.planner.isolation.processes import birth

log = logging.getLogger(__name__)
VIEWS = 20  # that are remembered: one of a large plan is large
POLL = 0.1  # seconds between two looks at the processes
GRACE = 120.0  # seconds that a job has to end after it was cancelled


@dataclass(frozen=True)
class JobLimits:
    """The limits of jobs, and the folder that stores them."""

    running: int = 1  # at the same time: an embedded catalog admits one process
    waiting: int = 20
    kept: int = 200  # finished ones; the oldest go
    folder: str = "jobs"  # below the project's own


@dataclass(frozen=True)
class JobRequest:
    """What a new job is: `arguments` are those of `mergeplan`."""

    kind: JobKind
    arguments: tuple[str, ...]
    request: dict[str, object]
    environment: str = ""
    plan_id: str = ""
    who: str = ""


class JobStore:
    """The jobs; safe to share between threads. `on_end` is called when one has ended."""

    def __init__(self, folder: Path, launch: Launch, limits: JobLimits, on_end: Callable[[], None]) -> None:
        self.folder, self.limits = folder, limits
        self._launch, self._on_end = launch, on_end
        self._records: dict[str, JobRecord] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._kill_at: dict[str, float] = {}
        self._views: dict[str, JobView] = {}
        self._lock = threading.RLock()
        self._closing = threading.Event()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._server = FileLock(folder / "server.lock", thread_local=False)
        self._thread = threading.Thread(target=self._watch_jobs, name="jobs", daemon=True)

    def open(self) -> None:
        """Take over the stored jobs; raise LeaseHeld if another server runs them."""
        try:
            self._server.acquire(timeout=0)
        except Timeout:
            message = "Another `mergeplan ui` serves this project."
            raise LeaseHeld(message, hint="End it first, or use its pages.") from None
        for path in sorted(self.folder.iterdir()):
            if JOB_ID.fullmatch(path.name) and (record := Journal(path).read()):
                self._records[record.id] = record
        self._thread.start()

    def close(self) -> None:
        """Watch no longer; processes go on, and the next server finds them."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        for child in self._children.values():
            if child.poll() is None:
                child.returncode = 0  # it goes on, and this process does not wait for it
        self._server.release()

    def submit(self, request: JobRequest) -> JobRecord:
        """Submit a job; raise ApiError (429) if too many wait, and Conflict for the second apply of one plan."""
        with self._lock:
            if request.kind is JobKind.APPLY:
                self.check_apply(request.plan_id)
            waiting = [record for record in self._records.values() if record.status is JobStatus.WAITING]
            if len(waiting) >= self.limits.waiting:
                message = f"{self.limits.waiting} jobs wait already."
                hint = "Wait for one, or cancel it."
                raise ApiError(HTTPStatus.TOO_MANY_REQUESTS, message, hint=hint, retry=True)
            record = JobRecord(
                id=new_job_id(),
                kind=request.kind,
                status=JobStatus.WAITING,
                environment=request.environment,
                plan_id=request.plan_id,
                who=request.who,
                created_at=_now_text(),
                request=request.request,
                arguments=request.arguments,
            )
            self._save_record(record)
            return record

    def check_apply(self, plan_id: str) -> None:
        """Raise Conflict if a job applies this plan, or is about to."""
        if any(record.plan_id == plan_id and not record.status.is_final for record in self.list([JobKind.APPLY])):
            raise Conflict("The plan is being applied already.", retry=True)

    def get(self, job_id: str) -> JobRecord | None:
        return self._records.get(job_id)

    def list(self, kinds: Collection[JobKind] = (), environment: str = "") -> tuple[JobRecord, ...]:
        """Return the jobs of these kinds (none: all) and this environment, the newest first."""
        with self._lock:
            records = sorted(self._records.values(), key=lambda record: (record.created_at, record.id), reverse=True)
        return tuple(
            record
            for record in records
            if (not kinds or record.kind in kinds) and (not environment or record.environment == environment)
        )

    def journal(self, job_id: str) -> Journal:
        assert JOB_ID.fullmatch(job_id)
        return Journal(self.folder / job_id)

    def view(self, record: JobRecord) -> JobView:
        """Return the job with its results; the views of the last ended jobs are cached."""
        if not record.status.is_final:
            return self.journal(record.id).view(record)
        with self._lock:
            job_view = self._views.get(record.id)
        if job_view is None:
            job_view = self.journal(record.id).view(record)
            with self._lock:
                self._views[record.id] = job_view
                while len(self._views) > VIEWS:
                    del self._views[next(iter(self._views))]
        return job_view

    def cancel(self, job_id: str) -> JobRecord | None:
        """Ask a job to end; one that waits has ended then. None when there is none, or it has ended already."""
        with self._lock:
            record = self._records.get(job_id)
            if record is None or record.status.is_final:
                return None
            if record.status is JobStatus.WAITING:
                ended = {"status": JobStatus.CANCELLED, "ended_at": _now_text(), "cancelled": True}
                return self._save_record(record.model_copy(update=ended))
            if not record.cancelled:
                record = self._save_record(record.model_copy(update={"cancelled": True}))
                self._kill_at[job_id] = time.monotonic() + GRACE
            ask_to_end(record.pid, record.birth)
            return record

    def _save_record(self, record: JobRecord) -> JobRecord:
        self.journal(record.id).write(record)
        self._records[record.id] = record
        return record

    def _watch_jobs(self) -> None:
        while not self._closing.wait(POLL):
            try:
                if self._advance_jobs():
                    self._on_end()
            except Exception:  # as of a full disk: the next look may do better
                log.exception("jobs could not be looked at")

    def _advance_jobs(self) -> bool:
        """End what has ended and start what is next; True when a job has ended."""
        with self._lock:
            running = [record for record in self._records.values() if record.status is JobStatus.RUNNING]
            ended = [record for record in running if self._has_ended(record)]
            for record in ended:
                self._end_job(record)
            for record in self._next_jobs(len(running) - len(ended)):
                self._start_job(record)
        return bool(ended)

    def _has_ended(self, record: JobRecord) -> bool:
        if time.monotonic() > self._kill_at.get(record.id, float("inf")):
            kill_group(record.pid, record.birth)
        if child := self._children.get(record.id):
            return child.poll() is not None
        if not record.pid:
            return not is_written(self.journal(record.id).lines_path)
        return not is_running(record.pid, record.birth)

    def _end_job(self, record: JobRecord) -> None:
        child = self._children.pop(record.id, None)
        self._kill_at.pop(record.id, None)
        code = child.returncode if child else None
        status = self.journal(record.id).outcome(code)
        if record.cancelled and status is JobStatus.INTERRUPTED:
            status = JobStatus.CANCELLED
        self._save_record(record.model_copy(update={"status": status, "exit_code": code, "ended_at": _now_text()}))
        self._forget_oldest()

    def _next_jobs(self, running: int) -> Sequence[JobRecord]:
        waiting = [record for record in self._records.values() if record.status is JobStatus.WAITING]
        return sorted(waiting, key=lambda record: (record.created_at, record.id))[: self.limits.running - running]

    def _start_job(self, record: JobRecord) -> None:
        journal = self.journal(record.id)
        record = self._save_record(record.model_copy(update={"status": JobStatus.RUNNING, "started_at": _now_text()}))
        try:
            child = self._launch.start(record.arguments, journal.lines_path, journal.log_path)
        except OSError as error:
            journal.write_failure(f"The job could not be started: {error.strerror}.")
            self._save_record(record.model_copy(update={"status": JobStatus.FAILED, "ended_at": _now_text()}))
            return
        self._children[record.id] = child
        self._save_record(record.model_copy(update={"pid": child.pid, "birth": birth(child.pid)}))

    def _forget_oldest(self) -> None:
        finished = [record for record in self.list() if record.status.is_final]
        for record in finished[self.limits.kept :]:
            del self._records[record.id]
            with contextlib.suppress(OSError):
                shutil.rmtree(self.journal(record.id).folder)


def _now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
