"""The attacks are real: the same pull request where nothing is isolated, and Spark without its door.

Also an ordinary user's process, isolated and not. `make prove` runs it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from mergeplan.planner.isolation.connecting import ConnectionProxy
from mergeplan.planner.isolation.interpreter import libraries
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.isolation.profile import PACKAGE, IsolationProfile
from tests.safety.attacks import ATTACKS
from tests.safety.conftest import Stage
from tests.safety.scene import ATTACKS as FILE
from tests.safety.scene import Scene, loot

NOBODY = 54_321  # an ordinary user
SYSTEM_PYTHON = "/usr/bin/python3"


def can_be_nobody() -> bool:
    """True when an ordinary user can run a Python here, and read ours."""
    if os.getuid() != 0 or not Path(SYSTEM_PYTHON).exists():
        return False
    check = "import os, sys; sys.exit(sys.version_info < (3, 11) or not os.access(sys.argv[1], os.R_OK))"
    return subprocess.run([SYSTEM_PYTHON, "-I", "-c", check, str(PACKAGE)], user=NOBODY, check=False).returncode == 0


pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(bool(cannot()), reason=f"this machine cannot isolate: {cannot()}"),
]


def test_without_isolation_every_attack_works(stage: Stage) -> None:
    ended = stage.attack("attack", isolation="none")

    # The planner's own processes cannot be dumped: only root reads their environment.
    protected = set() if os.getuid() == 0 else {"read_the_parents_environment"}
    assert {name for name in ATTACKS if not any(ended.got[name])} == protected
    changed = {".bashrc", "mirror", "site/usercustomize.py", "victim", "warehouse/part-00000.parquet"}
    assert ended.paths_changed >= changed


@pytest.mark.skipif(not can_be_nobody(), reason="needs root, and a Python of the system's own")
def test_an_ordinary_user_is_isolated_too() -> None:
    """The same attacks by a user without any capability, who owns all that there is to take."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        scene = Scene(Path(folder, "scene"), Path(folder), 9)
        planted = scene.read_planted()
        for path in (scene.folder, *scene.folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        isolated, before = run_as_nobody(scene, isolate=True), scene.read_planted()
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
    proxy = ConnectionProxy(scratch / "spark.sock")
    if isolate:
        profile = IsolationProfile((*libraries(SYSTEM_PYTHON, {}, "-I"), str(attacks)), (str(scratch),))
        command = [SYSTEM_PYTHON, *profile.listening(proxy.descriptor).launch_command(command)[1:]]
    environment = {"HOME": str(scratch), "PATH": os.defpath}
    with subprocess.Popen(
        command, env=environment, cwd="/", text=True, stdout=subprocess.PIPE, user=NOBODY, group=NOBODY,
        extra_groups=[], pass_fds=[proxy.descriptor],
    ) as process:  # fmt: skip
        proxy.start()
        return loot(process.communicate(timeout=120)[0])
