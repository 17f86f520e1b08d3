"""Whether this machine can isolate: tested with a process that tries everything that must not work."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from mergeplan.planner.isolation.connecting import ConnectionProxy
from mergeplan.planner.isolation.gate import ConnectionGate
from mergeplan.planner.isolation.interpreter import libraries
from mergeplan.planner.isolation.launcher import SAYS
from mergeplan.planner.isolation.profile import IsolationProfile
from mergeplan.planner.isolation.seccomp import Network

# Each line must fail; a number says which did not.
ATTACK = """
import os, socket, sys
secret, scratch = sys.argv[1:]
def works(attack):
    try:
        attack()
    except OSError:
        return False
    return True
attacks = [
    lambda: open(secret).read(),
    lambda: open(secret, "a"),
    lambda: os.truncate(secret, 0),
    lambda: os.chmod(secret, 0o777),
    lambda: os.listdir(os.path.dirname(secret)),
    lambda: os.kill(os.getppid(), 0),
    lambda: os.listdir("/proc"),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
    lambda: socket.socket(socket.AF_UNIX).connect(os.path.join(os.path.dirname(secret), "socket")),
]
broken = [str(number) for number, attack in enumerate(attacks, 1) if works(attack)]
open(os.path.join(scratch, "written"), "w").write("here I may")
print(",".join(broken) or "isolated")
"""


@cache
def cannot() -> str:
    """Why this machine cannot isolate project code, '' when it can. Tested once per process."""
    if sys.platform != "linux":
        return f"this is {sys.platform}, not Linux"
    with tempfile.TemporaryDirectory(prefix="mergeplan-probe-") as folder:
        secret, scratch = Path(folder, "secret"), Path(folder, "scratch")
        secret.write_text("secret")
        secret.chmod(0o666)
        scratch.mkdir(mode=0o777)
        scratch.chmod(0o777)
        Path(folder).chmod(0o755)
        return _tried(secret, scratch)


def _tried(secret: Path, scratch: Path) -> str:
    proxy = ConnectionProxy(scratch / "nobody.sock")
    profile = IsolationProfile(libraries(sys.executable, {}, "-I", "-S"), (str(scratch),)).listening(proxy.descriptor)
    command = profile.launched([sys.executable, "-I", "-S", "-c", ATTACK, str(secret), str(scratch)])
    try:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            pass_fds=(proxy.descriptor,), cwd="/",
        ) as process:  # fmt: skip
            proxy.started()
            output, wrong = process.communicate(timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        return f"a process that was to be isolated did not run ({error})"
    if process.returncode:
        return (wrong.strip().splitlines() or ["a process that was isolated failed"])[-1].removeprefix(SAYS).rstrip(".")
    return "" if output.strip() == "isolated" else f"attacks on it succeeded ({output.strip()})"


# The first and the second must work, the others must fail.
CONFINED = """
import os, socket, sys
secret, scratch, port = sys.argv[1:]
def works(attack):
    try:
        attack()
    except OSError:
        return False
    return True
def reach_own():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        socket.create_connection(server.getsockname(), 10).close()
allowed = [reach_own, lambda: open(os.path.join(scratch, "mine"), "w").close()]
attacks = [
    lambda: open(secret).read(),
    lambda: open(secret, "a"),
    lambda: socket.create_connection(("127.0.0.1", int(port)), 10),
    lambda: socket.create_connection(("::1", int(port)), 10),
    lambda: socket.socket(socket.AF_UNIX).connect(os.path.join(os.path.dirname(secret), "socket")),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
]
wrong = [f"+{at}" for at, attempt in enumerate(allowed, 1) if not works(attempt)]
wrong += [f"-{at}" for at, attack in enumerate(attacks, 1) if works(attack)]
print(",".join(wrong) or "confined")
"""


@cache
def cannot_confine() -> str:
    """Why this machine cannot confine a process that needs connections, '' when it can. Tested once per process."""
    if why := cannot():
        return why
    with tempfile.TemporaryDirectory(prefix="mergeplan-probe-") as folder:
        secret, scratch = Path(folder, "secret"), Path(folder, "scratch")
        secret.write_text("secret")
        scratch.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
            local.bind(str(Path(folder, "socket")))
            local.listen()
            return _confined(secret, scratch, server.getsockname()[1])


def _confined(secret: Path, scratch: Path, port: int) -> str:
    gate = ConnectionGate((), (scratch,), lambda address: None)
    read = (*libraries(sys.executable, {}, "-I", "-S"), "/proc")
    profile = IsolationProfile(read, (str(scratch),), Network.LISTED, own_user=False, limited=False)
    arguments = [sys.executable, "-I", "-S", "-c", CONFINED, str(secret), str(scratch), str(port)]
    try:
        with subprocess.Popen(
            profile.listening(gate.descriptor).launched(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, text=True, pass_fds=(gate.descriptor,), cwd="/",
        ) as process:  # fmt: skip
            gate.process = process.pid
            gate.started()
            output, wrong = process.communicate(timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        return f"a process that was to be confined did not run ({error})"
    if process.returncode:
        return (wrong.strip().splitlines() or ["a process that was confined failed"])[-1].removeprefix(SAYS).rstrip(".")
    return "" if output.strip() == "confined" else f"it is not confined ({output.strip()})"
