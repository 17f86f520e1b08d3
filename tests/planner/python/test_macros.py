"""A project's own macros: called with SQL, given what they declare, told where they are wrong, and kept apart."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.errors import Place, ProjectError, ProjectErrors
from mergeplan.planner.parsing.sql.user_macros import MacroCall
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.python.host import Child, ChildFailed, child_environment
from mergeplan.planner.python.project import ProjectCode
from tests.planner.project.test_loader import CONFIG, project_of

MACROS = """
import datetime
import os
import sys
import typing as t
from sqlglot import exp
from sqlmesh import SQL, macro
from sqlmesh.core.macros import MacroEvaluator
from lib.words import plural

@macro()
def kinds(evaluator, *args):
    return exp.Literal.string(" ".join(type(each).__name__ for each in args))

@macro()
def typed(evaluator, a: int, b: str, c: t.List[str], d: bool = False, e: t.Optional[float] = None):
    return exp.Literal.string(repr((a, b, c, d, e)))

@macro()
def more(evaluator, a: exp.Column, b: exp.Table, c: SQL, d: t.Tuple[int, str], e: datetime.date, f: t.Union[int, str]):
    told = (type(a).__name__, type(b).__name__, c, d, e.isoformat(), f)
    return exp.Literal.string(repr(told))

@macro("renamed")
def add(evaluator, a, b):
    return a + b

@macro()
def text(evaluator, column: str):
    return f"{plural(column)} > {evaluator.var('least', 1)}"

@macro()
def each(evaluator, names: list[str]):
    return [f"{name} AS {name}_x" for name in names]

@macro()
def nothing(evaluator):
    return None

@macro()
def looks(evaluator: MacroEvaluator):
    told = (evaluator.gateway, evaluator.locals["runtime_stage"], evaluator.this_model, evaluator.var("Least"))
    return exp.Literal.string(repr((*told, list(evaluator.columns_to_types("shop.items")))))

@macro()
def lambdas(evaluator, items, function):
    body = function.this
    name = function.expressions[0].name
    is_it = lambda node: isinstance(node, exp.Identifier) and node.name == name
    return [body.transform(lambda node: item if is_it(node) else node) for item in items.expressions]

@macro()
def other(evaluator, x):
    return evaluator.send("renamed", x, exp.Literal.number(1))

@macro()
def spies(evaluator):
    return exp.Literal.string(" ".join(sorted(os.environ)))

@macro()
def doors(evaluator):
    return exp.Literal.string(" ".join(sorted(os.listdir("/proc/self/fd"), key=int)))

@macro()
def reads(evaluator):
    return exp.Literal.string(repr((sys.stdin.read(), os.read(0, 10), os.getpgrp() == os.getpid())))

@macro()
def parent(evaluator):
    with open(f"/proc/{os.getppid()}/environ") as file:
        return exp.Literal.string(file.read())

@macro()
def prints(evaluator):
    print("hello\\x1b[31m", flush=True)
    os.system("echo from a shell")
    return "1"

@macro()
def fails(evaluator):
    raise ValueError("no luck")

@macro()
def exits(evaluator):
    print("good bye")
    sys.stdout.flush()
    os._exit(3)

@macro()
def returns(evaluator):
    return object()
"""
FILES = {"config.yaml": CONFIG, "macros/all.py": MACROS, "lib/words.py": "def plural(x):\n    return x + 's'\n"}
HERE = Place("models/a.sql", 7)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectCode]:
    os.environ["MERGEPLAN_STATE_URL"] = "postgresql://ann:hunter2@db/plans"
    os.environ["GITHUB_TOKEN"] = "hunter2"  # noqa: S105  # nobody's
    project_code = load_project(
        project_of(tmp_path_factory.mktemp("macros"), FILES), datetime(2026, 1, 6, tzinfo=UTC)
    ).code
    yield project_code
    project_code.close()
    del os.environ["MERGEPLAN_STATE_URL"], os.environ["GITHUB_TOKEN"]


def call_macro(code: ProjectCode, name: str, *arguments: str, **keywords: str) -> str:
    columns = {"shop.items": (("id", "int"), ("day", "date"))}
    variables = {"least": 5}
    call = MacroCall(name, arguments, tuple(keywords.items()), "spark", "shop.a", variables, "local", columns, HERE)
    return ", ".join(code.call(call))


@pytest.mark.parametrize(
    ("name", "arguments", "sql"),
    [
        ("kinds", ("a", "'a'", "1", "[1, 2]", "x -> x + 1", "(a, b)", "@start_ds"),
         "'Column Literal Literal Array Lambda Tuple Parameter'"),
        ("typed", ("1", "word", "['a', b]"), r"'(1, \'word\', [\'a\', \'b\'], False, None)'"),
        ("typed", ("-1", "'word'", "(a, b)", "true", "1.5"), r"'(-1, \'word\', [\'a\', \'b\'], True, 1.5)'"),
        ("more", ("a.b", "shop.items", "x + 1", "(1, 'a')", "'2026-01-02'", "'a'"),
         r"'(\'Column\', \'Table\', \'x + 1\', (1, \'a\'), \'2026-01-02\', \'a\')'"),
        ("renamed", ("x", "1"), "x + 1"),
        ("text", ("item",), "items > 5"),
        ("each", ("[a, b]",), "a AS a_x, b AS b_x"),
        ("nothing", (), ""),
        ("looks", (), r"'(\'local\', \'loading\', \'shop.a\', 5, [\'id\', \'day\'])'"),
        ("lambdas", ("[a, b]", "x -> x + 1"), "a + 1, b + 1"),
        ("other", ("@end_ds",), "@end_ds + 1"),
    ],
)  # fmt: skip
def test_a_macro_gets_what_it_declares_and_its_answer_is_sql(
    code: ProjectCode, name: str, arguments: tuple[str, ...], sql: str
) -> None:
    assert call_macro(code, name, *arguments) == sql


def test_arguments_may_be_named(code: ProjectCode) -> None:
    assert call_macro(code, "renamed", a="x", b="2") == "x + 2"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("fails", (), "macros/all.py:81: The macro `@fails` failed: ValueError: no luck."),
        ("text", (), "models/a.sql:7: The macro `@text` failed: TypeError: missing a required argument: 'column'."),
        ("nothing", ("1",), "models/a.sql:7: The macro `@nothing` failed: TypeError: too many positional arguments."),
        ("returns", (), "models/a.sql:7: The macro `@returns` failed: TypeError: a macro returns SQL or an expression, "
         "not object."),
        ("exits", (), "models/a.sql:7: The macro `@exits` failed: Python ended with exit code 3, and with it this run. "
         "Its last output: good bye."),
    ],
)  # fmt: skip
def test_a_macro_that_fails_is_told_in_a_sentence(
    code: ProjectCode, name: str, arguments: tuple[str, ...], told: str
) -> None:
    with pytest.raises(ProjectError) as error:
        call_macro(code, name, *arguments)

    assert str(error.value) == told
    assert call_macro(code, "renamed", "x", "1") == "x + 1"


def test_a_macro_sees_nothing_of_the_environment(code: ProjectCode) -> None:
    allowed = child_environment(os.environ, "")

    assert set(call_macro(code, "spies").strip("'").split()) <= {*allowed, "LC_CTYPE"}
    assert not {name for name in allowed if "MERGEPLAN" in name or "TOKEN" in name}
    assert allowed["HOME"] == ""


def test_a_macro_has_no_door_to_us(code: ProjectCode) -> None:
    descriptor = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    code.close()

    # standard input, output and error, the two pipes, and the listing itself
    assert len(call_macro(code, "doors").strip("'").split()) == 6
    assert call_macro(code, "reads") == r"'(\'\', b\'\', True)'"
    os.close(descriptor)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read whatever it likes")
def test_a_macro_cannot_read_the_environment_of_the_process_that_started_it(code: ProjectCode) -> None:
    with pytest.raises(ProjectError, match="PermissionError"):
        call_macro(code, "parent")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_planner_that_holds_an_address_is_hidden_before_it_reads_it() -> None:
    """Another run's project code, as the same user, reads neither its memory nor its standard input."""
    asks = (
        "import ctypes, io, os, pathlib, sys\n"
        "from mergeplan.planner.cli.workspace import settings\n"
        "class Input(io.StringIO):\n"
        "    def readline(self): print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)); return 'sqlite://'\n"
        "sys.stdin = Input(); os.environ['MERGEPLAN_STATE_URL'] = '-'\n"
        "settings(pathlib.Path('.'), None)"
    )
    said = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, timeout=60, check=True)

    assert said.stdout == "0\n"


def test_what_a_macro_prints_is_told_and_is_no_answer(code: ProjectCode, capsys: pytest.CaptureFixture[str]) -> None:
    assert call_macro(code, "prints") == "1"

    code.close()
    assert capsys.readouterr().err == "hello[31m\nfrom a shell\n"


def test_a_child_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    child = Child(tmp_path, {"slow.py": "import time\ntime.sleep(60)\n"})

    with pytest.raises(ChildFailed, match="It took longer than 1 seconds"):
        child.ask({"op": "load", "paths": ["slow.py"]}, 1)

    assert not child.stop.alive


def test_a_child_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    start = "child = Child(sys.argv[1], {}); print(child._process.pid, flush=True)"
    imports = "import sys, pathlib; from mergeplan.planner.python.host import Child"
    argv = [sys.executable, "-c", f"{imports}; {start}; sys.stdin.read()", str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()

    deadline = time.monotonic() + 120
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():  # a husk has none
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_macros_may_stand_in_the_file_of_the_package(tmp_path: Path) -> None:
    macro = "from sqlmesh import macro\n\n@macro()\ndef one(evaluator):\n    return 1\n"
    model = "MODEL (name shop.a, kind FULL);\nSELECT @one() AS one"
    project = load_project(
        project_of(tmp_path, {"macros/__init__.py": macro, "models/a.sql": model}), datetime(2026, 1, 6, tzinfo=UTC)
    )

    assert project.models["shop.a"].sql == "SELECT 1 AS one"


def test_a_macro_can_write_the_dates_of_a_run(tmp_path: Path) -> None:
    macro = """from sqlmesh import macro

@macro()
def within(evaluator, column):
    return column.between(evaluator.locals["start_ds"], evaluator.locals["end_ds"])
"""
    model = "MODEL (name shop.a, kind FULL);\nSELECT x FROM shop.b WHERE @within(x)"
    project = load_project(
        project_of(tmp_path, {"macros/m.py": macro, "models/a.sql": model}), datetime(2026, 1, 6, tzinfo=UTC)
    )

    assert project.models["shop.a"].sql == "SELECT x FROM shop.b WHERE x BETWEEN @start_ds AND @end_ds"


def test_a_project_without_python_starts_nothing(tmp_path: Path) -> None:
    project = load_project(project_of(tmp_path, {"helpers.py": "import nowhere"}), datetime(2026, 1, 6, tzinfo=UTC))

    assert project.code.files == {}
    assert project.code.names == frozenset()


def test_a_macro_whose_file_cannot_be_imported_is_traced_to_that_file(tmp_path: Path) -> None:
    files = {
        "macros/money.py": "import not_installed_here\n",
        "models/a.sql": "MODEL (name shop.a, kind FULL);\nSELECT @round_money(1) AS x",
    }

    with pytest.raises(ProjectErrors) as failed:
        load_project(project_of(tmp_path, files), datetime(2026, 1, 6, tzinfo=UTC))

    errors = {error.message: error.hint for error in failed.value.errors}
    assert errors["There is no macro or variable `@round_money`."] == (
        "It may be defined in `macros/money.py`, which cannot be imported: fix that first."
    )
