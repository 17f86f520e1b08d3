"""Isolation as values: what the operator says, which paths are left, what the filter does on kernels that are older."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation import landlock
from mergeplan.planner.isolation.connecting import ConnectionProxy
from mergeplan.planner.isolation.interpreter import libraries
from mergeplan.planner.isolation.mode import NO_ISOLATION, Isolation, isolation_of
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.isolation.profile import LAUNCH, IsolationProfile, exclude_hidden, profile_from
from mergeplan.planner.isolation.seccomp import FORBIDDEN, SPECIAL, Network, filter_program
from tests.safety.attacks import ATTACKS
from tests.safety.scene import ATTACKS as FILE
from tests.safety.scene import Scene, loot

IMPORT = "from mergeplan.planner.isolation.launcher"


def launch_command(profile: IsolationProfile, version: int, command: list[str]) -> list[str]:
    """The command as it is started with a profile on a kernel with this version of Landlock."""
    older = f"from mergeplan.planner.isolation import landlock; landlock.version = lambda: {version}; {IMPORT}"
    return [part.replace(IMPORT, older) if part == LAUNCH else part for part in profile.launch_command(command)]


def test_what_the_operator_says() -> None:
    variables = {"MERGEPLAN_ISOLATION_HIDDEN": "/a:/b", "MERGEPLAN_ISOLATION_MEMORY": "3"}

    assert isolation_of({}) == isolation_of({"MERGEPLAN_ISOLATION": "none"}) == NO_ISOLATION
    assert isolation_of({"MERGEPLAN_ISOLATION": "required", **variables}) == Isolation(
        True, (Path("/a"), Path("/b")), 3
    )
    assert isolation_of({"MERGEPLAN_ISOLATION": "available"}).required is not bool(cannot())


@pytest.mark.parametrize(
    ("variable", "value"),
    [("MERGEPLAN_ISOLATION", "off"), ("MERGEPLAN_ISOLATION", "None"), ("MERGEPLAN_ISOLATION_MEMORY", "0")],
)
def test_a_value_that_is_none_is_refused(variable: str, value: str) -> None:
    with pytest.raises(RequestError, match=f"{variable} is `{value}`"):
        isolation_of({variable: value})


def test_what_is_hidden_is_cut_out_of_what_may_be_read(tmp_path: Path) -> None:
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    (tmp_path / "lib" / "a.so").touch()
    (tmp_path / "lib" / "deep" / "key").touch()
    (tmp_path / "lib" / "deep" / "b.so").touch()
    (tmp_path / "link").symlink_to(tmp_path / "lib")
    hidden = [tmp_path / "link" / "deep" / "key"]

    assert exclude_hidden([str(tmp_path / "lib")], hidden) == (f"{tmp_path}/lib/a.so", f"{tmp_path}/lib/deep/b.so")
    assert exclude_hidden([f"{tmp_path}/lib/deep/key", f"{tmp_path}/lib/a.so"], hidden) == (f"{tmp_path}/lib/a.so",)
    assert exclude_hidden([f"{tmp_path}/home/checkout"], [tmp_path / "home"]) == (f"{tmp_path}/home/checkout",)


def test_a_profile_is_read_as_it_was_written() -> None:
    profile = IsolationProfile(("/usr/lib", "/a b"), ("/tmp/x",), Network.ANSWER, 3).listening(7)  # noqa: S108

    assert profile_from(profile.text) == profile


@pytest.mark.parametrize("network", [Network.PROXY, Network.LISTED, Network.ANSWER, Network.NONE])
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_every_jump_of_a_filter_lands_in_it(architecture: str, network: Network) -> None:
    steps = filter_program(architecture, network, 1234, signals_kept=False)

    assert len(steps) < 4096
    assert steps[-1][0] == 0x06
    for at, (code, yes, no, _) in enumerate(steps):
        assert code & 7 != 5 or at + 1 + max(yes, no) < len(steps)
    assert not FORBIDDEN[architecture].keys() & SPECIAL[architecture].keys()
    numbers = [*FORBIDDEN[architecture].values(), *SPECIAL[architecture].values()]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.skipif(bool(cannot()), reason=f"this machine cannot isolate: {cannot()}")
@pytest.mark.parametrize("version", [3, 4, 5, landlock.version()])
def test_kernels_with_an_older_landlock_isolate_too(version: int, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene", tmp_path, 9)
    (tmp_path / "home").mkdir(mode=0o777)
    (tmp_path / "home").chmod(0o777)
    proxy = ConnectionProxy(tmp_path / "spark.sock")
    profile = IsolationProfile((*libraries(sys.executable, {}, "-I"), str(FILE)), (str(tmp_path / "home"),))
    attack = [sys.executable, "-I", str(FILE), json.dumps(scene.targets())]
    with subprocess.Popen(
        launch_command(profile.listening(proxy.descriptor), version, attack), env={"HOME": str(tmp_path / "home")},
        cwd="/", stdout=subprocess.PIPE, text=True, pass_fds=[proxy.descriptor],
    ) as process:  # fmt: skip
        proxy.start()
        got = loot(process.communicate(timeout=120)[0])
    scene.close()

    assert got == {name: [""] for name in ATTACKS}


@pytest.mark.skipif(bool(cannot()), reason=f"this machine cannot isolate: {cannot()}")
def test_a_program_does_not_start_where_landlock_is_too_old(tmp_path: Path) -> None:
    profile = IsolationProfile(libraries(sys.executable, {}, "-I"), (str(tmp_path),))
    command = launch_command(profile, 2, [sys.executable, "-c", "print('runs')"])

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == "It cannot be isolated: Landlock 3 is needed, and there is 2\n"
