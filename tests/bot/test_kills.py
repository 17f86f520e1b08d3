"""`kill -9` of the service at random moments of a pull request's life: each time the next start brings it to its end.

A quarter of MERGEPLAN_KILLS are the service's (`make prove`: 55), MERGEPLAN_SEED is where the random choices begin.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from typing import Any

import pytest

from mergeplan.bot.records import Prod, PullState
from tests.bot.conftest import SHOP, until
from tests.bot.test_crash import Scene, _scene  # noqa: F401 - a fixture

pytestmark = pytest.mark.prove

KILLS = max(6, int(os.environ.get("MERGEPLAN_KILLS", "6")) // 4)
SEED = int(os.environ.get("MERGEPLAN_SEED", "9"))


def test_a_service_that_is_killed_again_and_again_loses_nothing_and_does_nothing_twice(scene: Scene) -> None:
    """Behaviours 16, 17: one comment, every check ended, one promotion for each merge, and prod is what was merged."""
    choose, kills, merged = random.Random(SEED), 0, 0  # noqa: S311
    while kills < KILLS:
        merged += 1
        kills += one_pull_request(scene, choose, merged)

    sys.stderr.write(f"\n{kills} kills of the service over {merged} pull requests\n")
    assert scene.prod().revision == 1 + merged


def one_pull_request(scene: Scene, choose: random.Random, index: int) -> int:
    """Opens, plans, merges and promotes, and kills at each stage maybe; the number of kills."""
    files = {"models/orders.sql": f"SELECT {index} AS id, {choose.random()} AS v\n"}
    scene.github.commit(SHOP, f"change{index}", files, "A change", author="wim")
    number = scene.github.open_pull_request(SHOP, f"change{index}", "main", "A change", author="wim")
    kills = kill_service(scene, choose)
    until(lambda: scene.record(number).state is PullState.PLANNED, what=f"the plan of {number}")
    scene.github.merge(SHOP, number, author="ann")
    kills += kill_service(scene, choose)
    until(lambda: scene.record(number).state is PullState.PROMOTED, what=f"the promotion of {number}")
    until(lambda: scene.statuses(number) == {"completed"}, what=f"the checks of {number}")

    prod = json.loads((scene.home / SHOP / "scripted.json").read_text())["environments"]["prod"]
    assert (prod["revision"], prod["models"]["shop.orders"]) == (1 + index, files["models/orders.sql"])
    assert scene.prod().state is Prod.READY
    assert len([comment for comment in scene.github.comments(SHOP, number) if "mergeplan:plan" in comment.body]) == 1
    return kills


def test_a_killed_promotion_of_a_branch_is_whole_and_done_once(scene: Scene) -> None:
    """Each push to a branch with an environment reaches it once, whatever was killed when; prod stays as it was."""
    choose, kills, pushes = random.Random(SEED), 0, 0  # noqa: S311
    rules = {"config.yaml": "gateways: {}\ncicd_bot: {branch_environments: {qa: qa}}\n"}
    scene.github.commit(SHOP, "main", rules, "Rules", author="ann")
    until(lambda: scene.prod().branches != (), what="the branch to be followed")
    prod = environments(scene)["prod"]
    while kills < KILLS:
        pushes += 1
        files = {"models/orders.sql": f"SELECT {pushes} AS id, {choose.random()} AS v\n"}
        sha = scene.github.commit(SHOP, "qa", files, "A push", author="wim")
        kills += kill_service(scene, choose)
        until(lambda sha=sha: scene.prod().branches[0].promoted_commit == sha, what=f"push {pushes}")
        checks = {run.conclusion for run in scene.github.checks(SHOP, sha).values()}
        assert (checks, scene.prod().branches[0].running) == ({"success"}, "")
        qa = environments(scene)["qa"]
        assert (qa["revision"], qa["models"]["shop.orders"]) == (pushes, files["models/orders.sql"])

    sys.stderr.write(f"\n{kills} kills of the service over {pushes} pushes to a branch\n")
    assert environments(scene)["prod"] == prod


def environments(scene: Scene) -> dict[str, Any]:
    """The environments as the planner has them."""
    shown: dict[str, Any] = json.loads((scene.home / SHOP / "scripted.json").read_text())["environments"]
    return shown


def kill_service(scene: Scene, choose: random.Random) -> int:
    """Kills the service up to three times, each after a random while, and starts it again."""
    times = choose.randint(0, 3)
    for _ in range(times):
        time.sleep(choose.uniform(0, 1.5) ** 2)
        scene.kill()
        scene.start()
    return times
