"""Random lives of pull requests with the planner itself and a Spark that is killed with its service.

MERGEPLAN_LIVES is how many (`make prove`: 200), MERGEPLAN_SEED where the choices begin. At the end prod holds, row by
row, what a build of the branch from nothing holds.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mergeplan_sandbox.git import repos
from tests.bot.conftest import SHOP, until
from tests.bot.lives import SKIP_LABEL, Files, World
from tests.bot.test_crash import Scene
from tests.bot.test_real_planner import BARE, rows

pytestmark = pytest.mark.prove

LIVES = int(os.environ.get("MERGEPLAN_LIVES", "10"))
SEED = int(os.environ.get("MERGEPLAN_SEED", "5"))
PARTS = range(max(1, LIVES // 50))  # several worlds, so that the workers share them
TODAY = datetime.now(UTC).date()
FIRST, LAST = TODAY - timedelta(days=9), TODAY - timedelta(days=3)  # no row depends on when a plan is made


def base(value: int, more: str = "") -> str:
    return f"MODEL (name shop.base, kind FULL);\nSELECT id, v{more} FROM VALUES (1, {value}), (2, 3) AS t(id, v)\n"


def daily(factor: int, more: str = "") -> str:
    return (
        f"MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day), start '{FIRST}');\n"
        f"SELECT b.id, b.v * {factor} AS v{more}, d.day FROM shop.base AS b\n"
        f"CROSS JOIN (SELECT explode(sequence(date '{FIRST}', date '{LAST}')) AS day) AS d\n"
        "WHERE d.day BETWEEN @start_date AND @end_date\n"
    )


TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT day, sum(v) AS v FROM shop.daily GROUP BY day\n"
PROJECT = {
    "config.yaml": f"{BARE['config.yaml']}\ncicd_bot:\n  skip_label: {SKIP_LABEL}\n",
    "models/base.sql": base(2),
    "models/daily.sql": daily(1),
    "models/total.sql": TOTAL,
}


def edit(chance: random.Random, life: int) -> Files:
    """A value, a column, or a model of its own; whatever is merged first, the others still fit."""
    match chance.randrange(4):
        case 0:
            return {"models/base.sql": base(chance.randrange(3), chance.choice(("", f", {life} AS extra")))}
        case 1:
            return {"models/daily.sql": daily(chance.randrange(1, 4), chance.choice(("", f", {life} AS extra")))}
        case _:
            own = f"MODEL (name shop.own_{life}, kind {chance.choice(('FULL', 'VIEW'))});\n"
            return {f"models/own_{life}.sql": f"{own}SELECT id, {chance.randrange(99)} AS k FROM shop.base\n"}


@pytest.fixture(name="scene")
def _scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    del scene.environ["MERGEPLAN_PLANNER_COMMAND"]
    scene.environ["MERGEPLAN_WARM"] = "true"
    scene.start()
    scene.populate(PROJECT)
    until(lambda: scene.prod().revision == 1, 240.0, "prod")
    yield scene
    scene.end()


@pytest.mark.parametrize("part", PARTS)
def test_random_lives_end_with_prod_as_a_build_of_the_branch_from_nothing(
    scene: Scene, tmp_path: Path, part: int
) -> None:
    """Behaviours 9, 17, 18, 20, 21, 22, 24, 31: one comment each, no check left open, and prod is what was merged."""
    chance, lives, began = random.Random(SEED + part), LIVES // len(PARTS), time.monotonic()  # noqa: S311
    world = World(scene, chance, edit, kills=1 / 25, patience=900.0)
    world.live(lives)

    seconds = time.monotonic() - began
    sys.stderr.write(
        f"\n{len(world.over)} lives, {world.killed} kills, {seconds / lives:.1f} s a life, {world.pressed} presses\n"
    )
    assert set(world.comments_of_plans().values()) <= {1}
    assert len(world.replies()) == len(set(world.replies()))
    assert world.unfinished_checks() == []
    assert all_rows(scene.home / SHOP, world) == all_rows(build_from_nothing(world, tmp_path), world)


def all_rows(home: Path, world: World) -> list[list[object]]:
    """Every row of every model that the branch has, as text, sorted."""
    paths = repos.list_files(world.git, "main")
    names = sorted(Path(path).stem for path in paths if path.startswith("models/"))
    parts = (f"SELECT '{name}' AS m, to_json(struct(*)) AS r FROM shop.{name}" for name in names)
    return sorted(rows(home, " UNION ALL ".join(parts)), key=str)


def build_from_nothing(world: World, folder: Path) -> Path:
    """A home in which the branch's files were built once."""
    project, home = folder / "branch", folder / "nothing"
    subprocess.run(["git", "clone", "-q", str(world.git), str(project)], check=True)
    command = [
        sys.executable,
        "-m",
        "mergeplan.planner.cli.main",
        "plan",
        "prod",
        "--auto-apply",
        "--project",
        str(project),
    ]
    environment = {**os.environ, "MERGEPLAN_HOME": str(home)}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
    return home
