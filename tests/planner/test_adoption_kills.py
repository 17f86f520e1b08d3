"""An adoption that is killed at any step: the next verb puts back or finishes it, and no row is lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine
from tests.planner.killing import Ended, Step, Zygote, warm_spark

pytestmark = pytest.mark.prove

CONFIG = """
gateways:
  local:
    connection: {type: spark, concurrent_tasks: 1}
default_gateway: local
model_defaults: {dialect: spark, start: 2026-01-01}
"""
MODEL = "MODEL (name shop.total, kind FULL);\nSELECT sum(n) AS total FROM VALUES (1), (2) AS t(n)"
STEPS = [
    ("Plans.begin_adoption", False),
    ("SparkCatalog.rename_table", True),
    ("SparkCatalog.swap_view", True),
    ("SparkTables.take_over", True),
    ("PhysicalTables.register", True),
    ("Promotions.begin", False),
    ("Promotions.begin", True),
    ("Promotions.finish", False),
    ("Promotions.finish", True),
    ("Plans.close", False),
]


class Scene:
    """A project in a folder, its warm Spark, and children that are killed."""

    def __init__(self, folder: Path, zygote: Zygote, engine: SparkEngine) -> None:
        self.folder, self.zygote, self.engine = folder, zygote, engine
        self.case = 0

    def call(self, *arguments: str, step: Step | None = None) -> Ended:
        environ = {"MERGEPLAN_HOME": str(self.folder / "home"), "MERGEPLAN_PROJECT": f"case{self.case}"}
        return self.zygote.call(arguments, self.folder / "project", environ, step=step)

    def begin(self) -> str:
        """A table of plain Spark's where a model's view is to stand; its name."""
        self.case += 1
        name = f"shop{self.case}.total"
        files = self.folder / "project"
        (files / "models").mkdir(parents=True, exist_ok=True)
        (files / "config.yaml").write_text(f"project: case{self.case}\n{CONFIG}")
        (files / "models/total.sql").write_text(MODEL.replace("shop.total", name))
        for sql in (f"CREATE SCHEMA shop{self.case}", f"CREATE TABLE {name} USING parquet AS SELECT 42L AS total"):
            self.engine._sessions.run(sql)
        return name


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("adoptions")
    zygote = Zygote()
    with warm_spark(folder / "home"):
        engine = open_engine(Connection(), folder / "home", wait=0)
        yield Scene(folder, zygote, engine)
        engine.close()
    zygote.close()


@pytest.mark.parametrize(("method", "after"), STEPS)
def test_an_adoption_killed_at_a_step_is_undone_or_finished(scene: Scene, method: str, after: bool) -> None:
    name = scene.begin()
    asked = ("adopt", "--table", f"{name}={name}", "--auto-apply")
    killed = scene.call(*asked, step=Step(method, 1, after))
    looked = scene.call("plan", "--no-prompts")  # it settles what is left, and is not applied
    again = scene.call(*asked)

    assert (killed.was_killed, looked.code, again.code) in ((True, 0, 0), (True, 0, 1)), (killed, looked, again)
    assert again.code == 0 or "has `" in str(again), again  # it had come to prod before the kill
    planned = scene.call("plan", "--no-prompts")
    assert planned.code == 0, planned
    assert planned.result["plan"]["empty"]
    assert scene.engine.fetch(f"SELECT total FROM {name}").rows == ((42,),)
    assert scene.engine.fetch(f"SELECT total FROM {name}__adopted").rows == ((42,),)
