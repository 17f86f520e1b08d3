"""The user and the limits of a process: a separate user if root starts it, no capabilities, limited resources."""

import ctypes
import os
import resource
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mergeplan.planner.isolation.system import prctl

OWN_USER = 61_110  # unused: above the ids of people and packages, below those that systemd lends
READ_ANYTHING = 2  # CAP_DAC_READ_SEARCH; Landlock decides what may be read
# What Spark's Java keeps of root's: files of its own folders, whatever their owner, and workers with a separate user
# (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP).
OF_SPARK = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8
PR_SET_KEEPCAPS, PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_CAP_AMBIENT = 8, 23, 24, 47
AMBIENT_RAISE, AMBIENT_CLEAR = 2, 4
CAPABILITIES = 0x20080522  # the version of the structure below
MORE_TASKS = 4096  # processes and threads beyond those that the user has
GIB = 1 << 30


def become_own_user() -> None:
    """Become a user that owns nothing else, with no right of root's left but to read; raise OSError if it fails."""
    capabilities = _read_capabilities()
    for capability in range(64):
        with suppress(OSError):  # there are not as many
            if prctl(PR_CAPBSET_READ, capability) and capability != READ_ANYTHING:
                prctl(PR_CAPBSET_DROP, capability)
    prctl(PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(OWN_USER, OWN_USER, OWN_USER)
    os.setresuid(OWN_USER, OWN_USER, OWN_USER)
    keep_capabilities(capabilities & 1 << READ_ANYTHING)


def keep_capabilities(capabilities: int) -> None:
    """Keep only these capabilities (a bit each), also after the next program starts; raise OSError if it fails."""
    header = ctypes.create_string_buffer(struct.pack("Ii", CAPABILITIES, 0))
    data = ctypes.create_string_buffer(
        struct.pack("III", capabilities, capabilities, capabilities) + struct.pack("III", 0, 0, 0)
    )
    prctl(PR_CAP_AMBIENT, AMBIENT_CLEAR)
    if ctypes.CDLL(None, use_errno=True).capset(header, data):
        raise OSError(ctypes.get_errno(), "capset")
    for capability in range(32):
        if capabilities & 1 << capability:
            prctl(PR_CAP_AMBIENT, AMBIENT_RAISE, capability)


def keep_few_capabilities() -> None:
    """Keep, as root, only the capabilities that Spark needs, otherwise none; raise OSError if it fails."""
    keep_capabilities(_read_capabilities() & OF_SPARK if os.getuid() == 0 else 0)


def end_first() -> None:
    """Let the kernel kill this process and its children first, not Spark or the planner, if memory runs out."""
    with suppress(PermissionError):  # below a confined Spark, which writes nothing in /proc
        Path("/proc/self/oom_score_adj").write_text("1000")


def limit_process(memory: int, seconds: int) -> None:
    """Limit memory (GiB), processor time, processes, open files and the size of files."""
    # the limit counts all processes and threads of our user
    user_id, count = os.getuid(), 0
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if place.stat().st_uid == user_id:
                count += len(os.listdir(place / "task"))
    limits: Mapping[int, int] = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: memory * GIB,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: memory * GIB,
        resource.RLIMIT_NOFILE: 1024,
        resource.RLIMIT_NPROC: count + MORE_TASKS,
        resource.RLIMIT_MEMLOCK: 64 << 20,
    }
    for kind, maximum in limits.items():
        hard = resource.getrlimit(kind)[1]
        maximum = maximum if hard == resource.RLIM_INFINITY else min(maximum, hard)
        resource.setrlimit(kind, (maximum, maximum))


def _read_capabilities() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapPrm:")), 16)
