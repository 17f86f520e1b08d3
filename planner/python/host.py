"""The planner's side of the child in which a project's Python runs: it starts it, sends requests and ends it.

The child gets an environment of its own, no open files except two pipes and a third one for its output, and a
process group that is ended with it. It reads the project from us and answers in JSON; nothing else comes back.
"""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mergeplan.planner.errors import Cancelled
from mergeplan.planner.isolation.profile import PACKAGE, module_program
from mergeplan.planner.isolation.scratch import remove_scratch
from mergeplan.planner.isolation.system import hide_process
from mergeplan.planner.python.isolation import NO_ISOLATION, OPTIONS, Isolation, start_isolated
from mergeplan.planner.python.messages import Reply, Wrong

ENVIRONMENT = re.compile(r"PATH|LANG|LC_\w+|TZ|TMPDIR|VIRTUAL_ENV|PYTHONPATH|LD_LIBRARY_PATH|JAVA_HOME")
OTHERS_OPTIONS = ("-I",)  # of a Python that is not ours, and may be older: the same, and no variable of Python's counts
CODE = "mergeplan.planner.python.child"  # the program of models, macros, signals and rules
LONGEST = 64_000_000  # bytes of an answer
LONGEST_LINE = 100_000  # bytes of a line that it prints; what is longer is several
MOST_SAID = 4_000_000  # characters that it may print in all
UNASKED = 4  # replies that may wait; more are a protocol error
GRACE = 3.0  # seconds that a child has to end by itself
LOOK = 0.5  # seconds between looks at whether it was ended
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class ChildFailed(Exception):
    """The project's code failed, or the child did; `wrong` has the message and the place."""

    def __init__(self, wrong: Wrong) -> None:
        super().__init__(wrong.message)
        self.wrong = wrong


class Child:
    """A process for a project's Python, one request at a time; `python` is ours, or that of the project's tools."""

    def __init__(
        self,
        root: Path,
        files: Mapping[str, str],
        isolation: Isolation = NO_ISOLATION,
        program: str = CODE,
        python: str = sys.executable,
    ) -> None:
        hide_process()
        self.isolation = isolation
        self._home = tempfile.TemporaryDirectory(prefix="mergeplan-code-")
        self.scratch = Path(self._home.name)  # the child writes in `home` in it alone; `spark.sock` is its way to Spark
        (self.scratch / "home").mkdir()
        self._process = _start_process(root, self.scratch, isolation, program, python)
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._output: deque[str] = deque(maxlen=3)
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._readers = [
            threading.Thread(target=target, daemon=True) for target in (self._read_replies, self._copy_output)
        ]
        for reader in self._readers:
            reader.start()
        self.stop = weakref.finalize(self, _stop_process, self._process, self._home, self._stopped, self._readers)
        packages = str(isolation.packages or "")
        self.ask({"op": "open", "root": str(root), "files": dict(files), "packages": packages}, 60)

    def ask(self, request: Mapping[str, Any], timeout: float | None) -> Any:
        """Return the answer to a request within `timeout` seconds; raise ChildFailed, or Cancelled if stopped."""
        with self._lock:
            try:
                self._request_pipe.write(json.dumps(request, default=str).encode() + b"\n")
                self._request_pipe.flush()
            except (OSError, ValueError):
                raise self._exit_error() from None
            return self._await_answer(timeout)

    def _await_answer(self, timeout: float | None) -> Any:
        deadline = time.monotonic() + timeout if timeout else None
        while True:
            try:
                line = self._answers.get(timeout=LOOK)
                break
            except queue.Empty:
                if deadline and time.monotonic() > deadline:
                    self.stop()
                    raise ChildFailed(Wrong(message=f"It took longer than {timeout:.0f} seconds.")) from None
        if line is None:
            raise self._exit_error()
        try:
            reply = Reply.model_validate_json(line)
        except ValidationError:
            self.stop()
            raise ChildFailed(Wrong(message="Its reply is invalid.")) from None
        if reply.error is not None:
            raise ChildFailed(reply.error)
        return reply.ok

    @property
    def _request_pipe(self) -> Any:
        assert self._process.stdin is not None
        return self._process.stdin

    def _exit_error(self) -> Exception:
        if self._stopped.is_set():
            return Cancelled("the run was cancelled.")
        _reap_process(self._process)
        code = self._process.returncode
        self._readers[1].join(1)  # what it said last may still be on its way
        output = f" Its last output: {self._output[-1]}" if self._output else ""
        exit_text = f"with exit code {code}" if code is None or code >= 0 else f"by signal {-code}"
        self.stop()
        return ChildFailed(Wrong(message=f"Python ended {exit_text}, and with it this run.{output}"))

    def _read_replies(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError, OSError), self._process.stdout:  # closed under us: it was stopped
            while self._answers.qsize() < UNASKED and (line := self._process.stdout.readline(LONGEST)):
                self._answers.put(line.decode("utf-8", "replace"))
        self._answers.put(None)

    def _copy_output(self) -> None:
        """Copy the project's output to our standard error, as plain text, up to a limit."""
        assert self._process.stderr is not None
        remaining_length = MOST_SAID
        with suppress(ValueError, OSError), self._process.stderr:
            while line := self._process.stderr.readline(LONGEST_LINE):
                text = CONTROL.sub("", line.decode("utf-8", "replace").rstrip())[:2000]
                if text and remaining_length > 0:
                    remaining_length -= len(text)
                    self._output.append(text)
                    notice = "" if remaining_length > 0 else "\nIt printed more, which is not kept."
                    print(text + notice, file=sys.stderr)  # noqa: T201  # what a project's code prints


def _start_process(
    root: Path, scratch: Path, isolation: Isolation, program: str, python: str
) -> subprocess.Popen[bytes]:
    """Start the process, isolated if required; raise Refused if that is not possible."""
    home = scratch / "home"
    options = OPTIONS if python == sys.executable else OTHERS_OPTIONS
    command = [python, *options, "-c", module_program(program), str(PACKAGE)]
    environment = child_environment(os.environ, str(home))

    def start(command: Sequence[str], descriptors: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=descriptors,
        )

    if not isolation.required:
        return start(command)
    environment["TMPDIR"] = str(home)
    return start_isolated(start, command, root, scratch, isolation, options)


def child_environment(environ: Mapping[str, str], home: str) -> dict[str, str]:
    """Return the environment variables of project code: those that programs need to start, and no credentials."""
    allowed_variables = {name: value for name, value in environ.items() if ENVIRONMENT.fullmatch(name)}
    fixed_variables = {"HOME": home, "PYTHONHASHSEED": "0", "PYTHONIOENCODING": "utf-8", "GRPC_VERBOSITY": "NONE"}
    return {
        **allowed_variables,
        **fixed_variables,
        "SPARK_CONNECT_MODE_ENABLED": "1",  # pyspark's functions are those of a client
    }


def _stop_process(
    process: subprocess.Popen[bytes],
    home: tempfile.TemporaryDirectory[str],
    stop_event: threading.Event,
    readers: list[threading.Thread],
) -> None:
    """End the child and everything that it started; it may end what it runs on Spark first."""
    stop_event.set()
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    _reap_process(process)
    last = time.monotonic() + 5
    for reader in readers:
        if reader is not threading.current_thread():
            reader.join(max(last - time.monotonic(), 0))
    for pipe, reading in ((process.stdin, None), (process.stdout, readers[0]), (process.stderr, readers[1])):
        # what left the child's group may hold a pipe open: closing would wait for its other readers
        if pipe is not None and not (reading is not None and reading.is_alive()):
            with suppress(OSError):
                pipe.close()
    remove_scratch(home)


def _reap_process(process: subprocess.Popen[bytes]) -> None:
    """Give the child a moment to end by itself, kill the rest of its group, and only then release its process id."""
    if process.returncode is not None:
        return
    deadline = time.monotonic() + GRACE
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    with suppress(ChildProcessError):  # another thread was faster
        while time.monotonic() < deadline and os.waitid(os.P_PID, process.pid, flags) is None:
            time.sleep(0.01)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
