"""A run with an id on a real Spark: recorded as it goes, taken up after a failure, computed again on demand."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.runs.run_records import RunRecord, RunStatus
from tests.planner.cli.conftest import CommandLine, Ran
from tests.planner.shop import rows, write_shop

DAILY = """
MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day), audits (not_null(columns := (day))));
SELECT CAST(day AS DATE) AS day, CAST(n AS INT) AS n FROM raw.facts WHERE day BETWEEN @start_date AND @end_date
"""
TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT sum(n) AS total FROM shop.daily"
FILES = {"items": "", "daily": DAILY, "total": TOTAL, "shown": "", "apart": ""}
EXTERNAL = "- name: raw.facts\n  columns: {day: date, n: string}\n"


@pytest.fixture
def mergeplan(tmp_path: Path, engine: SparkEngine) -> CommandLine:
    write_shop(tmp_path, **FILES)
    opened = CommandLine(tmp_path, engine)
    opened.write("external_models.yaml", EXTERNAL)
    engine.fetch("CREATE SCHEMA IF NOT EXISTS raw")
    engine.fetch("CREATE TABLE raw.facts (day DATE, n STRING) USING parquet")
    engine.fetch("INSERT INTO raw.facts VALUES (DATE '2026-01-05', '1'), (DATE '2026-01-06', 'oops')")
    assert opened("plan", "--auto-apply", "--execution-time", "2026-01-06 05:00:00").code == 0
    return opened


def run(mergeplan: CommandLine, *arguments: str) -> Ran:
    return mergeplan("run", "--output", "json", "--execution-time", "2026-01-07 05:00:00", *arguments)


def record(mergeplan: CommandLine, id: str = "r1") -> RunRecord:
    store = mergeplan.state
    run_record = store.runs.get(id)
    store.close()
    assert run_record is not None
    return run_record


def computed(ran: Ran) -> list[str]:
    return sorted({line["model"] for line in ran.lines if line["event"] == "batch"})


def test_a_run_is_recorded_taken_up_and_computed_again(mergeplan: CommandLine, engine: SparkEngine) -> None:
    failed = run(mergeplan, "--run-id", "r1")
    first = record(mergeplan)
    assert (failed.code, first.status) == (1, RunStatus.FAILED)
    assert {name: model.status for name, model in first.models.items()} == {
        "shop.daily": RunStatus.FAILED,
        "shop.total": RunStatus.SKIPPED,
    }
    assert "oops" in first.models["shop.daily"].message

    engine.fetch("INSERT OVERWRITE raw.facts VALUES (DATE '2026-01-05', '1'), (DATE '2026-01-06', '2')")
    assert computed(run(mergeplan, "--run-id", "r1")) == ["shop.daily", "shop.total"]
    done = record(mergeplan)
    daily = done.models["shop.daily"]
    assert (done.status, daily.status, daily.rows) == (RunStatus.DONE, RunStatus.DONE, 1)
    assert [
        (str(interval), audit.name, audit.count) for interval, audit in zip(daily.intervals, daily.audits, strict=True)
    ] == [("2026-01-06 - 2026-01-06", "not_null", 0)]
    assert computed(run(mergeplan, "--run-id", "r1")) == []
    assert record(mergeplan).models == done.models  # nothing was due: what was done stays on record

    engine.fetch("INSERT OVERWRITE raw.facts VALUES (DATE '2026-01-05', '100'), (DATE '2026-01-06', '20')")
    assert computed(run(mergeplan, "--run-id", "r1", "--restate-model", "shop.daily")) == ["shop.daily", "shop.total"]
    assert rows(engine, "SELECT total FROM shop.total") == [(21,)]  # of the other day nothing was computed
    assert computed(run(mergeplan, "--run-id", "r1", "--restate-model", "shop.total")) == ["shop.total"]


def test_of_a_model_cleared_with_one_computed_as_a_whole_only_its_own_days_are_computed_again(
    mergeplan: CommandLine, engine: SparkEngine
) -> None:
    """The source may have no other days any more."""
    engine.fetch("INSERT OVERWRITE raw.facts VALUES (DATE '2026-01-05', '1'), (DATE '2026-01-06', '2')")
    assert run(mergeplan, "--run-id", "r1").code == 0
    engine.fetch("INSERT OVERWRITE raw.facts VALUES (DATE '2026-01-06', '20')")

    models = ("--restate-model", "shop.daily", "--restate-model", "shop.total")
    assert computed(run(mergeplan, "--run-id", "r1", *models)) == ["shop.daily", "shop.total"]

    assert rows(engine, "SELECT total FROM shop.total") == [(21,)]


@pytest.mark.prove
def test_only_what_a_run_computed_can_be_computed_again(mergeplan: CommandLine) -> None:
    without = run(mergeplan, "--restate-model", "shop.daily")
    unknown = run(mergeplan, "--run-id", "r9", "--restate-model", "shop.daily")

    assert (without.code, without.lines[0]["message"]) == (1, "`--restate-model` needs `--run-id`.")
    assert (unknown.code, unknown.lines[0]["message"]) == (1, "`shop.daily` was not computed by the run `r9`.")
    assert (record(mergeplan, "r9").status, record(mergeplan, "r9").models) == (RunStatus.FAILED, {})


@pytest.mark.prove
def test_a_retry_after_another_run_or_a_merge_concludes_what_is_not_due_any_more(
    mergeplan: CommandLine, engine: SparkEngine
) -> None:
    """Else the retry would find nothing due and the failure on record, again and again."""
    assert run(mergeplan, "--run-id", "r1").code == 1
    engine.fetch("INSERT OVERWRITE raw.facts VALUES (DATE '2026-01-05', '1'), (DATE '2026-01-06', '2')")
    assert computed(run(mergeplan)) == ["shop.daily", "shop.total"]
    (mergeplan.root / "models/total.sql").unlink()
    assert mergeplan("plan", "--auto-apply", "--execution-time", "2026-01-07 05:00:00").code == 0

    assert computed(run(mergeplan, "--run-id", "r1")) == []
    retried = record(mergeplan)
    daily = retried.models["shop.daily"]
    assert (retried.status, [*retried.models]) == (RunStatus.DONE, ["shop.daily"])
    assert (daily.status, daily.message) == (RunStatus.DONE, "Its intervals were computed by another run.")
    assert not daily.is_reported
