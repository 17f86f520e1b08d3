"""Landlock: from now on this process and its children open these files and folders and no others.

https://docs.kernel.org/userspace-api/landlock.html; no privilege is needed. The floor is its version 3 (Linux 6.2), the
first that covers truncating; version 6 (Linux 6.12) also keeps signals inside.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from mergeplan.planner.isolation.system import LANDLOCK_ADD, LANDLOCK_CREATE, LANDLOCK_RESTRICT, system_call

FLOOR = 3
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
DEVICE_NODES = 1 << 6 | 1 << 11  # character and block devices may never be created
LISTED_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE  # the rights that a single file can have
HANDLED = {3: (1 << 15) - 1, 4: (1 << 15) - 1}  # by version, of files; from 5 on also commands to devices
HANDLED_LATER = (1 << 16) - 1
CONNECT_OR_BIND_TCP = 3
SIGNALS_AND_ABSTRACT_SOCKETS = 3
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = HANDLED[3] & ~EXECUTE & ~DEVICE_NODES  # what was written is not run
PATH_BENEATH = 1


def version() -> int:
    """Return the version of Landlock that this kernel has; 0 if it has none, or if it is switched off."""
    try:
        return system_call(LANDLOCK_CREATE, None, 0, 1)
    except OSError:
        return 0


def restrict_files(read: Iterable[str], write: Iterable[str], *, network: bool) -> None:
    """Allow only reading (and running) of `read` and writing of `write`; missing paths are left out.

    `network` leaves TCP as it is. It needs `no_new_privs`. Raise OSError if it fails.
    """
    abi_version = version()
    attributes = struct.pack(
        "QQQ",
        HANDLED.get(abi_version, HANDLED_LATER),
        0 if network or abi_version < 4 else CONNECT_OR_BIND_TCP,
        0 if abi_version < 6 else SIGNALS_AND_ABSTRACT_SOCKETS,
    )
    size = 8 if abi_version < 4 else 16 if abi_version < 6 else 24
    rules = system_call(LANDLOCK_CREATE, ctypes.create_string_buffer(attributes, len(attributes)), size, 0)
    try:
        for path in read:
            _allow_path(rules, path, READ)
        for path in write:
            _allow_path(rules, path, WRITE)
        system_call(LANDLOCK_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _allow_path(rules: int, path: str, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            access &= LISTED_FILES
        rule = struct.pack("=Qi", access, place)
        system_call(LANDLOCK_ADD, rules, PATH_BENEATH, ctypes.create_string_buffer(rule, len(rule)), 0)
    finally:
        os.close(place)
