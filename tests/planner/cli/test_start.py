"""Starting: fast, because nothing heavy is imported for help; and every verb explains itself with an example."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from mergeplan.bot.main import BOT_VERBS
from mergeplan.planner.cli.main import VERBS, Verbs
from tests.planner.cli.conftest import CommandLine
from tests.planner.shop import write_shop

ROOT = Path(__file__).parents[3]
APPLIES = {
    "mergeplan.planner.apply.executor",
    "mergeplan.planner.apply.promotion.promotion",
    "mergeplan.planner.checks.diff.table_diff",
    "mergeplan.planner.checks.unit_tests",
    "mergeplan.planner.contract.result",
    "mergeplan.planner.engine.spark.engine",
    "mergeplan.planner.engine.spark.open_session",
    "mergeplan.planner.python.running",
    "rich.progress",
}
FOREIGN = {"mergeplan.planner.project.dbt.compile", "mergeplan.planner.parsing.files.pipeline.spec"}
HEAVY = {"pyspark", "sqlalchemy", "alembic", "sqlglot", "rich", "yaml", "pydantic", "pandas", "fastapi", "github"}


def imports_of(code: str) -> set[str]:
    """The packages that a fresh Python has imported after running this."""
    script = f"import sys\n{code}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], ["paln"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    verbs = "from mergeplan.bot.main import BOT_VERBS, VERBS\nfrom mergeplan.planner.cli.main import run"
    code = f"{verbs}\nrun({{**VERBS, **BOT_VERBS}}, {arguments})"

    assert not imports_of(f"sys.stderr = open('/dev/null', 'w')\n{code}\nsys.stderr = sys.__stderr__") & HEAVY


def test_importing_the_planner_imports_no_spark() -> None:
    modules = [
        ".".join(("mergeplan", *path.relative_to(ROOT).with_suffix("").parts))
        for path in sorted((ROOT / "planner").rglob("*.py"))
        if "migrations" not in path.parts and path.name != "__init__.py"
    ]

    assert "pyspark" not in imports_of(f"import {', '.join(modules)}")


def test_help_lists_every_verb_in_a_sentence(offline: CommandLine) -> None:
    ran = offline("--help")

    assert (ran.code, ran.err) == (0, "")
    assert all(f"\n  {verb} " in ran.out for verb in VERBS)
    assert all(text.endswith(".") for _, text in {**VERBS, **BOT_VERBS}.values())


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_an_example(verb: str, offline: CommandLine) -> None:
    ran = offline(verb, "--help")

    assert (ran.code, ran.err) == (0, "")
    assert f"\n  mergeplan {verb}" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert list(offline.root.iterdir()) == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_explained(verb: str) -> None:
    command = Verbs(VERBS).get_command(click.Context(click.Command("mergeplan")), verb)

    assert command is not None
    assert all(option.help for option in command.params if isinstance(option, click.Option))


def test_a_plan_that_is_only_shown_imports_nothing_that_applies_one(tmp_path: Path) -> None:
    write_shop(tmp_path)
    code = (
        f"import os, sys\nos.chdir({str(tmp_path)!r})\nfrom mergeplan.planner.cli.main import VERBS, run\n"
        "assert run(VERBS, ['plan', '--no-prompts']) == 0\nprint(*sys.modules, file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "`prod` environment will be initialized" in done.stdout
    assert not (APPLIES | FOREIGN) & set(done.stderr.split())


def test_the_package_starts_as_fast_as_the_command() -> None:
    code = (
        "import contextlib, runpy\nsys.argv = ['mergeplan', '--help']\n"
        "with contextlib.suppress(SystemExit): runpy.run_module('mergeplan', run_name='__main__', alter_sys=True)"
    )

    modules = imports_of(code)

    assert "mergeplan" in modules
    assert not modules & HEAVY


def test_the_package_imports_no_module_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise SystemExit('code of the project')\n")

    done = subprocess.run(
        [sys.executable, "-m", "mergeplan", "--version"], cwd=tmp_path, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr


def test_the_package_starts_in_a_folder_that_was_removed(tmp_path: Path) -> None:
    code = "import os, sys\nos.rmdir(os.getcwd())\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    command = [sys.executable, "-c", code, "-m", "mergeplan", "--version"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
