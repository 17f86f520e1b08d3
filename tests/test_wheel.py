"""The wheel has one name at its top: a user's folders `bot`, `planner` and `tests` neither hide it nor are hidden."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mergeplan.bot.main import BOT_VERBS, VERBS
from release.tree import FULL, write_tree

pytestmark = pytest.mark.prove  # a build environment of its own


@pytest.fixture(name="wheel", scope="module")
def _wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, source = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("source")
    write_tree(FULL, source)  # as `make dist` does, which looks at the files of the wheel
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return next(folder.glob("*.whl"))


@pytest.fixture(name="mergeplan", scope="module")
def _mergeplan(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> "Command":
    """`python -m mergeplan` of the wheel, in a folder with packages named as ours are."""
    home, folder = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("project")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home)
    for name in ("bot", "planner", "tests"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise ImportError('the user\\'s own {name}')\n")
    return Command(home, folder)


class Command:
    def __init__(self, home: Path, folder: Path) -> None:
        self.home, self.folder = home, folder

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.home), "MERGEPLAN_HOME": str(self.folder / "home")}
        command = [sys.executable, "-m", "mergeplan", *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )


def test_the_wheel_has_one_name_at_its_top(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}

    assert {top.partition("-")[0] for top in tops} == {"mergeplan"}


@pytest.mark.parametrize("verb", sorted({**VERBS, **BOT_VERBS}))
def test_a_verb_starts_beside_folders_of_our_names(mergeplan: Command, verb: str) -> None:
    ran = mergeplan(verb, "--help")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"Usage: mergeplan {verb}")


def test_a_project_is_made_planned_and_run_beside_folders_of_our_names(mergeplan: Command) -> None:
    assert mergeplan("init").returncode == 0

    planned = mergeplan("plan", "--auto-apply")

    assert (planned.returncode, "Traceback" in planned.stderr) == (0, False)
    assert "\nprod " in mergeplan("environments").stdout
