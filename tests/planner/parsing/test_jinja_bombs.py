"""A template that would take all memory or run on is an error at its line: in a model, a macro file, at a terminal."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.project.loader import load_project

CONFIG = "gateways:\n  spark:\n    connection:\n      type: spark\nmodel_defaults:\n  dialect: spark\n"
HEAD = "MODEL (name shop.a, kind FULL);\n\n"
BEGIN, END = "JINJA_QUERY_BEGIN;\n", "\nJINJA_END;\n"
MEMORY = "rendering it takes more than 256 MiB of memory"
BOMBS = {
    "center": ('{{ "a".center(3000000000)|length }}', MEMORY),
    "percent": ('{{ "%20000000000d" % 1 }}', MEMORY),
    "doubling": (
        '{% set ns = namespace(a="aaaaaaaa") %}{% for i in range(40) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}',
        MEMORY,
    ),
    "power": ("{{ 9 ** 99999999 }}", "makes a number of more than 10000 bits"),
    "times": ('{{ "a" * 2000000 }}', "makes more than 1000000 characters"),
    "ranges": ("{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}", "more than 100000"),
}
LONG = '{% for i in range(99999) %}{% set a = ("b" * 900000)|replace("b", "cc")|length %}{% endfor %}'


def project(folder: Path, model: str, macro: str = "", config: str = CONFIG) -> Path:
    """A project with one model, and a macro file if there is a text for it."""
    texts = {"config.yaml": config, "models/a.sql": HEAD + model, **({"macros/m.sql": macro} if macro else {})}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def error_of(folder: Path) -> str:
    with pytest.raises(ProjectError) as caught:
        load_project(folder, datetime(2026, 1, 1, tzinfo=UTC))
    return str(caught.value)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_in_a_model_is_an_error_at_its_line(tmp_path: Path, name: str) -> None:
    text, said = BOMBS[name]
    error = error_of(project(tmp_path, f"{BEGIN}SELECT 1 AS id {text}{END}"))

    assert error.startswith("models/a.sql:4: Jinja: ")
    assert said in error


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_in_a_macro_is_an_error_at_the_macros_file_or_where_it_is_called(tmp_path: Path, name: str) -> None:
    """What a file does outside of its macros is done for every model; a macro explodes where it is called."""
    text, said = BOMBS[name]
    called = project(
        tmp_path / "called",
        f"{BEGIN}SELECT 1 AS id {{{{ f() }}}}{END}",
        f"{{% macro f() %}}{text}{{% endmacro %}}",
    )
    outside = project(tmp_path / "outside", f"{BEGIN}SELECT 1 AS id{END}", text)

    assert said in error_of(called) and error_of(called).startswith(("models/a.sql:", "macros/m.sql:"))
    assert said in error_of(outside) and error_of(outside).startswith(("models/a.sql:", "macros/m.sql:"))


def test_a_bomb_in_the_configuration_is_not_rendered(tmp_path: Path) -> None:
    """Only environment variables are: there is no Jinja to explode."""
    text = CONFIG + "variables:\n  a: '{{ \"a\".center(3000000000) }}'\n"
    assert error_of(project(tmp_path, "SELECT 1 AS id", config=text)).startswith("config.yaml:")


@pytest.mark.prove  # it takes its ten seconds
def test_a_template_that_runs_on_is_an_error_at_its_line(tmp_path: Path) -> None:
    error = error_of(project(tmp_path, f"{BEGIN}SELECT 1 AS id {LONG}{END}"))
    assert error.startswith("models/a.sql:4: Jinja: rendering it takes more than 10 seconds of the processor's time")


PEAK = """
import runpy
try:
    runpy.run_module("mergeplan.planner.cli.main", run_name="__main__", alter_sys=True)
finally:  # by /proc: what wait4 says has the peak of the process that started this one, too
    print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def test_at_the_terminal_a_bomb_is_an_error_and_takes_no_memory(tmp_path: Path) -> None:
    folder = project(tmp_path, f"{BEGIN}SELECT 1 AS id {BOMBS['center'][0]}{END}")
    command = [sys.executable, "-c", PEAK, "render", "shop.a", "--project", str(folder)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    said = process.stderr

    assert process.returncode == 1
    assert "models/a.sql:4" in said and MEMORY in " ".join(said.split())
    assert "Traceback" not in said
    # KiB: 1.5 GiB; the limit is 1 beyond what the process has, the text alone has 3
    assert int(process.stdout.split()[-1]) < 3 << 19
