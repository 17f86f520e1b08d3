"""A DAG of a thousand models: what parsing it takes, and that the rows of Airflow's database grow with the models."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.state.store import StateStore
from tests.airflow.graphs import document, model
from tests.airflow.standalone import AIRFLOW, Airflow, start_airflow
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.prove,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not AIRFLOW.exists(), reason="make prove makes .venv-airflow"),
    pytest.mark.xdist_group("airflow"),
]
MEASURE = Path(__file__).parent / "parse_time.py"
# In place of mergeplan: a run in which nothing is due, on record.
COMMAND = """
import sys
from datetime import UTC, datetime
from mergeplan.planner.state.runs.run_records import RunStatus
from mergeplan.planner.state.store import StateStore

store, id = StateStore({url!r}), sys.argv[sys.argv.index("--run-id") + 1]
store.runs.begin(id, "prod", 3, datetime.now(UTC))
store.runs.end(id, RunStatus.DONE)
print('{{"event": "result", "ok": true}}')
"""
DAG = """
from datetime import timedelta
from mergeplan.airflow import MergeplanDag

place = {{"folder": {folder!r}, "command": {command!r}, "state_conn_id": "state", "project": "", "follow": False,
         "producer": {{"retries": 3, "retry_delay": timedelta(seconds=5)}}}}
small = MergeplanDag("small", schedule_file={small!r}, schedule=None, **place)
large = MergeplanDag("large", schedule_file={large!r}, schedule=None, **place)
"""


def write_schedule(path: Path, count: int) -> str:
    """A schedule of so many models in ten layers, each of which reads three of the layer before."""
    width = count // 10
    names = [[f"s.m{layer}_{n}" for n in range(width)] for layer in range(10)]
    models = [
        model(names[layer][n], *({names[layer - 1][(n + k) % width] for k in range(3)} if layer else ()))
        for layer in range(10)
        for n in range(width)
    ]
    path.write_text(json.dumps(document(*models, project="")))
    return str(path)


def test_parsing_a_thousand_models_takes_a_tenth_of_a_second_beyond_airflow(tmp_path: Path) -> None:
    file = write_schedule(tmp_path / "large.json", 1000)
    python = AIRFLOW.parent / "python"
    done = subprocess.run(
        [python, MEASURE, file, tmp_path], capture_output=True, text=True, timeout=600, check=True, cwd=tmp_path
    )
    measured = json.loads(done.stdout.splitlines()[-1])

    assert measured["loaded"] == []
    # A tenth of a second where Airflow itself takes a seventh; a slow machine slows both.
    assert measured["ours"] - measured["plain"] < max(0.1, 0.7 * measured["plain"]), measured


def test_the_rows_of_airflows_database_grow_with_the_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    StateStore(url).close()
    (tmp_path / "command.py").write_text(COMMAND.format(url=url))
    monkeypatch.setenv("AIRFLOW_CONN_STATE", json.dumps({"conn_type": "generic", "extra": {"url": url}}))
    small, large = write_schedule(tmp_path / "small.json", 200), write_schedule(tmp_path / "large.json", 1000)
    command = [sys.executable, str(tmp_path / "command.py")]
    text = DAG.format(folder=str(tmp_path), command=command, small=small, large=large)
    with start_airflow(tmp_path / "home", text) as airflow:
        wait_for("the DAGs", lambda: len(airflow.api("GET", "/dags")["dags"]) == 2)
        rows = {}
        for dag in ("small", "large"):
            before = count_rows(airflow)
            airflow.trigger(dag, "once", None)
            states = airflow.wait_for_run(dag, "once", 1500)
            assert set(states.values()) == {"success"}
            rows[dag] = {name: number - before[name] for name, number in count_rows(airflow).items()}

    assert rows["large"]["task_instance"] == 1001
    assert rows["large"]["trigger"] <= 0  # each goes with its task
    assert rows["large"]["xcom"] <= 2
    assert rows["large"]["asset_event"] == 0  # nothing was computed
    assert sum(rows["large"].values()) < 5.5 * sum(rows["small"].values()), rows


def count_rows(airflow: Airflow) -> dict[str, int]:
    """How many rows each table has that grows with a DAG run."""
    names = (
        "task_instance trigger xcom asset_event task_instance_history rendered_task_instance_fields log dag_run "
        "task_reschedule"
    ).split()
    return {name: airflow.count(name) for name in names}
