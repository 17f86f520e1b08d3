"""A function in a model's frame runs in a Python worker of Spark: it gets no more than the model's own code.

So does what a table function runs while its call is analysed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.isolation.probe import cannot
from tests.safety.attacks import ATTACKS
from tests.safety.scene import Scene, loot

# In a process of its own: a process has one Spark. The function is told what it needs as text, as one in a model is.
PROGRAM = """
import sys
from pathlib import Path
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import open_engine

text, targets, home = sys.argv[1:]
conf = (("spark.driver.memory", "700m"),)
engine = open_engine(Connection(conf=conf, master="local[2]", serves=True), Path(home), "metadata")
from dataclasses import dataclass
from pyspark.sql.connect.functions import lit, udf, udtf
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeResult
from pyspark.sql.connect.session import SparkSession

spark = SparkSession.builder.remote(engine._sessions.current.server().url).create()

def attack_all():
    import contextlib, io, json
    names = {"__name__": "attacks"}
    exec(text, names)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        names["print_all"](json.loads(targets))
    return said.getvalue()

@udf("string")
def attack(number):
    return attack_all()

@dataclass
class Analysis(AnalyzeResult):
    said: str = ""

@udtf
class Analysed:
    def __init__(self, analysis):
        self.said = analysis.said
    @staticmethod
    def analyze(number):
        return Analysis(StructType().add("said", "string"), said=attack_all())
    def eval(self, number):
        yield self.said,

for row in Analysed(lit(1)).collect():
    print(row[0])
for row in spark.range(1).select(attack("id")).collect():
    print(row[0])
spark.stop()
engine.close()
"""

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(bool(cannot()), reason=f"this machine cannot isolate: {cannot()}"),
]


@pytest.mark.parametrize("isolation", ["required", "none"])
def test_a_function_in_a_frame_gets_nothing_where_workers_are_isolated(isolation: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene", tmp_path / "home", 9)
    before, targets = scene.read_planted(), scene.targets()
    text = Path(ATTACKS["read_the_key"].__code__.co_filename).read_text()
    command = [sys.executable, "-c", PROGRAM, text, json.dumps(targets), str(tmp_path / "home")]
    environment = {**os.environ, "MERGEPLAN_ISOLATION": isolation}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=True)
    got = {name for name, secrets in loot(done.stdout).items() if any(secrets)}
    scene.close()

    assert {name: len(secrets) for name, secrets in loot(done.stdout).items()} == dict.fromkeys(ATTACKS, 2)
    assert got == set() if isolation == "required" else got >= {"read_the_key", "write_the_warehouse", "run_a_command"}
    assert (scene.read_planted() == before) is (isolation == "required")
