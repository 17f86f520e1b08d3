"""What ordinary models do on Spark, all of it through the proxy: one child, some fifty pieces of code."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.asking import fill, run_codes
from tests.planner.engine.spark.attacks import IN_PYTHON, ORDINARY

pytestmark = pytest.mark.prove


def test_an_ordinary_model_misses_nothing(engine: SparkEngine, tmp_path: Path) -> None:
    fill(engine)

    answers = run_codes(engine, tmp_path, {**ORDINARY, **IN_PYTHON})

    del answers["environment"]
    assert {name: text for name, text in answers.items() if text != "done"} == {}
    assert len(answers) == len(ORDINARY) + len(IN_PYTHON)
