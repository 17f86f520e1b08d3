"""Run mergeplan as a child process: its lines as they come, and its end when they are no longer read."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

GRACE = 30.0  # seconds between asking a process to end and ending it


class ChildEnded(Exception):
    """The process ended by itself: its exit code, or the negative number of the signal that killed it."""

    def __init__(self, code: int, stderr: str) -> None:
        ending = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        super().__init__(f"mergeplan {ending}. {stderr}".strip())
        self.code = code


def stream_lines(
    argv: Sequence[str],
    environ: Mapping[str, str],
    folder: Path,
    on_stderr: Callable[[str], None],
    timeout: float | None = None,
) -> Generator[str, None, None]:
    """Yield each line of the process's standard output; end its process group when the reader stops reading.

    `timeout` is in seconds, None for no limit. Raise ChildEnded for an exit code other than 0 after the last line, and
    TimeoutError.
    """
    process = subprocess.Popen(
        argv,
        env=dict(environ),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    errors: list[str] = []
    reader = threading.Thread(target=_drain, args=(process, errors, on_stderr), daemon=True)
    late = threading.Event()
    timer = threading.Timer(timeout, _end_late, (process, late)) if timeout else None
    reader.start()
    if timer:
        timer.start()
    try:
        yield from (line.rstrip("\n") for line in process.stdout)
        code = process.wait()
    finally:
        if timer:
            timer.cancel()
        end_group(process)
        process.stdout.close()
        reader.join(timeout=GRACE)
    if late.is_set():
        raise TimeoutError(f"mergeplan did not end within {timeout:g} seconds.")
    if code:
        raise ChildEnded(code, "\n".join(errors[-20:]))


def _drain(process: subprocess.Popen[str], errors: list[str], on_stderr: Callable[[str], None]) -> None:
    assert process.stderr is not None
    with process.stderr as pipe:
        for line in pipe:
            errors.append(line.rstrip("\n"))
            del errors[:-200]
            on_stderr(errors[-1])


def _end_late(process: subprocess.Popen[str], late: threading.Event) -> None:
    late.set()
    end_group(process)


def end_group(process: subprocess.Popen[str]) -> None:
    """End a process and its children: ask first, so that it can put things in order."""
    if process.poll() is not None:
        return
    for number, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, GRACE)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return
