"""Batches in forks: all results arrive, and a fork that ends early costs its own results alone."""

from __future__ import annotations

import subprocess
import sys
import threading

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


def test_a_process_with_threads_is_not_forked() -> None:
    released = threading.Event()
    thread = threading.Thread(target=released.wait)
    thread.start()
    try:
        assert count_processors() == 1
    finally:
        released.set()
        thread.join()


def test_nothing_to_do_starts_no_fork() -> None:
    assert list(map_in_forks(len, [])) == []
