"""How the child in which a project's Python runs is isolated, and that it is refused where it cannot be.

It reads the interpreter, the libraries that it may import and its own project, writes a folder of its own, and connects
to the socket `spark.sock` beside that folder, whatever address it names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from planner.errors import Refused
from planner.isolation.connecting import WayOut
from planner.isolation.mode import NO_ISOLATION, Isolation, isolation_of
from planner.isolation.probe import cannot
from planner.isolation.profile import Profile, libraries, without
from planner.isolation.user import OWN_USER

__all__ = ["NO_ISOLATION", "Isolation", "isolated", "isolation_of"]
SOCKET = "spark.sock"
HINT = (
    "The operator can run it on Linux 6.2 or newer with Landlock, or say that code may run without isolation: "
    "MERGEPLAN_ISOLATION=none."
)


def isolated(
    start: Callable[[Sequence[str], Sequence[int]], subprocess.Popen[bytes]],
    command: Sequence[str],
    root: Path,
    scratch: Path,
    isolation: Isolation,
) -> subprocess.Popen[bytes]:
    """The command's process, isolated; Refused when this machine cannot."""
    if why := cannot():
        raise Refused(f"The project brings Python code, and it cannot be isolated here: {why}.", hint=HINT)
    own_folder(scratch / "home")
    scratch.chmod(0o711)  # its socket and its home can be reached, and nothing else be seen
    profile = code_profile(root, scratch, isolation)
    way_out = WayOut(scratch / SOCKET)
    process = start(profile.listening(way_out.descriptor).launched(command), (way_out.descriptor,))
    way_out.started()
    return process


def code_profile(root: Path, scratch: Path, isolation: Isolation) -> Profile:
    """What project code may do."""
    read = (*libraries(_import_path(os.environ.get("PYTHONPATH", ""))), str(root))
    home = str(scratch / "home")
    return Profile(without(read, isolation.hidden), (home,), memory=isolation.memory)


def own_folder(folder: Path) -> None:
    """Let the user that project code has write there."""
    if os.getuid() == 0:
        os.chown(folder, OWN_USER, OWN_USER)


@cache
def _import_path(_: str) -> tuple[str, ...]:
    """Where a child imports from: what it says itself."""
    command = [sys.executable, "-P", "-s", "-c", "import sys; print(*sys.path, sep='\\0', end='')"]
    return tuple(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split("\0"))
