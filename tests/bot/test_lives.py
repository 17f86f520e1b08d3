"""Random lives of pull requests under the service, with rules, a queue, faults and kills; the planner is scripted.

`make test` takes a few; MERGEPLAN_LIVES is how many `make prove` takes, MERGEPLAN_SEED where the choices begin.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bot.sandbox import repos
from tests.bot.conftest import PROJECT, SHOP, until
from tests.bot.lives import SKIP_LABEL, Files, World
from tests.bot.test_crash import Scene

pytestmark = pytest.mark.sampled

LIVES = int(os.environ.get("MERGEPLAN_LIVES", "4"))
SEED = int(os.environ.get("MERGEPLAN_SEED", "5"))
PARTS = range(max(1, LIVES // 50))  # several worlds, so that the workers share them
BOT = {"rules": [{"models": "shop.orders", "approvals": 1}], "deployments": True, "skip_label": SKIP_LABEL}
RULES = {"gateways": {}, "cicd_bot": BOT}


@pytest.fixture(name="scene")
def _scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    scene.start()
    scene.populate({**PROJECT, "config.yaml": yaml.safe_dump(RULES)})
    until(lambda: scene.prod().revision == 1, what="prod")
    yield scene
    scene.end()


def edit(chance: random.Random, life: int) -> Files:
    """The shared model, or one of its own."""
    if chance.random() < 0.4:
        more = chance.choice(("", ", 2 AS more", " WHERE true"))
        return {"models/orders.sql": f"SELECT {chance.randrange(9)} AS id{more}\n"}
    return {f"models/own_{life}.sql": f"SELECT {chance.randrange(99)} AS n\n"}


@pytest.mark.parametrize("part", PARTS)
def test_random_lives_end_with_one_comment_ended_checks_and_prod_as_the_branch(scene: Scene, part: int) -> None:
    """Behaviours 12, 17, 18, 19, 20, 21, 24, 31, 38: whatever happens on the way."""
    world = World(scene, random.Random(SEED + part), edit)  # noqa: S311
    world.live(LIVES // len(PARTS))

    sys.stderr.write(
        f"\n{len(world.over)} lives, {world.killed} kills, {len(world.commands)} commands, {world.pressed} presses\n"
    )
    state = json.loads((scene.home / SHOP / "scripted.json").read_text())["environments"]
    assert state["prod"]["models"] == merged_models(scene)
    assert set(world.comments_of_plans().values()) <= {0, 1}
    assert len(world.replies()) == len(set(world.replies()))
    assert world.unfinished_checks() == []


def merged_models(scene: Scene) -> dict[str, str]:
    """The models as the prod branch has them."""
    tree = repos.tree(scene.github.state.git(SHOP), "main", "models")
    return {f"shop.{Path(e.path).stem}": scene.github.read(SHOP, f"models/{Path(e.path).name}") for e in tree}
