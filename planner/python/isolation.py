"""Isolates the child in which a project's Python runs, and fails if that is not possible.

It reads the interpreter, the libraries that it may import and its own project, writes a folder of its own, and connects
to the socket `spark.sock` beside that folder, whatever address it names.
"""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from mergeplan.planner.errors import Refused
from mergeplan.planner.isolation.connecting import ConnectionProxy
from mergeplan.planner.isolation.interpreter import libraries
from mergeplan.planner.isolation.mode import NO_ISOLATION, Isolation, isolation_of
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.isolation.profile import IsolationProfile, exclude_hidden
from mergeplan.planner.isolation.user import OWN_USER

__all__ = ["NO_ISOLATION", "SOCKET", "Isolation", "isolation_of", "start_isolated"]
SOCKET = "spark.sock"
OPTIONS = ("-P", "-s")  # of the child's Python: its own folder and the user's own libraries are not imported from
HINT = (
    "The operator can run it on Linux 6.2 or newer with Landlock, or allow code to run without isolation: "
    "MERGEPLAN_ISOLATION=none."
)


def start_isolated(
    start: Callable[[Sequence[str], Sequence[int]], subprocess.Popen[bytes]],
    command: Sequence[str],
    root: Path,
    scratch: Path,
    isolation: Isolation,
    options: Sequence[str] = OPTIONS,
) -> subprocess.Popen[bytes]:
    """Start a command of Python with these options, isolated; raise Refused if this machine cannot isolate."""
    if obstacle := cannot():
        raise Refused(f"The project's code cannot be isolated here: {obstacle}.", hint=HINT)
    home = scratch / "home"
    if os.getuid() == 0:
        os.chown(home, OWN_USER, OWN_USER)  # the user of project code writes there
    scratch.chmod(0o711)  # its socket and its home are accessible, but cannot be listed
    packages = (str(isolation.packages),) if isolation.packages else ()
    read = (*libraries(command[0], os.environ, *options), *packages, str(root))
    profile = IsolationProfile(exclude_hidden(read, isolation.hidden), (str(home),), memory=isolation.memory)
    proxy = ConnectionProxy(scratch / SOCKET)
    try:
        return start(profile.listening(proxy.descriptor).launch_command(command), (proxy.descriptor,))
    finally:
        proxy.start()
