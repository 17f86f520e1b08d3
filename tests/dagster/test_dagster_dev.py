"""A real `dagster dev` with a component: its daemon runs schedules and pools, its jobs maintain an environment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.dagster.dev import DagsterDev, start_dagster
from tests.dagster.scene import PYTHON, Scene, open_scene
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.prove,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Dagster: `make .venv-dagster/.ready` installs it"),
    pytest.mark.xdist_group("dagster-dev"),
]
DAYS = [f"{datetime.now(UTC) - timedelta(days=number):%Y-%m-%d}" for number in (3, 2, 1)]
FILES = {
    "config.yaml": "gateways:\n  spark:\n    connection: {type: spark}\ndefault_gateway: spark\n"
    f"model_defaults: {{dialect: spark, start: {DAYS[0]}, cron: '@daily'}}\n",
    "external_models.yaml": "- name: raw.events\n  columns: {id: int, day: date, price: int}\n",
    "models/daily.sql": "MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day), tags (core, heavy),"
    " audits (not_null(columns := (id))));\n"
    "SELECT id, day, price FROM raw.events WHERE day BETWEEN @start_date AND @end_date\n",
    "models/total.sql": "MODEL (name shop.total, kind FULL, cron '0 7 * * 1-5', tags (core));\n"
    "SELECT day, sum(price) AS total FROM shop.daily GROUP BY day\n",
    "models/top.sql": "MODEL (name shop.top, kind FULL, tags (heavy), freshness (error_after '60 hours'));\n"
    "SELECT max(price) AS price FROM shop.daily\n",
    "tests/test_top.yaml": "test_top:\n  model: shop.top\n  inputs:\n    shop.daily: {rows: [{price: 1}, {price: 3}]}\n"
    "  outputs: {query: {rows: [{price: 3}]}}\n",
}  # fmt: skip
DEFS = """type: mergeplan.dagster.MergeplanProjectComponent
attributes:
  project: {project}
  python: {python}
  retries: 0
  running: true
  options:
    "tag:heavy": {{pool: heavy, retries: 1, retry_delay_seconds: 1}}
  maintenance: {{janitor: "*/4 * * * *", audit: "30 5 * * *"}}
"""
INSTANCE = "telemetry: {enabled: false}\nnux: {enabled: false}\nconcurrency: {pools: {default_limit: 1}}\n"
NODES = """{ assetNodes {
  assetKey { path } pools opNames
  internalFreshnessPolicy { ... on TimeWindowFreshnessPolicy { failWindowSeconds } }
} }"""


@dataclass
class Stage:
    """The project, and the `dagster dev` that runs it."""

    scene: Scene
    dev: DagsterDev


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_scene(tmp_path_factory.mktemp("dev"), FILES) as scene:
        scene.put(*(f"{number}, date'{day}', {number}0" for number, day in enumerate(DAYS, 1)))
        scene.mergeplan("plan", "prod", "--auto-apply")
        home = scene.folder / "home"
        (home / "dagster.yaml").write_text(INSTANCE)
        text = DEFS.format(project=scene.folder / "shop", python=sys.executable)
        with start_dagster(scene.folder / "pipeline", home, text, scene.environ) as dev:
            yield Stage(scene, dev)


def failures(run: dict[str, Any]) -> str:
    """Why the steps of a run failed."""
    events = [event for event in run["events"] if event["__typename"] == "ExecutionStepFailureEvent"]
    return " ".join(f"{event['failureMetadata']} {event['error']}" for event in events)


def test_a_component_has_pools_by_selector_and_freshness_by_cron_or_by_the_model(stage: Stage) -> None:
    nodes = {".".join(node["assetKey"]["path"]): node for node in stage.dev.ask(NODES)["assetNodes"]}

    assert {name: (node["pools"], node["opNames"]) for name, node in nodes.items()} == {
        "shop.daily": (["heavy"], ["mergeplan_tag_heavy"]),
        "shop.top": (["heavy"], ["mergeplan_tag_heavy"]),
        "shop.total": ([], ["mergeplan"]),
        "raw.events": ([], []),
    }
    windows = {name: (node["internalFreshnessPolicy"] or {}).get("failWindowSeconds") for name, node in nodes.items()}
    hour = 3600
    assert windows == {"shop.daily": 26 * hour, "shop.top": 60 * hour, "shop.total": 74 * hour, "raw.events": None}


def test_the_sensor_and_the_run_report_what_was_promoted_and_assets_are_fresh(stage: Stage) -> None:
    run = stage.dev.run("mergeplan_run")
    query = """{ assetNodes {
      assetKey { path } assetMaterializations(limit: 1) { partition } freshnessStatusInfo { freshnessStatus }
    } }"""

    def fresh() -> bool:
        nodes = [node for node in stage.dev.ask(query)["assetNodes"] if node["freshnessStatusInfo"]]
        states = [node["freshnessStatusInfo"]["freshnessStatus"] for node in nodes]
        return states == ["HEALTHY"] * 3 and all(node["assetMaterializations"] for node in nodes)

    assert run["status"] == "SUCCESS", failures(run)
    wait_for("the daemon to look at the policies", fresh, 200)
    stage.dev.picture("dagster-lineage.png", "/locations/pipeline.definitions/asset-groups/shop/lineage", (1300, 540))
    stage.dev.picture("dagster-asset.png", "/assets/shop/daily?view=overview", (1300, 720))


def test_the_restatement_job_computes_the_days_that_its_configuration_names(stage: Stage) -> None:
    scene = stage.scene
    scene.put(f"7, date'{DAYS[1]}', 5", f"8, date'{DAYS[2]}', 1000")
    config = {"models": ["shop.daily"], "start": DAYS[1], "end": DAYS[1]}
    run = stage.dev.run("mergeplan_restate", {"ops": {"mergeplan_restate_models": {"config": config}}})

    assert run["status"] == "SUCCESS", failures(run)
    assert scene.totals() == {DAYS[0]: 10, DAYS[1]: 25, DAYS[2]: 30}
    parts = [event["partition"] for event in run["events"] if event.get("assetKey") == {"path": ["shop", "daily"]}]
    assert parts == [DAYS[1]]


def test_a_restatement_of_no_model_or_of_one_that_prod_does_not_have_says_so(stage: Stage) -> None:
    for models, sentence in (([], "names no models to compute again"), (["shop.gone"], "shop.gone")):
        run = stage.dev.run("mergeplan_restate", {"ops": {"mergeplan_restate_models": {"config": {"models": models}}}})
        assert run["status"] == "FAILURE"
        assert sentence in failures(run)


def test_the_audit_job_evaluates_the_checks_and_the_test_job_the_unit_tests(stage: Stage) -> None:
    audit, test = stage.dev.run("mergeplan_audit"), stage.dev.run("mergeplan_test")
    checks = [event["evaluation"] for event in audit["events"] if "evaluation" in event]

    assert (audit["status"], test["status"]) == ("SUCCESS", "SUCCESS"), failures(audit) + failures(test)
    # Of each day that the table holds, and of no other: the audit looked at all time.
    assert [(check["checkName"], check["success"]) for check in checks] == [("not_null", True)] * 3
    assert any("test_top" in event.get("message", "") for event in test["events"])


def test_the_freshness_job_measures_the_tables(stage: Stage) -> None:
    run = stage.dev.run("mergeplan_freshness")

    assert run["status"] == "SUCCESS", failures(run)


def test_the_daemon_runs_the_janitor_by_its_schedule(stage: Stage) -> None:
    query = """{ runsOrError(filter: {tags: [{key: "dagster/schedule_name", value: "mergeplan_janitor_schedule"}]}) {
      ... on Runs { results { id status } } } }"""

    def succeeded() -> bool:
        return any(run["status"] == "SUCCESS" for run in stage.dev.ask(query)["runsOrError"]["results"])

    wait_for("the janitor", succeeded, 500)


def test_two_runs_of_one_pool_take_turns(stage: Stage) -> None:
    ids = [stage.dev.launch("__ASSET_JOB", assets=("shop.top",)) for _ in range(2)]
    runs = [stage.dev.finish(id) for id in ids]

    assert [run["status"] for run in runs] == ["SUCCESS", "SUCCESS"]
    (first, second) = sorted((run["stepStats"][0] for run in runs), key=lambda step: float(step["startTime"]))
    assert first["endTime"] <= second["startTime"]


def test_a_state_that_is_gone_fails_the_run_in_a_sentence(stage: Stage) -> None:
    state = stage.scene.folder / "shop/.mergeplan/state.db"
    hidden = state.rename(state.with_name("hidden.db"))
    run = stage.dev.run("mergeplan_run")
    hidden.rename(state)

    assert run["status"] == "FAILURE"
    assert "There is no state database at" in failures(run)
