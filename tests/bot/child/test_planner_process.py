"""The planner's child: what it is started with, and what it does not read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bot.child.planner_process import child_environment, planner_argv
from bot.settings import Settings
from tests.bot.conftest import SHOP

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
ASK = (
    "import sys; print('usercustomize' in sys.modules, 'json' in sys.modules and hasattr(sys.modules['json'], 'evil'))"
)


def planted(folder: Path) -> None:
    """What a model's code can leave where it may write: modules that Python itself looks for."""
    for place in (folder, folder / ".local" / SITE):
        place.mkdir(parents=True, exist_ok=True)
        for name in ("usercustomize", "sitecustomize", "json"):
            (place / f"{name}.py").write_text("evil = True\n")


@pytest.mark.parametrize("home", [False, True], ids=["its own home", "a home that was planted"])
def test_no_module_that_project_code_could_leave_runs_in_the_planner(tmp_path: Path, home: bool) -> None:
    """Outside of a virtual environment, where Python looks below HOME; the state's address comes on standard input."""
    settings = Settings(home=tmp_path)
    planted(tmp_path / SHOP)
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path / SHOP), "PYTHONUSERBASE": str(tmp_path / SHOP)}
    given = child_environment(settings, SHOP, environ)
    given |= {"HOME": str(tmp_path / SHOP), "PYTHONPATH": str(tmp_path / SHOP)} if home else {}
    argv = planner_argv(settings)
    flags = argv[1 : argv.index("-m")]
    python = str(getattr(sys, "_base_executable", sys.executable))
    asked = [python, *flags, "-c", ASK]
    told = subprocess.run(asked, cwd=tmp_path / SHOP, env=given, capture_output=True, text=True, check=True)

    assert told.stdout.split() == ["False", "False"]


def test_the_planner_is_handed_no_variable_of_pythons_and_no_home_that_code_may_write(tmp_path: Path) -> None:
    """A library reads passwords and settings from below HOME: there is nothing."""
    environ = {"PYTHONPATH": "/evil", "PYTHONSTARTUP": "/evil", "JAVA_TOOL_OPTIONS": "-evil", "PGPASSFILE": "/evil"}
    given = child_environment(Settings(home=tmp_path), SHOP, {**environ, "HOME": "/root"})

    assert not environ.keys() & given.keys()
    assert not Path(given["HOME"]).exists()
    assert (given["PYTHONNOUSERSITE"], given["PYTHONSAFEPATH"]) == ("1", "1")
