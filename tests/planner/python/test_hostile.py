"""Project code that does not behave: it is told with its file and line, in one sentence, and soon."""

from __future__ import annotations

import os
import re
import signal
import tracemalloc
from pathlib import Path

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.python.host import MOST_SAID, Child
from tests.planner.project.test_loader import NOW, project_of

BAD = {
    "leaves at once": ("import os\nos._exit(3)\n", "Python ended with exit code 3, and with it this run"),
    "leaves": ("raise SystemExit(0)\n", "It exited Python: SystemExit: 0"),
    "kills itself": ("import os\nos.kill(os.getpid(), 9)\n", "Python ended by signal 9"),
    "never returns": ("def f(): f()\nf()\n", "RecursionError: maximum recursion depth exceeded"),
    "half a character": ("raise Exception('\\ud800 \\x1b[31m')\n", "Exception: ? [31m."),
    "no text": ("class E(Exception):\n  def __str__(self): raise ValueError('no')\nraise E()\n", "ValueError: no"),
    "a reason after much else": ("raise Exception('name ' * 999 + 'is not allowed')\n", "name is not allowed"),
    "a long name": ("class E(Exception): pass\nE.__name__ = 'a\\n' * 2000\nraise E()\n", "a a a"),
    "answers by itself": (
        "import os\nfor each in range(3, 20):\n  try: os.write(each, b'{}\\n')\n  except OSError: pass\n",
        "failed",
    ),
}


@pytest.mark.parametrize(("text", "told"), BAD.values(), ids=BAD)
def test_code_that_misbehaves_is_told_in_a_sentence(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as error:
        load_project(project_of(tmp_path, {"macros/m.py": text}), NOW)

    said = str(error.value)
    assert said.startswith("macros/m.py:")
    assert told in said
    assert said.isprintable()
    assert len(said) < 800


def test_code_finds_no_descriptor_of_the_planners(tmp_path: Path) -> None:
    """Its own two pipes, by which it is asked and answers, are all that is open besides the three of every process."""
    text = "import os, stat\nfound = []\nfor each in range(3, 256):\n  try: found.append(os.fstat(each).st_mode)\n"
    text += "  except OSError: pass\nraise Exception(f'{len(found)} open, pipes {all(map(stat.S_ISFIFO, found))}')\n"
    secret = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(secret, True)

    with pytest.raises(ProjectError, match="Exception: 2 open, pipes True"):
        load_project(project_of(tmp_path / "project", {"macros/m.py": text}), NOW)

    os.close(secret)


def test_a_process_that_left_the_group_is_not_waited_for(tmp_path: Path) -> None:
    text = "import os, time\nif (pid := os.fork()) == 0:\n  os.setsid()\n  time.sleep(600)\n  os._exit(0)\n"

    with pytest.raises(ProjectError, match=r"Exception: left \d+ behind") as told:
        load_project(project_of(tmp_path, {"macros/m.py": f"{text}raise Exception(f'left {{pid}} behind')\n"}), NOW)

    match = re.search(r"left (\d+) behind", str(told.value))
    assert match
    os.kill(int(match[1]), signal.SIGKILL)  # ProcessLookupError had it been waited for


def test_what_is_printed_without_an_end_is_not_held(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys\nfor _ in range(64): sys.stderr.write('x' * 1_000_000)\nfor _ in range(9999): print('y' * 1999)\n"
    )
    tracemalloc.start()
    child = Child(tmp_path, {"a.py": code})
    child.ask({"op": "load", "paths": ["a.py"]}, 120)
    most = tracemalloc.get_traced_memory()[1]
    child.stop()
    tracemalloc.stop()

    assert most < 20_000_000
    said = capfd.readouterr().err
    size, last = len(said), said[-80:]
    assert size < 2 * MOST_SAID
    assert last.endswith("It printed more, which is not kept.\n")


def test_answers_that_nobody_asked_for_end_it(tmp_path: Path) -> None:
    code = (
        "import os\nfor each in range(3, 20):\n  try:\n    for _ in range(99): os.write(each, b'{\"ok\": 1}\\n')\n"
        "  except OSError: pass\nimport time\ntime.sleep(600)\n"
    )
    child = Child(tmp_path, {"a.py": code})
    child.ask({"op": "load", "paths": ["a.py"]}, 60)
    child._readers[0].join(60)
    held = child._answers.qsize()
    child.stop()

    assert held < 10
