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

from mergeplan_sandbox.git import repos
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

    sys.stderr.write(f"\n{world}\n")
    assert prod_of(scene, SHOP) == models_on_prod(world)
    assert set(world.comments_of_plans().values()) <= {1}
    assert len(world.replies()) == len(set(world.replies()))
    assert world.unfinished_checks() == []


@pytest.mark.prove
@pytest.mark.parametrize("part", PARTS)
def test_random_lives_in_two_projects_end_with_each_prod_as_its_folder(tmp_path: Path, part: int) -> None:
    """Behaviours 12, 17, 18, 19, 20, 21, 24, 31, 38: one comment and one set of checks for each project."""
    folders, scene = ("shop", "ads"), Scene(tmp_path)
    scene.environ["MERGEPLAN_PROJECT_PATH"] = ",".join(folders)
    files = {**PROJECT, "config.yaml": yaml.safe_dump(RULES)}
    scene.start()
    try:
        scene.populate({f"{folder}/{path}": text for folder in folders for path, text in files.items()})
        world = World(scene, random.Random(SEED + part), edit_folders, folders)  # noqa: S311
        until(world.prod_is_at_rest, what="both prods")
        world.live(LIVES // len(PARTS))

        sys.stderr.write(f"\n{world}\n")
        for key, folder in zip(world.projects, folders, strict=True):
            assert prod_of(scene, key) == models_on_prod(world, f"{folder}/models")
        assert set(world.comments_of_plans().values()) <= {1}
        assert len(world.replies()) == len(set(world.replies()))
        assert world.unfinished_checks() == []
    finally:
        scene.end()


def edit_folders(chance: random.Random, life: int) -> Files:
    """An edit of one project, or of both."""
    chosen = chance.choice((("shop",), ("ads",), ("shop", "ads")))
    return {f"{folder}/{path}": text for folder in chosen for path, text in edit(chance, life).items()}


def prod_of(scene: Scene, key: str) -> dict[str, str]:
    """The models that prod shows, for the project with that key."""
    state = json.loads((scene.home / key / "scripted.json").read_text())
    models: dict[str, str] = state["environments"]["prod"]["models"]
    return models


def models_on_prod(world: World, folder: str = "models") -> dict[str, str]:
    """The models as the prod branch has them in a folder."""
    paths = repos.list_files(world.git, "main")
    models = [path for path in paths if Path(path).parent == Path(folder)]
    return {f"shop.{Path(path).stem}": world.scene.github.read(world.name, path) for path in models}
