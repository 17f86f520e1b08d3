"""One table of each format from its first plan to a rollback, in a Spark of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.model.model import TABLE_FORMATS
from tests.planner.lakehouse import NO_JARS

ROOT = Path(__file__).parents[2]
OLD, NEW = [[1, 10], [2, 20]], [[1, 11], [2, 21]]


FIRST, *OTHERS = TABLE_FORMATS


@pytest.mark.parametrize("form", [FIRST, *(pytest.param(form, marks=pytest.mark.prove) for form in OTHERS)])
def test_a_table_is_built_edited_promoted_and_rolled_back(form: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.planner.lakehouse", form, str(tmp_path / "shop")],
        cwd=ROOT, env={**os.environ, "MERGEPLAN_SPARK_PROFILE": "metadata"},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    if run.returncode == NO_JARS:
        pytest.skip(f"no jars: {run.stderr}")

    assert run.returncode == 0, run.stderr
    steps = [json.loads(line) for line in run.stdout.splitlines()]
    assert steps[:2] == [["built", 1, OLD], ["edited", 1, OLD]]
    assert steps[2:4] == [["promoted", 0, NEW], ["rolled back", 0, OLD]]
    assert {(name, provider) for name, _, provider in steps[4:]} == {("prod", form), ("dev", form)}
