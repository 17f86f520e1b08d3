"""An isolated child: what is left to it works, and the one way out leads to its socket whatever it asks for."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.python.host import Child
from mergeplan.planner.python.isolation import Isolation

pytestmark = pytest.mark.skipif(bool(cannot()), reason=f"this machine cannot isolate: {cannot()}")


def message_of(root: Path, code: str, *hidden: Path) -> str:
    """What a module says that is imported in an isolated child."""
    child = Child(root, {"a.py": code}, Isolation(True, hidden))
    try:
        return str(child.ask({"op": "load", "paths": ["a.py"]}, 60)["errors"][0]["message"])
    finally:
        child.stop()


def test_it_reads_its_project_and_writes_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1,2")
    code = (
        "import os, pandas\nopen(os.environ['HOME'] + '/x', 'w').write('x')\nraise ValueError(open('data.csv').read())"
    )

    assert message_of(tmp_path, code) == "ValueError: 1,2"


def test_what_is_hidden_within_the_project_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".mergeplan").mkdir()
    (tmp_path / ".mergeplan" / "state.db").write_text("secret")
    code = "raise ValueError(open('.mergeplan/state.db').read())"

    assert message_of(tmp_path, code) == "ValueError: secret"
    assert message_of(tmp_path, code, tmp_path / ".mergeplan").startswith("PermissionError")


@pytest.mark.parametrize("address", ["'/var/run/postgresql/.s.PGSQL.5432'", "'\\\\0hidden'", "os.environ['HOME']"])
def test_whatever_it_connects_to_is_its_own_socket(address: str, tmp_path: Path) -> None:
    code = f"import os, select, socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({address})\n"
    child = Child(
        tmp_path,
        {"a.py": f"{code}select.select([s], [], [])\nraise ValueError(s.recv(10).decode())\n"},
        Isolation(True),
    )
    with closing(socket.socket(socket.AF_UNIX)) as door:
        door.bind(str(child.scratch / "spark.sock"))
        door.listen()
        door.settimeout(60)
        child._request_pipe.write(b'{"op": "load", "paths": ["a.py"]}\n')
        child._request_pipe.flush()
        with closing(door.accept()[0]) as line:
            line.sendall(b"the door")
            answer = child._await_answer(60)
    child.stop()

    assert answer["errors"][0]["message"] == "ValueError: the door"


def test_folders_without_an_end_are_removed(tmp_path: Path) -> None:
    """shutil.rmtree goes by recursion and holds a descriptor for each level: either has an end."""
    code = "import os\nos.chdir(os.environ['HOME'])\nfor _ in range(3000):\n  os.mkdir('a')\n  os.chdir('a')\n"
    child = Child(tmp_path, {"a.py": f"{code}os.symlink('/etc', 'b')\nos.mkdir('c', 0)\n"}, Isolation(True))
    assert child.ask({"op": "load", "paths": ["a.py"]}, 60)["errors"] == []
    child.stop()

    assert not child.scratch.exists()


def test_nothing_of_it_outlives_the_planner(tmp_path: Path) -> None:
    """The planner is killed while a model and a process of the model's go on: both end at once."""
    code = "import os, time\nos.fork()\nprint('PID', os.getpid(), flush=True)\ntime.sleep(600)\n"
    (tmp_path / "run.py").write_text(
        "from pathlib import Path\nfrom mergeplan.planner.python.host import Child\n"
        "from mergeplan.planner.python.isolation import Isolation\n"
        f"child = Child(Path({str(tmp_path)!r}), {{'a.py': {code!r}}}, Isolation(True))\n"
        "child.ask({'op': 'load', 'paths': ['a.py']}, 600)\n"
    )
    with subprocess.Popen([sys.executable, str(tmp_path / "run.py")], stderr=subprocess.PIPE, text=True) as planner:
        assert planner.stderr
        held = [os.pidfd_open(int(planner.stderr.readline().split()[1])) for _ in range(2)]
        planner.kill()
    ended = [select.select([pidfd], [], [], 60)[0] == [pidfd] for pidfd in held]
    for descriptor in held:
        os.close(descriptor)

    assert ended == [True, True]


def test_it_is_the_first_to_go_when_memory_runs_out(tmp_path: Path) -> None:
    code = "import os, time\nprint('PID', os.getpid(), flush=True)\ntime.sleep(600)\n"
    child = Child(tmp_path, {"a.py": code}, Isolation(True))
    score = Path(f"/proc/{child._process.pid}/oom_score_adj").read_text()
    child.stop()

    assert score == "1000\n"


def test_it_is_gone_with_all_that_it_wrote(tmp_path: Path) -> None:
    child = Child(tmp_path, {"a.py": "import os\nos.makedirs(os.environ['HOME'] + '/a/b')\n"}, Isolation(True))
    child.ask({"op": "load", "paths": ["a.py"]}, 60)
    child.stop()

    assert not child.scratch.exists()
