"""mergeplan as a child process: lines as they come, and no process that nobody reads any more."""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from mergeplan.dagster.child import ChildEnded, stream_lines

SLOW = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(60)"


def run(code: str, folder: Path, timeout: float | None = None) -> list[str]:
    return list(stream_lines([sys.executable, "-c", code], os.environ, folder, lambda _line: None, timeout))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_lines_come_before_the_process_ends(tmp_path: Path) -> None:
    began = time.monotonic()
    with closing(stream_lines([sys.executable, "-c", SLOW], os.environ, tmp_path, print)) as lines:
        pid = int(next(lines))

    assert time.monotonic() - began < 50
    assert not is_alive(pid)


def test_an_exit_code_is_told_after_the_last_line_with_what_stood_on_standard_error(tmp_path: Path) -> None:
    with pytest.raises(ChildEnded, match=r"ended with exit code 4\. No such environment"):
        run("import sys; print('x'); sys.stderr.write('No such environment\\n'); sys.exit(4)", tmp_path)


def test_a_process_that_was_killed_is_told_by_its_signal(tmp_path: Path) -> None:
    with pytest.raises(ChildEnded, match="was killed by signal 9"):
        run("import os; os.kill(os.getpid(), 9)", tmp_path)


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match="did not end within 1 seconds"):
        run(SLOW, tmp_path, timeout=1)
