"""A door of Spark that no check guards leads into an empty room: its Java process reads and reaches nothing else."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mergeplan.planner.isolation.probe import cannot_confine
from tests.safety.scene import SECRET

NOBODY = 65_534  # a user with a name: Hadoop asks for one
SYSTEM_PYTHON = "/usr/bin/python3"
# In a process of its own: a process has one Spark. What it may not do goes past every check, to Java itself.
PROGRAM = Path(__file__).with_name("confined_program.py")

pytestmark = pytest.mark.skipif(bool(cannot_confine()), reason=f"this machine cannot confine: {cannot_confine()}")
ATTACKS = {
    "read", "read_url", "read_dtd", "read_by_program", "read_environment", "list_folder", "write", "connect",
    "fetch_url", "fetch_dtd", "send_packet", "look_up_name", "connect_locally",
}  # fmt: skip


@dataclass
class Room:
    """What there is to read and to reach around a Spark, and what was sent there."""

    folder: Path
    port: int = 0
    heard: list[bytes] = field(default_factory=list)

    @property
    def targets(self) -> dict[str, str]:
        return {
            "secret": str(self.folder / "home" / "key.pem"), "home": str(self.folder / "home"),
            "dtd": str(self.folder / "home" / "a.dtd"),
            "port": str(self.port), "socket": str(self.folder / "db.sock"), "parent": str(os.getpid()),
        }  # fmt: skip


@contextmanager
def room() -> Iterator[Room]:
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as server:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "home").mkdir(mode=0o755)
        (folder / "home" / "key.pem").write_text(SECRET)
        (folder / "home" / "a.dtd").write_text(f'<!ENTITY x "{SECRET}">')
        (folder / "home").chmod(0o777)
        with socket.socket(socket.AF_UNIX) as local:
            local.bind(str(folder / "db.sock"))
            (folder / "db.sock").chmod(0o777)
            local.listen()
            planted = Room(folder, server.getsockname()[1])
            threading.Thread(target=listen, args=(server, planted.heard), daemon=True).start()
            yield planted


def listen(server: socket.socket, heard: list[bytes]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.settimeout(2)
            heard.append(b"connected " + connection.recv(1000))
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n<!ENTITY x 'y'>")


def run(planted: Room, *, user: int | None = None, **variables: str) -> tuple[dict[str, str], dict[str, str]]:
    """What the attacks got, '' where they failed, and what the ordinary work of a plan came to."""
    python = SYSTEM_PYTHON if user else sys.executable
    paths = os.pathsep.join([str(PROGRAM.parents[2]), *(path for path in sys.path if path.endswith("site-packages"))])
    environment = {"PATH": os.defpath, "HOME": str(planted.folder / "home"), "PYTHONPATH": paths, **variables}
    java = os.environ.get("JAVA_HOME")
    environment |= {"JAVA_HOME": java} if java else {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        [python, str(PROGRAM), json.dumps(planted.targets), str(planted.folder / "state")], env=environment, cwd="/",
        capture_output=True, text=True, timeout=900, check=False, user=user, group=user,
        extra_groups=None if user is None else [],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line.partition(" ")[2]) for line in done.stdout.splitlines() if line.startswith("GOT ")]
    got = dict(lines)
    return {name: got.pop(name) for name in list(got) if name in ATTACKS}, got


WORK = {
    "table": "3", "partitions": "2", "collected": "40000", "function": "[1, 2, 3]", "frame": "[7, 8]",
    "accumulated": "45", "own file": "1",
}  # fmt: skip


def test_a_confined_spark_reads_and_reaches_nothing_and_works() -> None:
    with room() as planted:
        attacks, work = run(planted, MERGEPLAN_ISOLATION="required")

    assert attacks == dict.fromkeys(ATTACKS, "")
    assert planted.heard == []
    assert work == {**WORK, "reason": ""}


@pytest.mark.prove
@pytest.mark.skipif(os.getuid() != 0 or not shutil.which(SYSTEM_PYTHON), reason="needs root, and the system's Python")
def test_an_ordinary_users_spark_is_confined_too() -> None:
    with room() as planted:
        attacks, work = run(planted, user=NOBODY, MERGEPLAN_ISOLATION="required")

    assert (attacks, planted.heard) == (dict.fromkeys(ATTACKS, ""), [])
    assert work == {**WORK, "reason": ""}


@pytest.mark.prove
def test_what_the_operator_allows_is_reached_and_nothing_else() -> None:
    with room() as planted:
        allowed = {
            "MERGEPLAN_ISOLATION_SPARK_ADDRESSES": f"127.0.0.1:{planted.port}, localhost.test:443",
            "MERGEPLAN_ISOLATION_SPARK_FOLDERS": str(planted.folder / "home"),
        }
        attacks, work = run(planted, MERGEPLAN_ISOLATION="required", **allowed)

    assert planted.heard
    wanted = {"read", "read_url", "read_by_program", "list_folder", "write", "connect", "fetch_url", "fetch_dtd"}
    assert {name for name, got in attacks.items() if got} >= wanted
    assert not {"read_environment", "send_packet", "connect_locally"} & {name for name, got in attacks.items() if got}
    assert work["reason"] == ""


@pytest.mark.prove
def test_the_attacks_are_real() -> None:
    with room() as planted:
        attacks, work = run(planted, MERGEPLAN_ISOLATION="required", MERGEPLAN_ISOLATION_SPARK="none")

    assert {name for name, got in attacks.items() if not got} <= {"read_environment", "look_up_name"}
    assert len(planted.heard) >= 3
    assert work == {**WORK, "reason": "MERGEPLAN_ISOLATION_SPARK=none"}
