"""Processes of this machine, identified by pid and start time, because pids are reused."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from functools import cache
from pathlib import Path

POLL_SECONDS = 0.05
CANCEL = signal.SIGTERM  # the planner ends what it has begun on Spark
LEAVE = signal.SIGUSR1  # it leaves what a Spark Connect server continues: the next planner waits for that


def birth(pid: int) -> str:
    """Return the start time of a process, as the system writes it; '' for a missing process or a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.parent.parent.joinpath("self").exists():
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] == "Z" else fields[19]
    listed = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(int(pid))], capture_output=True, text=True, check=False
    )
    state, _, began = listed.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else began.strip()


@cache
def machine_id() -> str:
    """Return an id of the host, its boot and the container's pids: the processes that are visible from here.

    Two containers may have one host's name, and count their processes each from 1. One must not take the other's
    processes, which it cannot see, for dead.
    """
    start = namespace = ""
    with contextlib.suppress(OSError):
        start = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
        namespace = "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
    return "/".join(filter(None, (socket.gethostname(), start, namespace)))


def this_process() -> str:
    """Return a name for this process that no other ever has: machine, pid, start time."""
    return f"{machine_id()}:{os.getpid()}:{birth(os.getpid())}"


def is_gone(name: str) -> bool:
    """Return True if `this_process` gave that name on this machine and the process has ended."""
    where, pid, began = name.split(":", 2)
    return where == machine_id() and birth(int(pid)) != began


def end_group(pid: int, began: str, grace: float, first_signal: signal.Signals = CANCEL) -> bool:
    """End the group that a child leads, with `first_signal`, then SIGKILL; return False if there is none."""
    if not began or birth(pid) != began:
        return False
    try:
        if os.getpgid(pid) != pid:
            return False
        os.killpg(pid, first_signal)
        deadline = time.monotonic() + grace
        while birth(pid) == began and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    except (ProcessLookupError, PermissionError):
        return False
    signal_group(pid, signal.SIGKILL)  # whatever of the group is left, grandchildren included
    return True


def signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
