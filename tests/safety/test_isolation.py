"""A hostile pull request through the service: nothing is read, written, run or reached; without isolation, all is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bot.records import State
from planner.isolation.connecting import WayOut
from planner.isolation.interpreter import libraries
from planner.isolation.probe import cannot
from planner.isolation.profile import PACKAGE, Profile
from tests.safety.attacks import ATTACKS
from tests.safety.conftest import CONFIG, Attacked, Stage
from tests.safety.scene import ATTACKS as FILE
from tests.safety.scene import SECRET, Scene, loot

PLACES = 3  # a model, a macro and a signal attack as they are imported
NOBODY = 54_321  # an ordinary user
SYSTEM_PYTHON = "/usr/bin/python3"


def can_be_nobody() -> bool:
    """True when an ordinary user can run a Python here, and read ours."""
    if os.getuid() != 0 or not Path(SYSTEM_PYTHON).exists():
        return False
    check = "import os, sys; sys.exit(sys.version_info < (3, 11) or not os.access(sys.argv[1], os.R_OK))"
    return subprocess.run([SYSTEM_PYTHON, "-I", "-c", check, str(PACKAGE)], user=NOBODY, check=False).returncode == 0


pytestmark = pytest.mark.skipif(bool(cannot()), reason=f"this machine cannot isolate: {cannot()}")


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_isolated_pull_request_gets_nothing(attack: str, isolated: Attacked) -> None:
    assert isolated.got[attack] == [""] * PLACES


def test_an_isolated_pull_request_spoils_nothing(isolated: Attacked) -> None:
    assert isolated.after == isolated.before
    assert SECRET not in isolated.comment


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_attack_works_where_nothing_is_isolated(attack: str, loose: Attacked) -> None:
    assert any(loose.got[attack])


def test_without_isolation_files_are_spoiled(loose: Attacked) -> None:
    changed = {name for name in loose.after if loose.after[name] != loose.before.get(name)}

    assert changed == {".bashrc", "mirror", "site/usercustomize.py", "victim", "warehouse/part-00000.parquet"}


def test_what_is_no_python_gets_nothing(stage: Stage) -> None:
    key = stage.scene.key
    files = {
        "models/file.sql": f"MODEL (name shop.file, kind FULL);\nSELECT * FROM text.`{key}`\n",
        "models/jinja.sql": "MODEL (name shop.jinja, kind FULL);\nJINJA_QUERY_BEGIN;\n"
        f"SELECT '{{{{ ''.__class__.__mro__[1].__subclasses__() }}}}' AS a, '{{{{ open('{key}').read() }}}}' AS b\n"
        "JINJA_END;\n",
        "models/called.sql": "MODEL (name shop.called, kind FULL);\n"
        "SELECT java_method('java.lang.System', 'getenv', 'HOME') AS a\n",
        "models/seed.sql": f"MODEL (name shop.seed, kind SEED (path '../../../../../../{key}'), columns (a text));\n",
        "config.yaml": CONFIG + "variables: {key: \"{{ env_var('MERGEPLAN_GITHUB_PRIVATE_KEY') }}\"}\n",
        ".gitattributes": "* filter=evil diff=evil merge=evil\n",
        ".gitmodules": f'[submodule "a"]\n\tpath = a\n\turl = file://{stage.scene.folder}\n',
    }

    ended = stage.attack("no-python", files)

    assert SECRET not in ended.comment
    assert ended.after == ended.before


def test_where_landlock_is_missing_code_is_held_and_sql_is_planned(stage: Stage) -> None:
    """Such a machine is made: the planner runs where the kernel says that it knows nothing of Landlock."""
    elsewhere = {"planner_command": (sys.executable, "-P", str(Path(__file__).with_name("without_landlock.py")))}

    held = stage.attack("held", stage.scene.files(), **elsewhere)
    edit = {"models/orders.sql": "MODEL (name shop.orders, kind FULL);\n\nSELECT 2 AS id\n"}
    planned = stage.attack("sql", edit, **elsewhere)

    assert (held.record.state, held.got, held.after) == (State.FAILED, {}, held.before)
    assert "The project brings Python code, and it cannot be isolated here: Landlock 3 is needed" in held.comment
    assert "MERGEPLAN_ISOLATION=none" in held.comment
    assert planned.record.state is State.PLANNED


@pytest.mark.skipif(not can_be_nobody(), reason="needs root, and a Python of the system's own")
def test_an_ordinary_user_is_isolated_too() -> None:
    """The same attacks by a user without any capability, who owns all that there is to take."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        scene = Scene(Path(folder, "scene"), Path(folder), 9)
        planted = scene.written()
        for path in (scene.folder, *scene.folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        isolated, before = run_as_nobody(scene, isolate=True), scene.written()
        loose = run_as_nobody(scene, isolate=False)
        scene.close()

    assert {name for name, got in isolated.items() if any(got)} == set()
    assert isolated.keys() == loose.keys() == ATTACKS.keys()
    assert before == planted
    assert {name for name in loose if any(loose[name])} >= {
        "read_the_key",
        "write_a_start_file",
        "open_a_file_to_all",
        "run_a_command",
        "connect_to_a_database",
        "connect_to_a_hidden_address",
    }


def run_as_nobody(scene: Scene, *, isolate: bool) -> dict[str, list[str]]:
    """What the attacks get when an ordinary user runs them."""
    scratch = scene.folder.parent / ("isolated" if isolate else "loose")
    scratch.mkdir()
    os.chown(scratch, NOBODY, NOBODY)
    attacks = scratch / "attacks.py"
    shutil.copy(FILE, attacks)
    command = [SYSTEM_PYTHON, "-I", str(attacks), json.dumps(scene.targets())]
    way_out = WayOut(scratch / "spark.sock")
    if isolate:
        profile = Profile((*libraries(SYSTEM_PYTHON, {}, "-I"), str(attacks)), (str(scratch),))
        command = [SYSTEM_PYTHON, *profile.listening(way_out.descriptor).launched(command)[1:]]
    environment = {"HOME": str(scratch), "PATH": os.defpath}
    with subprocess.Popen(
        command, env=environment, cwd="/", text=True, stdout=subprocess.PIPE, user=NOBODY, group=NOBODY,
        extra_groups=[], pass_fds=[way_out.descriptor],
    ) as process:  # fmt: skip
        way_out.started()
        return loot(process.communicate(timeout=120)[0])
