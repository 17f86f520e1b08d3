"""The service ends while a Spark Connect server computes a pull request's table: the next one waits for that."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeplan.bot.records import PullState
from tests.bot.conftest import SHOP, until
from tests.bot.test_crash import Scene
from tests.planner import runtimes
from tests.planner.test_left_writes import PARENT, SLOW

pytestmark = pytest.mark.prove

PATIENCE = 600.0
CONFIG = """gateways: {{spark: {{connection: {{type: spark, {spark}}}}}}}
model_defaults: {{dialect: spark, start: 2026-01-01}}
"""


@pytest.fixture(name="scene")
def _scene(tmp_path: Path) -> Iterator[Scene]:
    with runtimes.connect_server(tmp_path) as runtime:
        scene = Scene(tmp_path)
        del scene.environ["MERGEPLAN_PLANNER_COMMAND"]
        scene.environ |= runtime.environ
        scene.environ["MERGEPLAN_PLANNER_ENVIRONMENT"] = json.dumps([*runtime.environ])
        scene.start()
        scene.populate({"config.yaml": CONFIG.format(spark=runtime.spark), "models/items.sql": PARENT})
        yield scene
        scene.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_pull_request_computes_goes_on_while_there_is_no_service(
    scene: Scene, tmp_path: Path, number: signal.Signals
) -> None:
    def batches() -> list[Path]:
        return sorted(tmp_path.glob("warehouse/*/*slow*/mergeplan-*"))

    until(lambda: scene.prod().revision == 1, PATIENCE, "prod")
    pull = scene.open({"models/slow.sql": SLOW.format(kind="FULL", ds="").replace("60000", "200000")})
    until(batches, PATIENCE, "the write")
    begun = batches()
    scene.kill(number)
    scene.start()
    until(lambda: scene.record(pull).state is PullState.PLANNED, PATIENCE, "the environment")
    until(lambda: scene.statuses(pull) == {"completed"}, PATIENCE, "the checks")
    assert batches() == begun
    scene.github.merge(SHOP, pull, author="ann")
    until(lambda: scene.prod().revision == 2, PATIENCE, "the promotion")
    assert batches() == begun
