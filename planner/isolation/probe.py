"""The test whether this machine can isolate: processes try everything that must not work."""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from mergeplan.planner.isolation.connecting import ConnectionProxy
from mergeplan.planner.isolation.gate import ConnectionGate
from mergeplan.planner.isolation.interpreter import libraries
from mergeplan.planner.isolation.launcher import SAYS
from mergeplan.planner.isolation.profile import IsolationProfile
from mergeplan.planner.isolation.seccomp import Network

PYTHON = (sys.executable, "-I", "-S")
SOUND = "sound"
# All of `allowed` must work, and all of `attacks` fail; else it prints which did not, by sign and number.
PROBE = """
import os, socket, sys
secret, scratch, port = sys.argv[1:]
beside = os.path.join(os.path.dirname(secret), "socket")
def works(attempt):
    try:
        attempt()
    except OSError:
        return False
    return True
def reach_own():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        socket.create_connection(server.getsockname(), 10).close()
allowed = [lambda: open(os.path.join(scratch, "mine"), "w").close()]
attacks = [
    lambda: open(secret).read(),
    lambda: open(secret, "a"),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    lambda: socket.socket(socket.AF_UNIX).connect(beside),
]
%s
wrong = [f"+{at}" for at, attempt in enumerate(allowed, 1) if not works(attempt)]
wrong += [f"-{at}" for at, attack in enumerate(attacks, 1) if works(attack)]
print(",".join(wrong) or "sound")
"""
ISOLATED = (
    PROBE
    % """
attacks += [
    lambda: os.truncate(secret, 0),
    lambda: os.chmod(secret, 0o777),
    lambda: os.listdir(os.path.dirname(secret)),
    lambda: os.kill(os.getppid(), 0),
    lambda: os.listdir("/proc"),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
]
"""
)
CONFINED = (
    PROBE
    % """
allowed.append(reach_own)
attacks += [
    lambda: socket.create_connection(("127.0.0.1", int(port)), 10),
    lambda: socket.create_connection(("::1", int(port)), 10),
]
"""
)


@cache
def cannot() -> str:
    """Return why this machine cannot isolate project code, '' if it can; tested once per process."""
    if sys.platform != "linux":
        return f"this is {sys.platform}, not Linux"
    with _open_scene() as (secret, scratch, port):
        proxy = ConnectionProxy(scratch / "nobody.sock")
        profile = IsolationProfile(libraries(sys.executable, {}, *PYTHON[1:]), (str(scratch),))
        command = profile.listening(proxy.descriptor).launch_command(
            [*PYTHON, "-c", ISOLATED, str(secret), str(scratch), port]
        )
        return _run_probe(command, "isolated", proxy.descriptor, lambda pid: proxy.start())


@cache
def cannot_confine() -> str:
    """Return why this machine cannot confine a process with connections, '' if it can; tested once per process."""
    if obstacle := cannot():
        return obstacle
    with _open_scene() as (secret, scratch, port):
        gate = ConnectionGate((), (scratch,), lambda address: None)
        read = (*libraries(sys.executable, {}, *PYTHON[1:]), "/proc")
        profile = IsolationProfile(read, (str(scratch),), Network.LISTED, own_user=False, limited=False)
        command = profile.listening(gate.descriptor).launch_command(
            [*PYTHON, "-c", CONFINED, str(secret), str(scratch), port]
        )

        def start(pid: int) -> None:
            gate.process = pid
            gate.start()

        return _run_probe(command, "confined", gate.descriptor, start)


@contextmanager
def _open_scene() -> Iterator[tuple[Path, Path, str]]:
    """Yield a secret file and a folder to write in, whose modes let every user access them, and a port.

    The port, and a socket beside them, are listened on.
    """
    with tempfile.TemporaryDirectory(prefix="mergeplan-probe-") as folder:
        secret, scratch = Path(folder, "secret"), Path(folder, "scratch")
        secret.write_text("secret")
        scratch.mkdir()
        for path, mode in ((secret, 0o666), (scratch, 0o777), (Path(folder), 0o755)):
            path.chmod(mode)
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
            local.bind(str(Path(folder, "socket")))
            local.listen()
            yield secret, scratch, str(server.getsockname()[1])


def _run_probe(command: list[str], how: str, descriptor: int, on_start: Callable[[int], None]) -> str:
    """Return why the process of a probe is not isolated or confined; '' if it is."""
    try:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            pass_fds=(descriptor,), cwd="/",
        ) as process:  # fmt: skip
            on_start(process.pid)
            output, errors = process.communicate(timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        return f"a process that was to be {how} did not run ({error})"
    if process.returncode:
        lines = errors.strip().splitlines() or [f"a process that was {how} failed"]
        return lines[-1].removeprefix(SAYS).rstrip(".")
    return "" if output.strip() == SOUND else f"it is not {how} ({output.strip()})"
