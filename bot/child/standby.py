"""A planner child that is started before it is needed, so that its imports are done by then."""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)
READY = (sys.executable, "-I", "-u", "-m", "mergeplan.bot.child.ready")
END_SECONDS = 5.0


class Standby:
    """One child that waits; it is handed out once, and `prepare` starts the next."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = dict(environment)
        self._child: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Start a child if none waits, or log that the machine has no room; raise nothing: a plan may be under way."""
        with self._lock:
            if self._closed or (self._child is not None and self._child.poll() is None):
                return
            self._discard_child()
            try:
                self._child = subprocess.Popen(
                    READY,
                    cwd=self._folder,
                    env=self._environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                log.warning("standby_not_started", why=str(error))

    def hand_over(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path
    ) -> subprocess.Popen[bytes] | None:
        """Return the waiting child, now at work, with its standard input still open; None if none waits."""
        with self._lock:
            child, self._child = self._child, None
        if child is None or child.stdin is None:
            return None
        call = {"arguments": list(arguments), "folder": str(folder), "environment": dict(environment), "log": str(log)}
        try:
            child.stdin.write(json.dumps(call).encode() + b"\n")
            child.stdin.flush()
        except OSError:  # it died while it waited
            _kill_child(child)
            return None
        return child

    def close(self) -> None:
        """End the waiting child and start no other."""
        with self._lock:
            self._closed = True
            self._discard_child()

    def _discard_child(self) -> None:
        if self._child is not None:
            _kill_child(self._child)
            self._child = None


def _kill_child(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe:
            with suppress(OSError):
                pipe.close()
    child.kill()
    child.wait(END_SECONDS)
