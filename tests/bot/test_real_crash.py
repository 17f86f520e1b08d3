"""`kill -9` of the service with the planner itself at work: Spark and all are found and ended, the work is finished."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.inbox import Inbox
from bot.processes import birth
from bot.records import State
from tests.bot.conftest import SHOP, until
from tests.bot.test_crash import Scene
from tests.bot.test_real_planner import EXAMPLE

PATIENCE = 200.0


@pytest.fixture(name="scene")
def _scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    del scene.environ["MERGEPLAN_PLANNER_COMMAND"]
    scene.environ["MERGEPLAN_WARM"] = "true"
    scene.start()
    yield scene
    scene.end()


def test_kill_9_during_a_build_and_during_a_promotion_ends_with_prod_whole(scene: Scene) -> None:
    """Behaviour 17: the next start finishes; no check stays in progress, no process of the dead service lives on."""
    files = {path.relative_to(EXAMPLE).as_posix(): path.read_text() for path in EXAMPLE.rglob("*") if path.is_file()}
    scene.populate(files)
    until(lambda: scene.prod().revision == 1, PATIENCE, "prod")
    model = files["models/incremental_model.sql"]
    number = scene.open({"models/incremental_model.sql": model.replace("event_date,", "event_date,\n  'z' AS more,")})
    until(lambda: scene.record(number).fresh or scene.record(number).state is State.PLANNED, PATIENCE, "the plan")
    _die_and_rise(scene)
    until(lambda: scene.record(number).state is State.PLANNED, PATIENCE, "the environment")

    scene.github.merge(SHOP, number, author="ann")
    until(lambda: scene.record(number).state is State.MERGED, PATIENCE, "the merge")
    _die_and_rise(scene)
    until(lambda: scene.record(number).state is State.PROMOTED, PATIENCE, "the promotion")
    until(lambda: scene.statuses(number) == {"completed"}, what="the checks")
    until(lambda: scene.prod().revision == 2, what="prod's revision")


def _die_and_rise(scene: Scene) -> None:
    scene.kill()
    inbox = Inbox(f"sqlite:///{scene.home / 'bot.db'}")
    left = inbox.open_runs()
    inbox.close()
    scene.start()
    until(lambda: all(birth(run.pid) != run.birth for run in left), PATIENCE, "the end of what was left")
