"""Batches in forks: all results arrive, and a fork that ends early costs its own results alone."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mergeplan.planner import forked
from mergeplan.planner.forked import count_processors, map_in_forks

SCRIPT = """
import os
from mergeplan.planner import forked
forked.count_processors = lambda: 3

def add_up(batch):
    if {last} in batch:
        os._exit(1)
    return sum(batch)

print(sum(forked.map_in_forks(add_up, range(1000))))
"""
ENDED = """
import os, signal, sys, time
from pathlib import Path
from mergeplan.planner import forked
forked.count_processors = lambda: 2

def fill_pipe(batch):
    Path({folder!r}, str(os.getpid())).touch()
    return "x" * 200_000

def stop(number, frame):
    sys.exit(7)

os.setpgid(0, 0)
signal.signal(signal.SIGTERM, stop)
for result in forked.map_in_forks(fill_pipe, range(1000)):
    if len(os.listdir({folder!r})) == 2:
        {end}
"""


def add_up(last: int) -> str:
    """Run the script, in a process without threads."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT.format(last=last)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout.strip()


def test_each_batch_is_worked_on_once() -> None:
    assert add_up(-1) == str(sum(range(1000)))


def test_a_fork_that_ends_early_loses_only_results_of_its_own() -> None:
    # 40 batches of 25: the first of 3 forks works on each third one, and ends at its last one
    assert add_up(975) == str(sum(range(975)))


def run_command(folder: Path, end: str) -> subprocess.CompletedProcess[str]:
    """Run a command with two forks that write their pids, and that ends as it says after its first result."""
    script = ENDED.format(folder=str(folder), end=end)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os.killpg(0, 15)", "os.kill(os.getpid(), 15)"])
def test_forks_end_with_their_command_and_without_a_word(end: str, tmp_path: Path) -> None:
    done = run_command(tmp_path, f"{end}; time.sleep(30)")

    assert done.returncode != 0 and done.stderr == ""
    forks = [int(file.name) for file in tmp_path.iterdir()]
    assert len(forks) == 2
    for _ in range(100):
        if not any(Path(f"/proc/{fork}").exists() for fork in forks):
            break
        time.sleep(0.1)
    assert not any(Path(f"/proc/{fork}").exists() for fork in forks)


def test_a_process_with_threads_is_not_forked() -> None:
    released = threading.Event()
    thread = threading.Thread(target=released.wait)
    thread.start()
    try:
        assert count_processors() == 1
    finally:
        released.set()
        thread.join()


@pytest.mark.parametrize(("quota", "count"), [("50000 100000", 1), ("200000 100000", 2), ("max 100000", 4), ("", 4)])
def test_a_container_has_no_more_forks_than_processors(
    quota: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked.os, "sched_getaffinity", lambda pid: range(64))
    monkeypatch.setattr(forked, "_THREADS", tmp_path / "task")
    monkeypatch.setattr(forked, "_QUOTA", tmp_path / "cpu.max")
    (tmp_path / "task" / "1").mkdir(parents=True)
    (tmp_path / "cpu.max").write_text(quota)

    assert count_processors() == count


def test_nothing_to_do_starts_no_fork() -> None:
    assert list(map_in_forks(len, [])) == []
