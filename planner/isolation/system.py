"""Linux's own calls by number: what the C library has no function for."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from contextlib import suppress

LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446  # the same on every architecture
PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38


def call(number: int, *arguments: int | ctypes.Array[ctypes.c_char] | None) -> int:
    """What a system call returns; OSError when it fails."""
    given = [each if not isinstance(each, int) else ctypes.c_long(each) for each in arguments]
    return _checked(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *given))


def prctl(option: int, *arguments: int) -> int:
    """What prctl(2) returns; OSError when it fails."""
    given = [ctypes.c_ulong(each) for each in (*arguments, 0, 0, 0, 0)[:4]]
    return _checked(ctypes.CDLL(None, use_errno=True).prctl(option, *given))


def hide_process() -> None:
    """Hide this process's memory, environment and open files from others of its user: on Linux, /proc shows them."""
    if sys.platform == "linux":
        with suppress(OSError):
            prctl(PR_SET_DUMPABLE, 0)


def machine() -> str:
    """The processor's architecture, as the kernel names it."""
    return platform.machine()


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
