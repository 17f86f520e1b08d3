"""Real Dagster runs a real project, in an environment of its own: days with late rows, failures, kills, merges.

The tests are one story: each goes on from where the one before it ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dagster.scene import PYTHON, Scene, open_scene

FILES = {
    "config.yaml": "gateways:\n  spark:\n    connection: {type: spark}\ndefault_gateway: spark\n"
    "model_defaults: {dialect: spark, start: 2026-01-01, cron: '@daily'}\n",
    "external_models.yaml": "- name: raw.events\n  columns: {id: int, day: date, price: int}\n",
    "models/daily.sql": "MODEL (name shop.daily,"
    " kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 1, lookback 1),"
    " owner 'ann@shop.org', audits (not_null(columns := (id))));\n"
    "SELECT id, day, price FROM raw.events WHERE day BETWEEN @start_date AND @end_date\n",
    "models/total.sql": "MODEL (name shop.total, kind FULL);\n"
    "SELECT day, sum(price) AS total FROM shop.daily GROUP BY day\n",
    "models/shown.sql": "MODEL (name shop.shown, kind VIEW);\nSELECT total FROM shop.total\n",
}  # fmt: skip
pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not PYTHON.exists(), reason="no Dagster: `make .venv-dagster/.ready` installs it"),
]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The project with its first day promoted to prod."""
    with open_scene(tmp_path_factory.mktemp("dagster"), FILES) as scene:
        scene.put("1, date'2026-01-01', 10")
        scene.mergeplan("plan", "prod", "--auto-apply", "--execution-time", scene.at)
        yield scene


def made(answer: dict[str, Any], how: str | None = None) -> list[tuple[str, str | None]]:
    """The materializations of a run: those of its batches, or those that were reported with a word `how`."""
    events = (event for event in answer["events"] if "made" in event)
    return [
        (event["made"], event["partition"])
        for event in events
        if (
            event["metadata"].get("mergeplan/how", "").startswith(how) if how else "mergeplan/rows" in event["metadata"]
        )
    ]


def test_the_first_run_reports_what_was_promoted_and_computes_nothing(scene: Scene) -> None:
    answer = scene.dagster("run")

    assert answer["success"]
    assert made(answer, "promoted") == [("shop/daily", "2026-01-01"), ("shop/total", None)]
    assert made(answer) == []
    assert set(scene.dagster("status").values()) == {"FRESH"}


@pytest.mark.parametrize(
    ("at", "rows", "partitions"),
    [
        ("2026-01-03", ["2, date'2026-01-02', 5", "3, date'2026-01-01', 1"], ["2026-01-01", "2026-01-02"]),
        ("2026-01-04", ["4, date'2026-01-03', 7", "5, date'2026-01-02', 2"], ["2026-01-02", "2026-01-03"]),
    ],
)
def test_a_day_computes_its_partition_and_that_of_late_rows(
    scene: Scene, at: str, rows: list[str], partitions: list[str]
) -> None:
    scene.at = at
    scene.put(*rows)

    answer = scene.dagster("run")

    assert answer["success"]
    assert made(answer) == [*(("shop/daily", day) for day in partitions), ("shop/total", None)]
    assert [
        event["partition"] for event in answer["events"] if event.get("check") == "shop/daily:not_null"
    ] == partitions
    assert all(event["passed"] for event in answer["events"] if "check" in event)
    assert set(scene.dagster("status").values()) == {"FRESH"}


def test_rows_are_those_of_the_source_after_three_days_of_late_rows(scene: Scene) -> None:
    assert scene.totals() == {"2026-01-01": 11, "2026-01-02": 7, "2026-01-03": 7}


def test_a_model_that_fails_is_named_and_the_next_run_computes_what_is_missing_alone(scene: Scene) -> None:
    scene.at = "2026-01-05"
    scene.put("CAST(NULL AS INT), date'2026-01-04', 3")

    failing = scene.dagster("run")
    good, scene.rows = scene.rows, scene.rows[:-1]
    scene.put("6, date'2026-01-04', 3")
    mending = scene.dagster("run")

    failures = [event["failure"] for event in failing["events"] if "failure" in event]
    checks = {(event["check"], event["partition"]): event for event in failing["events"] if "check" in event}
    assert not failing["success"] and len(good) == 6
    assert failures == ["1 model failed: shop.daily. Not computed, because they read them: shop.total."]
    assert not checks["shop/daily:not_null", "2026-01-04"]["passed"]
    assert not checks["shop/daily:computed", None]["passed"]
    assert checks["shop/total:computed", None]["severity"] == "WARN"
    assert made(failing) == [("shop/daily", "2026-01-03")]  # the day of late rows was computed before
    assert mending["success"]
    assert ("shop/daily", "2026-01-04") in made(mending) and ("shop/total", None) in made(mending)
    assert scene.totals()["2026-01-04"] == 3


def test_after_a_kill_the_retry_goes_on_and_repeats_no_batch(scene: Scene) -> None:
    scene.at = "2026-01-09"
    scene.put(*(f"{day}, date'2026-01-0{day}', 1" for day in range(5, 9)))

    answer = scene.dagster("run", killed=True, retries=1)

    batches = [partition for model, partition in made(answer) if model == "shop/daily"]
    assert answer["success"] and (scene.folder / "mark").exists()
    assert [event for event in answer["events"] if "retry" in event]
    # The third batch may come again: it is the day of late rows of those that are left.
    assert batches[:2] == ["2026-01-04", "2026-01-05"] and not {*batches[:2]} & {*batches[2:]}
    assert batches[-1] == "2026-01-08"
    assert set(scene.dagster("status").values()) == {"FRESH"}


def test_a_partition_is_restated_with_all_that_reads_it(scene: Scene) -> None:
    scene.put("9, date'2026-01-02', 100")
    before = scene.totals()

    answer = scene.dagster("materialize", assets=["shop/daily"], partitions=["2026-01-02", "2026-01-02"])

    assert answer["success"], answer
    assert ("shop/daily", "2026-01-02") in made(answer) and ("shop/total", None) in made(answer)
    assert scene.totals() == before | {"2026-01-02": before["2026-01-02"] + 100}
    assert set(scene.dagster("status").values()) == {"FRESH"}


def test_a_merge_in_between_changes_the_graph_of_the_next_run(scene: Scene) -> None:
    """Dagster still has the old definitions; the run is that of prod as it is now."""
    models = scene.folder / "shop/models"
    (models / "shown.sql").unlink()
    (models / "late.sql").write_text("MODEL (name shop.late, kind FULL);\nSELECT max(day) AS day FROM shop.daily\n")
    scene.mergeplan("plan", "prod", "--auto-apply", "--execution-time", scene.at)
    scene.at = "2026-01-10"
    scene.put("10, date'2026-01-09', 1")

    old = scene.dagster("run", refresh=False)
    new = scene.dagster("status")

    assert old["success"]
    assert ("shop/late", None) in made(old, "promoted") and ("shop/late", None) in made(old)
    assert set(new.values()) == {"FRESH"} and "shop.shown|" not in new


def test_the_sensor_reports_what_a_run_from_a_terminal_filled(scene: Scene) -> None:
    scene.put("11, date'2026-01-10', 1")
    scene.mergeplan("run", "--execution-time", "2026-01-11")

    first, second = scene.dagster("look"), scene.dagster("look")

    assert first["skipped"] == "3 new in the state."  # a partition of daily, total and late
    assert second["skipped"] == "Nothing new in the state."


def test_an_edited_model_that_keeps_its_table_keeps_its_data_version(scene: Scene) -> None:
    model = scene.folder / "shop/models/total.sql"
    before = scene.dagster("run")
    model.write_text(model.read_text().replace("kind FULL", "kind FULL, description 'By day'"))
    scene.mergeplan("plan", "prod", "--auto-apply", "--execution-time", scene.at)
    stale = scene.dagster("status")["shop.total|"]

    answer = scene.dagster("run")

    assert before["success"] and stale == "STALE has a new code version"
    assert made(answer, "promoted") == [("shop/total", None)]
    assert set(scene.dagster("status").values()) == {"FRESH"}


def test_the_definitions_of_1000_models_load_without_spark(scene: Scene) -> None:
    path = scene.folder / "big.json"
    path.write_text(json.dumps(big_deployment(1000)))

    began = time.monotonic()
    answer = scene.dagster("load", deployment=str(path))

    assert answer["assets"] == 1000 and answer["imported"] == []
    assert answer["read"] < 2 and answer["made"] + answer["checked"] < 20, (answer, time.monotonic() - began)


def test_each_time_that_a_model_is_due_a_tick_of_the_schedule_follows_within_an_hour(scene: Scene) -> None:
    """Not before it, also when clocks are put forward or back: such a run would find nothing due."""
    zones = ("", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
    crons = ("@daily", "@hourly", "30 2 * * *", "15 1 * * *", "0 1-3 * * *", "0 7 * * 1-5", "30 0 1 * *")
    assert scene.dagster("ticks", crons=[(zone, cron) for zone in zones for cron in crons]) == {}


def big_deployment(size: int) -> dict[str, Any]:
    """A deployment of so many models, each with five columns and two parents, half of them filled by time."""
    columns = [{"name": f"c{number}", "type": "bigint"} for number in range(5)]
    models, lineage = [], {}
    for number in range(size):
        name, parents = (
            f"s{number % 20}.m{number}",
            [f"s{up % 20}.m{up}" for up in {number // 2, number - 1} if 0 <= up < number],
        )
        models.append({
            "name": name, "kind": "INCREMENTAL_BY_TIME_RANGE" if number % 2 else "FULL", "computed": True,
            "parents": parents, "cron": "@daily", "interval_unit": "day", "start": "2020-01-01T00:00:00+00:00",
            "columns": columns, "audits": [{"name": "not_null"}], "fingerprint": f"{number:016x}",
            "table_version": f"{number:012x}", "table": f"t.m{number}", "view": name, "owner": "data",
        })  # fmt: skip
        ends = [{"model": parent, "column": "c0"} for parent in parents]
        lineage[name] = {"columns": {f"c{at}": ends for at in range(5)}, "row_deciders": ends}
    held = {model["name"]: [["2020-01-01", "2026-01-01"]] for model in models}
    schedule = {"version": 1, "project": "big", "environment": "prod", "revision": 1, "models": models}
    return {"schedule": schedule, "held": held, "lineage": lineage}
