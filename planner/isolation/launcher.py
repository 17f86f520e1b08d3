"""Restricts its own process to what a profile allows, and then becomes the program to start.

It runs before any code of a project, with nothing imported but Python's own library. If a restriction fails, it exits.
"""

import os
import socket
import sys

from mergeplan.planner.isolation import landlock, seccomp, user
from mergeplan.planner.isolation.profile import DEVICES, IsolationProfile, profile_from
from mergeplan.planner.isolation.seccomp import Network
from mergeplan.planner.isolation.system import PR_SET_NO_NEW_PRIVS, prctl

FAILED = 125  # exit code
SAYS = "It cannot be isolated: "


def main() -> None:
    profile, command = profile_from(sys.argv[1]), sys.argv[2:]
    try:
        restrict_process(profile)
        os.execv(command[0], command)  # noqa: S606  # that it starts a program is its purpose
    except (OSError, KeyError, ValueError) as error:
        sys.stderr.write(f"{SAYS}{error}\n")
        sys.exit(FAILED)


def restrict_process(profile: IsolationProfile) -> None:
    """Restrict this process to what the profile allows; raise OSError, or KeyError for an unknown architecture."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if profile.network is Network.LISTED:
        user.keep_few_capabilities()
    else:
        user.end_first()
    if profile.own_user and os.getuid() == 0:
        user.become_own_user()
    elif profile.own_user:
        user.keep_capabilities(0)
    if profile.limited:
        user.limit_process(profile.memory, profile.seconds)
    version = landlock.version()
    if version < landlock.FLOOR:
        raise OSError(f"Landlock {landlock.FLOOR} is needed, and there is {version or 'none'}")
    writes = (*profile.write, *DEVICES)
    landlock.restrict_files(profile.read, writes, network=profile.network is Network.LISTED)
    listener = seccomp.filter_calls(profile.network, signals_kept=version >= 6, modes=profile.modes)
    if listener >= 0:
        with socket.socket(fileno=profile.listener) as line:  # to the parent, which handles `connect`
            socket.send_fds(line, [b"!"], [listener])
        os.close(listener)
