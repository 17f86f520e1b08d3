"""A DAG runs when its models are due, also when clocks are put forward or back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.airflow.standalone import AIRFLOW

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not AIRFLOW.exists(), reason="make prove makes .venv-airflow"),
]


def test_each_time_that_a_model_is_due_a_dag_run_follows_within_an_hour(tmp_path: Path) -> None:
    """Not before it: such a run would find nothing due, and the next may be a day later."""
    done = subprocess.run(
        [AIRFLOW.parent / "python", Path(__file__).parent / "ticks.py"],
        capture_output=True, text=True, timeout=600, check=True, cwd=tmp_path,
        env={"AIRFLOW_HOME": str(tmp_path)},
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1]) == {}
