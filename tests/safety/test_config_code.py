"""A hostile config.py: it reads no secret, changes nothing, reaches nobody, and ends as a sentence, and soon."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from pathlib import Path

import pytest

from mergeplan.planner.errors import ProjectError, Refused
from mergeplan.planner.isolation.mode import Isolation
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.parsing.files.configuration import CodeConfiguration, read_source
from mergeplan.planner.python.config_code.reading import run_config
from tests.safety.scene import SECRET
from tests.sampling import prove_rest

HEAD = "import os, sys\nfrom sqlmesh.core.config import Config\n"
CONFIG = "\nconfig = Config(project=str(got)[:2000])\n"
ENVIRONMENT = {"TOKEN": SECRET, "HOME": "/root", "PATH": os.environ["PATH"]}
REQUIRED = Isolation(required=True)
SECONDS = "mergeplan.planner.python.config_code.reading.SECONDS"
isolated = pytest.mark.skipif(bool(cannot()), reason=f"this machine cannot isolate: {cannot()}")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    monkeypatch.setattr(SECONDS, 15.0)


def run(folder: Path, text: str, isolation: Isolation = REQUIRED) -> CodeConfiguration:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    return run_config(folder, HEAD + text, ENVIRONMENT, isolation)


def failure_text(folder: Path, text: str, isolation: Isolation = REQUIRED) -> str:
    """The sentence of a file that fails."""
    began = time.monotonic()
    with pytest.raises(ProjectError) as error:
        run(folder, text, isolation)
    said = str(error.value)
    assert time.monotonic() - began < 60
    assert said.startswith("config.py:")
    assert said.isprintable()
    assert SECRET not in said
    return said


READS = {
    "its environment": "got = open('/proc/self/environ').read()",
    "its own variables": "import posix\ngot = {**posix.environ}",
    "the modules behind": "got = {**sys.modules['os'].__dict__['environ']}",
    "its parent's environment": "got = open(f'/proc/{os.getppid()}/environ').read()",
    "a folder of keys": "got = os.listdir(os.path.join('/root', '.ssh'))",
    "a planted key": "got = open(KEY).read()",
    "by a program": "import subprocess\ngot = subprocess.run(['/bin/cat', KEY], capture_output=True).stdout",
    "by a link": "os.symlink(KEY, os.path.join(sys.modules['os'].environ['HOME'], 'a'))\n"
    "got = open(os.path.join(sys.modules['os'].environ['HOME'], 'a')).read()",
}


@isolated
@pytest.mark.parametrize("text", READS.values(), ids=READS)
def test_no_secret_is_read(text: str, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(SECRET)
    key.chmod(0o666)
    try:
        said = repr(run(tmp_path / "p", f"KEY = {str(key)!r}\n{text}{CONFIG}"))
    except ProjectError as error:
        said = str(error)

    assert SECRET not in said
    assert "PRIVATE KEY" not in said


@isolated
def test_a_folder_of_pythonpath_around_others_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(SECRET)
    monkeypatch.setenv("PYTHONPATH", tempfile.gettempdir())
    text = f"got = open({str(tmp_path / 'key')!r}).read()"

    assert "PermissionError" in failure_text(tmp_path / "p", text + CONFIG)


@isolated
def test_nobody_is_reached(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = f"import socket\ngot = socket.create_connection(('127.0.0.1', {port}), 5)"
        assert "PermissionError" in failure_text(tmp_path / "p", text + CONFIG)
    assert "config.py:3: " in failure_text(
        tmp_path / "p", "import urllib.request as u; u.urlopen('http://192.0.2.1')" + CONFIG
    )


@isolated
def test_nothing_is_written(tmp_path: Path) -> None:
    for target in ("'models.sql'", "__file__", "'/tmp/mergeplan-attack'", "'../beside'"):
        assert "PermissionError" in failure_text(tmp_path / "p", f"got = open({target}, 'w')" + CONFIG)
    assert [path.name for path in tmp_path.rglob("*")] == ["p"]


ENDS = {
    "leaves at once": ("os._exit(0)", "Python ended with exit code 0"),
    "leaves": ("sys.exit()", "It exited Python"),
    "kills itself": ("os.kill(os.getpid(), 9)", "Python ended by signal 9"),
    "allocates": ("got = bytearray(3 << 30)", "MemoryError"),
    "grows": ("got = []\nwhile True: got.append('x' * 10**7)", "MemoryError"),
    "never returns": ("def f(): f()\nf()", "RecursionError"),
    "is deep": ("got = " + "(" * 5_000 + ")" * 5_000, "config.py:"),
    "is deeper": ("got = " + "-" * 60_000 + "1", "config.py:"),
    "is a tower": ("got = x" + ".y" * 30_000, "config.py:"),
    "is long": ("x = 1\n" * 60_000, "more than 100000 characters"),
    "answers a lot": ("got = 'x' * 10**8\nconfig = Config(a=got)\nraise Exception(got)", "Exception: xxx"),
}


@pytest.mark.parametrize("isolation", [pytest.param(REQUIRED, marks=isolated), Isolation()])
@pytest.mark.parametrize(("text", "said"), ENDS.values(), ids=ENDS)
def test_however_it_ends_it_is_told_in_a_sentence(text: str, said: str, isolation: Isolation, tmp_path: Path) -> None:
    assert said in failure_text(tmp_path / "p", text, isolation)


@pytest.mark.parametrize("isolation", [pytest.param(REQUIRED, marks=isolated), Isolation()])
@pytest.mark.parametrize(
    "text", prove_rest(["while True: pass", "import time\ntime.sleep(600)"]), ids=["loops", "waits"]
)
def test_what_does_not_end_is_ended(
    text: str, isolation: Isolation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SECONDS, 3.0)

    assert "It took longer than 3 seconds." in failure_text(tmp_path / "p", text, isolation)


@isolated
def test_what_it_prints_is_not_held(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "p", "for n in range(1_000_000): print('line', n)\ngot = 1" + CONFIG)

    said = capfd.readouterr().err
    assert len(said) < 10_000_000
    assert said.endswith("It printed more, which is not kept.\n")


@isolated
def test_what_it_forked_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SECONDS, 3.0)  # so long they fork
    text = "import time\nif os.fork() == 0:\n  time.sleep(600)\n  os._exit(0)\nfor n in range(20): os.fork()\n"

    began = time.monotonic()
    with pytest.raises(ProjectError):
        run(tmp_path / "p", text + "os._exit(1)")

    assert time.monotonic() - began < 40


FORGED = {
    "a value that is none": '{"ok": {"value": [], "lines": [], "unclear": [], "variables": []}}',
    "a variable that is not read": '{"ok": {"value": {"a": "\\ue0107:TOKEN\\ue011"}, "lines": [], "unclear": [], '
    '"variables": []}}',
    "a name that is none": '{"ok": {"value": {}, "lines": [], "unclear": [], "variables": [{"name": "A; B"}]}}',
    "a filter that is none": '{"ok": {"value": {}, "lines": [], "unclear": [], "variables": [{"name": "A", '
    '"filters": ["eval"]}]}}',
    "a place elsewhere": '{"error": {"message": "x", "path": "../../etc/passwd", "line": 1}}',
    "lines without an end": '{"ok": {"value": {}, "lines": [[["a"], -1]], "unclear": [], "variables": []}}',
    "no JSON": "hello",
}


@pytest.mark.parametrize("reply", FORGED.values(), ids=FORGED)
def test_a_forged_answer_is_data_like_any_other(reply: str, tmp_path: Path) -> None:
    text = f"for each in range(3, 20):\n  try: os.write(each, {reply!r}.encode() + b'\\n')\n  except OSError: pass\n"

    assert "Its reply is invalid." in failure_text(tmp_path / "p", text, Isolation())


def test_a_forged_place_is_an_error_like_any_other(tmp_path: Path) -> None:
    where = '[["gateways", "a", "connection", "b"], "forged."]'
    reply = f'{{"ok": {{"value": {{"gateways": 1}}, "lines": [], "unclear": [{where}], "variables": []}}}}'
    text = f"for each in range(3, 20):\n  try: os.write(each, {reply!r}.encode() + b'\\n')\n  except OSError: pass\n"

    with pytest.raises(ProjectError, match="forged"):
        read_source(run(tmp_path / "p", text, Isolation()), {})


def test_a_forged_reference_is_the_reference_that_any_configuration_may_have(tmp_path: Path) -> None:
    """What closes a variable to a pull request closes it here too: it looks at the document, whoever made it."""
    value = '{"value": {"a": "\\ue0100:TOKEN\\ue011"}, "lines": [], "unclear": [], "variables": [{"name": "TOKEN"}]}'
    reply = f'{{"ok": {value}}}'
    text = f"for each in range(3, 20):\n  try: os.write(each, {reply!r}.encode() + b'\\n')\n  except OSError: pass\n"

    configuration = run(tmp_path / "p", text, Isolation())

    assert SECRET not in repr(configuration)
    assert read_source(configuration, {"TOKEN": "t"}).value == {"a": "t"}


@pytest.mark.parametrize(
    "text",
    [
        "import sqlmesh.core.config as c\nc.Config = dict\nConfig = dict\nconfig = Config(a=1)",
        "class E(type(Config)):\n  def __instancecheck__(c, x): return True\nconfig = E('Config', (), {})()",
        "import builtins\nbuiltins.isinstance = lambda *_: True\nconfig = Config(a=1)\nconfig.__dict__ = 1",
        "Config.record = Config.stands_for = 1\nconfig = Config(a=1)",
        "sys._getframe().f_builtins.clear()\nconfig = Config(a=[1])",
    ],
)
def test_stand_ins_that_are_replaced_forge_nothing_but_this_configuration(text: str, tmp_path: Path) -> None:
    try:
        said = repr(run(tmp_path / "p", text, Isolation()))
    except ProjectError as error:
        said = str(error)

    assert SECRET not in said
    assert len(said) < 2_000


PLAIN = """from pathlib import Path
from dotenv import load_dotenv
load_dotenv()
config = Config(project=f"a-{os.getenv('TOKEN', 'b')}", cache_dir=str(Path(__file__).parent / "c"), variables={"n": 1})
"""
NOT_PLAIN = [
    "import subprocess",
    "from os import system",
    "x = os.system",
    "x = open",
    "x = ().__class__",
    "x = Config.__init__",
    "x = getattr(os, 'system')",
    "x = __import__('os')",
    "x = Path('a').write_text('b')",
    "def f(): pass",
    "class T: pass",
    "x = [y for y in (1,)]",
    "x = 'a' * 10**9",
    "x = lambda: 1",
    "from sqlmesh.core import _finder",
    "from settings import x",
    "from . import x",
    "x = f'{1:>99999999}'",
    "while True: pass",
    "x = 1 if 2 else 3",
    "os.environ['A'] = 'b'",
    "os.getenv = str",
    "x = (",
]


def test_where_it_cannot_be_isolated_a_plain_form_opens_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mergeplan.planner.python.config_code.reading.cannot", lambda: "Landlock is missing")
    plain = "import os\nfrom sqlmesh.core.config import Config\n" + PLAIN

    opened = run_config(tmp_path, plain, ENVIRONMENT, Isolation(required=True))

    assert read_source(opened, {}).value == {"project": "a-b", "cache_dir": f"{tmp_path}/c", "variables": {"n": 1}}
    for line in NOT_PLAIN:
        with pytest.raises(Refused, match=r"config\.py:7: .*cannot be isolated here: Landlock is missing") as refusal:
            run_config(tmp_path, f"{plain}{line}\n", ENVIRONMENT, Isolation(required=True))
        assert "MERGEPLAN_ISOLATION=none" in refusal.value.hint
