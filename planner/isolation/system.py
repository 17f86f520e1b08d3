"""Linux system calls by number, for which the C library has no function."""

import ctypes
import os
import platform
import sys
from contextlib import suppress

LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446  # the same on every architecture
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38


def system_call(number: int, *arguments: int | ctypes.Array[ctypes.c_char] | None) -> int:
    """Return the result of a system call; raise OSError if it fails."""
    c_arguments = [argument if not isinstance(argument, int) else ctypes.c_long(argument) for argument in arguments]
    return _check_result(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *c_arguments))


def prctl(option: int, *arguments: int) -> int:
    """Return the result of prctl(2); raise OSError if it fails."""
    c_arguments = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:4]]
    return _check_result(ctypes.CDLL(None, use_errno=True).prctl(option, *c_arguments))


def hide_process() -> None:
    """Hide this process's memory, environment and open files from others of its user: on Linux, /proc shows them."""
    if sys.platform == "linux":
        with suppress(OSError):
            prctl(PR_SET_DUMPABLE, 0)


def machine_name() -> str:
    return platform.machine()


def _check_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
