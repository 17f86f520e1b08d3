"""Standalone audits: asked after the tables are filled, not asked again at a merge, and in a run when they are due."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import AuditRan, Event
from mergeplan.planner.apply.physical_tables import table_lease
from mergeplan.planner.checks.standalone import dates_interval, is_due
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.intervals import Cron, Interval
from mergeplan.planner.model.model import Audit
from tests.planner.shop import ALONE, NOW, plan_and_apply, write_shop
from tests.stores import open_store

TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT {} AS total"
SHOWN = "MODEL (name shop.shown, kind VIEW);\nSELECT total FROM shop.total"
AUDIT = "AUDIT (name few, standalone true{});\nSELECT * FROM shop.shown WHERE total > @most"
FILES = ALONE | {"total": TOTAL.format(7), "shown": SHOWN}


def audit_counts(events: list[Event]) -> list[tuple[str, int]]:
    return [(event.result.name, event.result.count) for event in events if isinstance(event, AuditRan)]


def project_with_audit(root: Path, header: str, **files: str) -> Path:
    (root / "audits").mkdir(exist_ok=True)
    (root / "audits" / "few.sql").write_text(AUDIT.format(header))
    write_shop(root, **FILES | files)
    return root


def test_it_is_asked_once_of_a_set_of_tables_and_again_when_one_is_written(tmp_path: Path, engine: SparkEngine) -> None:
    store, events = open_store(f"sqlite:///{tmp_path / 'state.db'}"), []  # type: ignore[var-annotated]
    project_with_audit(tmp_path, ", defaults (most = 6)")

    for environment, total in (("prod", 7), ("dev", 8), ("prod", 8)):
        events.append([])
        project = write_shop(tmp_path, **FILES | {"total": TOTAL.format(total)})
        assert plan_and_apply(project, engine, store, environment, emit=events[-1].append).promoted

    assert [audit_counts(event) for event in events] == [[("few", 1)], [("few", 1)], []]


def test_rows_that_prod_writes_before_the_merge_are_asked_of_again(tmp_path: Path, engine: SparkEngine) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'state.db'}")
    prod = plan_and_apply(write_shop(tmp_path, **FILES), engine, store).plan
    project_with_audit(tmp_path, ", blocking true, defaults (most = 7)")
    project = write_shop(tmp_path, **FILES | {"apart": "MODEL (name shop.apart, kind FULL);\nSELECT 8 AS eight"})
    assert plan_and_apply(project, engine, store, "dev").promoted

    assert prod
    table = prod.new.snapshots["shop.total"].table
    engine.fetch(f"INSERT INTO {table} VALUES (8)")
    with store.leases.hold(table_lease(table), "a run of prod") as lease:
        store.intervals.record(table, Interval(NOW, NOW + timedelta(days=1)), lease=lease)

    assert plan_and_apply(project, engine, store).promoted is None


def test_a_blocking_one_that_finds_rows_forbids_the_promotion(tmp_path: Path, engine: SparkEngine) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'state.db'}")
    project_with_audit(tmp_path, ", blocking true, defaults (most = 6)")
    project = write_shop(tmp_path, **FILES)

    first, second = (plan_and_apply(project, engine, store) for _ in range(2))

    assert first.promoted is second.promoted is None
    assert str(first.failures[0].error) == "audits/few.sql:1: The standalone audit `few` found 1 row."
    assert str(second.failures[0].error) == str(first.failures[0].error)


def test_one_that_spark_refuses_is_told_at_its_file(tmp_path: Path, engine: SparkEngine) -> None:
    project_with_audit(tmp_path, ", defaults (most = nothing)")

    outcome = plan_and_apply(write_shop(tmp_path, **FILES), engine, open_store(f"sqlite:///{tmp_path / 'state.db'}"))

    assert outcome.promoted is None
    assert str(outcome.failures[0].error).startswith("audits/few.sql:1: The audit `few` cannot run: ")


def test_in_a_run_it_waits_for_its_own_beat() -> None:
    at = lambda hour: datetime(2026, 1, 5 + hour // 24, hour % 24, tzinfo=UTC)  # noqa: E731
    daily = Audit("a", "SELECT 1", standalone=True, cron=Cron("@daily"))
    late = replace(daily, start=at(40))

    assert not is_due(daily, (Interval(at(12), at(13)),))
    assert is_due(daily, (Interval(at(23), at(24)),))
    assert not is_due(late, (Interval(at(23), at(24)),))
    assert dates_interval(late, (Interval(at(0), at(48)),)) == Interval(at(40), at(48))


@pytest.mark.parametrize(
    ("audit", "told"),
    [
        (
            "AUDIT (name a, standalone true);\nSELECT *\nFROM @this_model",
            "3: A standalone audit has no `@this_model`. Use the names of the tables that it reads.",
        ),
        (
            "AUDIT (name a, standalone true);\nSELECT * FROM shop.total WHERE total > @most",
            "2: `@most` has no value here. Add it to `defaults (...)`.",
        ),
        (
            "AUDIT (name a,\n  cron '@daily');\nSELECT 1",
            "2: `cron` is for standalone audits. Add `standalone true`, or remove it.",
        ),
        (
            "AUDIT (name a, standalone true,\n  cron 'often');\nSELECT 1",
            "2: `often` is not a cron expression",
        ),
        (
            "AUDIT (name a, standalone true,\n  interval_unit day);\nSELECT 1",
            "2: `interval_unit` in AUDIT is not supported yet.",
        ),
    ],
)  # fmt: skip
def test_what_it_cannot_be_is_told_with_its_line(tmp_path: Path, audit: str, told: str) -> None:
    (tmp_path / "audits").mkdir()
    (tmp_path / "audits" / "a.sql").write_text(audit)

    with pytest.raises(ProjectErrors) as error:
        write_shop(tmp_path, **FILES)

    assert str(error.value).startswith(f"audits/a.sql:{told}")


def test_a_model_cannot_call_it(tmp_path: Path) -> None:
    calling = TOTAL.replace("FULL", "FULL, audits (few)").format(7)
    with pytest.raises(ProjectErrors) as error:
        project_with_audit(tmp_path, ", defaults (most = 6)", total=calling)

    assert str(error.value) == (
        "models/total.sql:1: The audit `few` is a standalone audit. Remove it from `audits`: it runs on its own."
    )


def test_an_audit_that_is_skipped_is_never_asked(tmp_path: Path, engine: SparkEngine) -> None:
    (tmp_path / "audits").mkdir()
    (tmp_path / "audits" / "own.sql").write_text("AUDIT (name own, skip true);\nSELECT * FROM @this_model")
    project_with_audit(tmp_path, ", skip true, defaults (most = 6)")
    project = write_shop(tmp_path, **FILES | {"total": TOTAL.replace("FULL", "FULL, audits (own)").format(7)})
    events: list[Event] = []

    assert plan_and_apply(
        project, engine, open_store(f"sqlite:///{tmp_path / 'state.db'}"), emit=events.append
    ).promoted
    assert audit_counts(events) == []
