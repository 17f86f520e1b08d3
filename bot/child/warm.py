"""Keep one Spark per project running, so that a planner child starts at once; start it again when it dies."""

import subprocess
import threading
import time
from dataclasses import dataclass

import structlog

from mergeplan.bot.child.planner_process import Task, new_run_id, project_home, start_child
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.inbox.runs import Run
from mergeplan.bot.settings import Settings
from mergeplan.planner.isolation.processes import birth, end_group

log = structlog.get_logger(__name__)
WATCH_SECONDS = 2.0
LONGEST_BACKOFF = 300.0
HEALTHY_SECONDS = 600.0  # after which an end is no part of a row of failures


@dataclass
class _Kept:
    child: subprocess.Popen[bytes]
    run_id: str
    birth: str
    started_at: float  # time.monotonic()
    failures: int = 0
    again_at: float = 0.0


class Warmth:
    def __init__(self, settings: Settings, inbox: Inbox, worker: str) -> None:
        self._settings = settings
        self._inbox = inbox
        self._worker = worker
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch_children, name="warm", daemon=True)
        self._thread.start()

    def ensure(self, repository: str) -> None:
        """Start a warm Spark for the repository unless it has one."""
        with self._lock:
            if repository not in self._kept and not self._closing.is_set():
                self._kept[repository] = self._start_spark(repository)

    def stop(self) -> None:
        self._closing.set()
        self._thread.join(timeout=WATCH_SECONDS + 1)
        with self._lock:
            for standby in self._kept.values():
                end_group(standby.child.pid, standby.birth, self._settings.grace_seconds)
                self._inbox.runs.end(standby.run_id, standby.child.wait())
            self._kept.clear()

    def _start_spark(self, repository: str, failures: int = 0) -> _Kept:
        home = project_home(self._settings, repository)
        home.mkdir(parents=True, exist_ok=True)
        run_id = f"{new_run_id()}-warm"
        task = Task(("warm",), home, repository, run_id)
        child = start_child(self._settings, task, "warm", quiet=True)
        began = birth(child.pid)
        self._inbox.runs.begin(Run(run_id, repository, self._worker, child.pid, began), "warm")
        log.info("warm_started", repository=repository, pid=child.pid)
        return _Kept(child, run_id, began, time.monotonic(), failures)

    def _watch_children(self) -> None:
        while not self._closing.wait(WATCH_SECONDS):
            with self._lock:
                for repository, standby in list(self._kept.items()):
                    self._look_at(repository, standby)

    def _look_at(self, repository: str, slot: _Kept) -> None:
        exit_code = slot.child.poll()
        if exit_code is None:
            return
        if not slot.again_at:
            if time.monotonic() - slot.started_at > HEALTHY_SECONDS:
                slot.failures = 0
            wait = min(LONGEST_BACKOFF, 2.0**slot.failures)
            slot.again_at = time.monotonic() + wait
            self._inbox.runs.end(slot.run_id, exit_code)
            log.warning("warm_ended", repository=repository, exit_code=exit_code, again_in=wait)
        elif time.monotonic() > slot.again_at:
            self._kept[repository] = self._start_spark(repository, slot.failures + 1)
