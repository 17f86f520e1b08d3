"""The planner on a kernel without Landlock: its calls do not exist for this process, nor for those that it starts."""

import ctypes
import errno
import os
import struct
import sys

from mergeplan.planner.isolation import seccomp
from mergeplan.planner.isolation.seccomp import SPECIAL
from mergeplan.planner.isolation.system import LANDLOCK_CREATE, PR_SET_NO_NEW_PRIVS, machine_name, prctl, system_call

STEPS = (
    (seccomp.LOAD, 0, 0, seccomp.NUMBER),
    (seccomp.JUMP_EQUAL, 0, 1, LANDLOCK_CREATE),
    (seccomp.RETURN, 0, 0, 0x00050000 | errno.ENOSYS),
    (seccomp.RETURN, 0, 0, seccomp.ALLOW),
)
CODE = b"".join(struct.pack("HBBI", *step) for step in STEPS)
HELD = ctypes.create_string_buffer(CODE, len(CODE))
FILTER = struct.pack("HxxxxxxQ", len(STEPS), ctypes.addressof(HELD))

prctl(PR_SET_NO_NEW_PRIVS, 1)
system_call(SPECIAL[machine_name()]["seccomp"], seccomp.SET_FILTER, 0, ctypes.create_string_buffer(FILTER, len(FILTER)))
os.execv(sys.executable, [sys.executable, "-P", "-m", "mergeplan.planner.cli.main", *sys.argv[1:]])  # noqa: S606  # that it starts the planner is its purpose
