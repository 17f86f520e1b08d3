"""A real Airflow runs the quickstart as it was promoted: days, late rows, a failure, a kill, a merge, a cleared day."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.standalone import AIRFLOW, COMMAND, Airflow, fetch, mergeplan, start_airflow, warm_spark
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.prove,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not AIRFLOW.exists(), reason="make prove makes .venv-airflow"),
    pytest.mark.xdist_group("airflow"),
]
DAILY, FULL, MORE = "sqlmesh_example.incremental_model", "sqlmesh_example.full_model", "sqlmesh_example.by_day"
WEEKLY = "sqlmesh_example.weekly"
DAG = """
from datetime import timedelta
from mergeplan.airflow import MergeplanDag, MergeplanMaintenanceDag, MergeplanTaskGroup, view_asset
from airflow.sdk import DAG
from airflow.providers.standard.operators.empty import EmptyOperator

place = {{"folder": {folder!r}, "command": {command!r}}}
dag = MergeplanDag(
    "shop", schedule_file={file!r}, execution_time="logical_date", schedule=None, poll_seconds=1, lost_seconds=120,
    page_url="https://catalog.example/models/{{model}}.html",
    producer={{"retries": 2, "retry_delay": timedelta(seconds=1)}},
    options={{"kind:full": {{"pool": "default_pool", "pool_slots": 2}}}}, **place,
)
care = MergeplanMaintenanceDag("care", schedule=None, **place)
with DAG("report", schedule=[view_asset({full!r})]) as report:
    EmptyOperator(task_id="send")
own = {{"schedule_file": {file!r}, "execution_time": "logical_date", "poll_seconds": 1, "lost_seconds": 5, **place}}
grouped = MergeplanDag("grouped", schedule=None, groups={{"both": "*"}}, state_conn_id="state", **own)
with DAG("mine", schedule=None) as mine:
    shop = MergeplanTaskGroup("shop", state_conn_id="state", project="", **own)
    EmptyOperator(task_id="before") >> shop >> EmptyOperator(task_id="after")
astray = MergeplanDag("astray", schedule=None, state_conn_id="astray", follow=False, **own)
absent = MergeplanDag("absent", schedule=None, **{{**own, "command": "/no/mergeplan"}})
unnamed = MergeplanDag("unnamed", schedule=None, state_conn_id="unnamed", follow=False, **own)
"""
EXTERNAL = "- name: raw.events\n  columns: {id: int, item_id: int, event_date: date, amount: string}\n"
EVENTS = "CREATE TABLE raw.events (id INT, item_id INT, event_date DATE, amount STRING) USING parquet"
INCREMENTAL = """MODEL (
  name sqlmesh_example.incremental_model,
  kind INCREMENTAL_BY_TIME_RANGE (time_column event_date, lookback 1),
  start '2020-01-01', cron '@daily', grain (id, event_date), audits (not_null(columns := (id)))
);
SELECT id, item_id, event_date, CAST(amount AS INT) AS amount FROM raw.events
WHERE event_date BETWEEN @start_date AND @end_date
"""
BY_DAY = """MODEL (name sqlmesh_example.by_day, kind FULL);
SELECT event_date, sum(amount) AS amount FROM sqlmesh_example.incremental_model GROUP BY event_date
"""
WEEK = "MODEL (name sqlmesh_example.weekly, kind FULL, cron '@weekly');\nSELECT count(*) AS n FROM raw.events\n"
# What the daily table holds in the end: id, day, amount. Of the fourth the raw row is another one by then.
ROWS = [row.split() for row in (
    "1 1 999", "2 2 20", "3 3 31", "4 4 40", "5 3 50", "6 5 60", "7 6 70", "8 7 80", "9 8 90", "10 9 100",
    "11 10 110", "12 11 120",
)]  # fmt: skip


@dataclass
class Stage:
    """The project and the Airflow that runs it."""

    folder: Path
    airflow: Airflow

    def add(self, *rows: str) -> None:
        """Put rows into the table that the project reads: `id, item, day of January, 'amount'`."""
        values = ", ".join("({}, {}, DATE '2020-01-{:0>2}', {})".format(*row.split()) for row in rows)
        fetch(self.folder, f"INSERT INTO raw.events VALUES {values}")

    def replace_all(self, *rows: str) -> None:
        """Put rows in the place of all that the table holds."""
        fetch(self.folder, "TRUNCATE TABLE raw.events")
        self.add(*rows)

    def run(self, name: str, day: int, dag: str = "shop", hour: int = 0) -> dict[str, str]:
        """A DAG run of a day of January, to its end."""
        self.airflow.trigger(dag, name, f"2020-01-{day:02}T{hour:02}:00:00Z")
        return self.airflow.wait_for_run(dag, name)

    def daily(self) -> list[tuple[str, ...]]:
        """The rows of the daily table."""
        return sorted(map(tuple, fetch(self.folder, f"SELECT id, event_date, amount FROM {DAILY}")))

    def intervals(self, run: str, model: str = DAILY) -> object:
        """The time that a run computed of a model."""
        return self.airflow.result("shop", run, model)["intervals"]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder, home = tmp_path_factory.mktemp("shop"), tmp_path_factory.mktemp("airflow")
    mergeplan(folder, "init", ".")
    (folder / "models/incremental_model.sql").write_text(INCREMENTAL)
    (folder / "external_models.yaml").write_text(EXTERNAL)
    (folder / "models/seed_model.sql").unlink()
    for path in (folder / "tests").iterdir():
        path.unlink()
    with warm_spark(folder):
        fetch(folder, "CREATE SCHEMA IF NOT EXISTS raw")
        fetch(folder, EVENTS)
        opened = Stage(folder, Airflow(home, 0))
        opened.add("1 1 1 '10'", "2 1 2 '20'")
        mergeplan(folder, "plan", "--auto-apply", "--execution-time", "2020-01-03")
        file = str(home / "shop.json")
        mergeplan(folder, "schedule", "--to", file)
        text = DAG.format(folder=str(folder), command=COMMAND, file=file, full=FULL)
        urls = {"STATE": f"sqlite:///{folder}/.mergeplan/state.db", "ASTRAY": f"sqlite:///{home}/none.db"}
        connections = {f"AIRFLOW_CONN_{name}": connection(url) for name, url in urls.items()}
        with start_airflow(home / "home", text, connections) as airflow:
            wait_for("the DAG", lambda: {"shop", "report", "unnamed"} <= dags(airflow))
            yield Stage(folder, airflow)


def connection(url: str) -> str:
    """A connection to a state, as an environment variable has it."""
    return json.dumps({"conn_type": "generic", "extra": {"url": url}})


def dags(airflow: Airflow) -> set[str]:
    return {dag["dag_id"] for dag in airflow.api("GET", "/dags")["dags"]}


def test_days_are_run_with_late_rows_and_trigger_other_dags(stage: Stage) -> None:
    stage.add("3 2 3 '30'")
    assert stage.run("day3", 4) == {"run": "success", DAILY: "success", FULL: "success"}
    assert stage.intervals("day3") == [["2020-01-02", "2020-01-04"]]  # with its lookback

    stage.add("4 2 4 '40'", "5 1 3 '50'")  # the second comes a day late
    assert set(stage.run("day4", 5).values()) == {"success"}
    assert ("5", "2020-01-03", "50") in stage.daily()

    events = asset_events(stage.airflow)
    extra = [event["extra"] for event in events if event["name"] == FULL]
    assert [(one["revision"], one["rows"]) for one in extra] == [(1, 2), (1, 2)]
    assert extra[0]["table"].startswith("mergeplan__")
    assert extra[0]["audits"] == [{"name": "assert_positive_order_ids", "rows": 0, "blocking": True}]
    reports = stage.airflow.api("GET", "/dags/report/dagRuns")["dag_runs"]
    assert len(reports) == 2

    assert set(stage.run("again", 5, hour=6).values()) == {"success"}  # nothing is due
    assert f"Nothing of `{DAILY}` was due." in stage.airflow.log("shop", "again", DAILY)
    assert len(asset_events(stage.airflow)) == len(events)


def asset_events(airflow: Airflow) -> list[dict[str, Any]]:
    """The events of assets, the oldest first."""
    events: list[dict[str, Any]] = airflow.api("GET", "/assets/events")["asset_events"]
    return sorted(events, key=lambda event: str(event["timestamp"]))


def test_a_model_that_fails_is_shown_and_its_retry_goes_on(stage: Stage) -> None:
    stage.add("6 1 5 'oops'")
    states = stage.run("day5", 6)
    assert states == {"run": "success", DAILY: "failed", FULL: "upstream_failed"}
    assert "oops" in stage.airflow.log("shop", "day5", DAILY)
    stage.airflow.picture("airflow-failed.png", "/dags/shop/runs/day5")

    stage.replace_all("1 1 1 '10'", "2 1 2 '20'", "3 2 3 '30'", "4 2 4 '40'", "5 1 3 '50'", "6 1 5 '60'")
    stage.airflow.clear("shop", "day5", only_failed=True)
    assert set(stage.airflow.wait_for_run("shop", "day5").values()) == {"success"}
    assert "It is tried again." in stage.airflow.log("shop", "day5", DAILY)
    assert "mergeplan run" not in stage.airflow.log("shop", "day5", FULL)  # the retry computed it too
    assert ("6", "2020-01-05", "60") in stage.daily()


def test_a_run_that_is_killed_goes_on_with_the_retry_of_its_task(stage: Stage) -> None:
    stage.add("7 2 6 '70'")
    stage.airflow.trigger("shop", "day6", "2020-01-07T00:00:00Z")
    pid = wait_for("the run", lambda: running_pid(stage.folder, "shop/day6"), 120)
    os.kill(pid, signal.SIGKILL)

    assert set(stage.airflow.wait_for_run("shop", "day6").values()) == {"success"}
    tries = stage.airflow.api("GET", "/dags/shop/dagRuns/day6/taskInstances/run")["try_number"]
    assert tries == 2
    assert ("7", "2020-01-06", "70") in stage.daily()


def running_pid(folder: Path, run: str) -> int | None:
    """The process of a run that computes a model now."""
    with sqlite3.connect(f"file:{folder / '.mergeplan/state.db'}?mode=ro", uri=True) as database:
        busy = database.execute("SELECT 1 FROM run_models WHERE run = ? AND status = 'running'", [run]).fetchone()
        row = database.execute("SELECT pid FROM leases WHERE name = 'prod' AND holder != ''").fetchone()
    return int(row[0]) if busy and row else None


def test_clearing_a_task_of_a_day_restates_that_day(stage: Stage) -> None:
    stage.replace_all(
        "1 1 1 '999'", "2 1 2 '20'", "3 2 3 '31'", "4 2 4 '999'", "5 1 3 '50'", "6 1 5 '60'", "7 2 6 '70'"
    )
    stage.airflow.clear("shop", "day3", DAILY)
    assert set(stage.airflow.wait_for_run("shop", "day3").values()) == {"success"}

    amounts = {row[0]: row[2] for row in stage.daily()}
    assert (amounts["3"], amounts["4"]) == ("31", "40")  # of later days nothing was computed
    assert stage.intervals("day3") == [["2020-01-02", "2020-01-04"]]  # though the lookback reached one day further
    total = fetch(stage.folder, f"SELECT sum(num_orders) FROM {FULL}")
    assert total == [["7"]]


def test_a_merge_adds_and_removes_tasks(stage: Stage) -> None:
    (stage.folder / "models/by_day.sql").write_text(BY_DAY)
    (stage.folder / "models/weekly.sql").write_text(WEEK)
    (stage.folder / "models/full_model.sql").unlink()
    mergeplan(stage.folder, "plan", "--auto-apply", "--execution-time", "2020-01-07")
    stage.add("8 1 7 '80'")
    states = stage.run("day7", 8)
    assert (states[DAILY], states[MORE]) == ("success", "success")  # the graph changed while it ran
    assert states.get(FULL) in ("removed", "success", None)

    wait_for("the new graph", lambda: MORE in tasks(stage.airflow), 120)
    assert tasks(stage.airflow) == {"run", DAILY, MORE, WEEKLY}
    stage.add("9 1 8 '90'")
    assert stage.run("day8", 9) == dict.fromkeys(("run", DAILY, MORE, WEEKLY), "success")
    by_day = fetch(stage.folder, f"SELECT event_date, amount FROM {MORE} ORDER BY event_date")
    assert by_day == fetch(
        stage.folder, f"SELECT event_date, sum(amount) FROM {DAILY} GROUP BY event_date ORDER BY event_date"
    )


def tasks(airflow: Airflow) -> set[str]:
    return {task["task_id"] for task in airflow.api("GET", "/dags/shop/tasks")["tasks"]}


def test_maintenance_restates_what_a_run_names(stage: Stage) -> None:
    stage.airflow.trigger("care", "restate", None, models=DAILY, start="2020-01-01", end="2020-01-01")
    assert set(stage.airflow.wait_for_run("care", "restate").values()) == {"success"}
    assert ("1", "2020-01-01", "999") in stage.daily()

    stage.airflow.trigger("care", "plain", None)
    states = stage.airflow.wait_for_run("care", "plain")
    assert states == {"restate": "skipped", **dict.fromkeys(("audit", "freshness", "test", "janitor"), "success")}


def test_models_of_a_group_share_a_task_and_only_those_that_were_computed_emit_events(stage: Stage) -> None:
    stage.add("10 1 9 'oops'")
    before = len(asset_events(stage.airflow))
    assert stage.run("group9", 10, "grouped") == {"run": "success", "both": "failed"}
    log = stage.airflow.log("grouped", "group9", "both")
    assert "oops" in log and f"`{MORE}`: `{DAILY}`, which it reads, failed." in log
    assert len(asset_events(stage.airflow)) == before

    stage.replace_all("2 1 2 '20'", "7 2 6 '70'", "9 1 8 '90'", "10 1 9 '100'")
    stage.airflow.clear("grouped", "group9", "both")
    assert stage.airflow.wait_for_run("grouped", "group9") == {"run": "success", "both": "success"}
    models = stage.airflow.result("grouped", "group9", "both")["models"]
    assert [model["model"] for model in models] == [DAILY, MORE]  # the weekly one was not due
    events = asset_events(stage.airflow)[before:]
    assert {event["name"]: event["extra"]["model"] for event in events} == {DAILY: DAILY, MORE: MORE}


def test_a_task_group_runs_in_a_dag_of_ones_own_with_the_state_of_a_connection(stage: Stage) -> None:
    stage.add("11 1 10 '110'")
    states = stage.run("mine10", 11, "mine")
    names = ("before", "after", *(f"shop.{name}" for name in ("run", DAILY, MORE, WEEKLY)))
    assert states == dict.fromkeys(names, "success")
    assert stage.airflow.result("mine", "mine10", f"shop.{DAILY}")["intervals"] == [["2020-01-09", "2020-01-11"]]
    assert ("11", "2020-01-10", "110") in stage.daily()


@pytest.mark.parametrize(
    ("dag", "sentence"),
    [("astray", "There is no state database at"), ("unnamed", "The conn_id `unnamed` isn't defined")],
)
def test_a_state_that_is_not_there_fails_each_task_in_a_sentence(stage: Stage, dag: str, sentence: str) -> None:
    states = stage.run("lost", 12, dag)
    assert states["run"] == states[DAILY] == "failed"
    assert "success" not in states.values()
    for task in ("run", DAILY):
        assert sentence in stage.airflow.log(dag, "lost", task)


def test_a_file_that_is_broken_is_named_by_each_task(stage: Stage) -> None:
    config = stage.folder / "config.yaml"
    text = config.read_text()
    config.write_text("gateways: [")
    states = stage.run("broken", 13, "grouped")
    config.write_text(text)

    assert states == {"run": "failed", "both": "failed"}
    for task in states:
        assert "config.yaml:1: The list that begins in this line is not closed." in stage.airflow.log(
            "grouped", "broken", task
        )


def test_a_run_that_cannot_begin_fails_its_models_and_does_not_make_them_wait_for_a_day(stage: Stage) -> None:
    states = stage.run("lost", 14, "absent")

    assert states["run"] == states[DAILY] == "failed"
    assert "`/no/mergeplan` cannot be started: No such file or directory." in stage.airflow.log("absent", "lost", "run")
    reason = "`run` is failed and said nothing of what is due: its log says why."
    assert reason in stage.airflow.log("absent", "lost", DAILY)


def test_a_retry_of_what_another_run_has_computed_since_succeeds(stage: Stage) -> None:
    stage.add("12 1 11 'oops'")
    assert stage.run("day11", 12)[DAILY] == "failed"
    stage.replace_all("2 1 2 '20'", "7 2 6 '70'", "11 1 10 '110'", "12 1 11 '120'")
    assert stage.run("day12", 13)[DAILY] == "success"

    stage.airflow.clear("shop", "day11", only_failed=True)
    assert set(stage.airflow.wait_for_run("shop", "day11").values()) == {"success"}
    assert "Its intervals were computed by another run." in stage.airflow.log("shop", "day11", DAILY)


def test_the_rows_are_those_that_mergeplan_run_computes(stage: Stage) -> None:
    """The rows of the source, and those of a computation by mergeplan alone from the same rows."""
    by_day = f"SELECT event_date, amount FROM {MORE} ORDER BY event_date"
    before, before_by_day = stage.daily(), fetch(stage.folder, by_day)
    assert before == sorted((row[0], f"2020-01-{row[1]:0>2}", row[2]) for row in ROWS)

    stage.replace_all(*(f"{id} 1 {day} '{amount}'" for id, day, amount in ROWS))
    mergeplan(stage.folder, "plan", "--auto-apply", "--restate-model", DAILY, "--execution-time", "2020-01-13")
    assert (stage.daily(), fetch(stage.folder, by_day)) == (before, before_by_day)
