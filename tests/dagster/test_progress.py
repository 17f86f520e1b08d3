"""What the lines of a run say of models."""

from __future__ import annotations

from mergeplan.dagster.progress import Cleared, Progress, Remark
from mergeplan.planner.contract import lines
from mergeplan.planner.contract.wire import read_line

PLAN = (
    '{"event": "plan", "plan": {"id": "12ab", "environment": "prod", "models": '
    '[{"name": "shop.a", "change": "due", "table": "t.a", "intervals": [["2026-01-01", "2026-01-02"]]}]}}'
)
BATCH = '{"event": "batch", "model": "shop.a", "index": 1, "of": 2, "interval": ["2026-01-01", "2026-01-02"], '


def read(progress: Progress, text: str) -> object:
    line = read_line(text)
    assert line is not None, text
    return progress.read(line)


def test_the_plan_names_the_tables_that_batches_fill() -> None:
    progress = Progress()
    read(progress, PLAN)

    report = read(progress, BATCH + '"rows": 7, "seconds": 1.5, "unchanged": true}')

    assert isinstance(report, lines.BatchLine)
    assert progress.tables == {"shop.a": "t.a"}


def test_an_audit_carries_its_interval() -> None:
    text = '{"event": "audit", "model": "shop.a", "name": "not_null", "ok": false, "count": 2, "interval": ["a", "b"]}'
    report = read(Progress(), text)

    assert isinstance(report, lines.AuditLine)
    assert (report.model, report.count, report.interval) == ("shop.a", 2, ("a", "b"))


def test_a_standalone_audit_is_a_remark() -> None:
    report = read(Progress(), '{"event": "audit", "name": "dear", "ok": false, "count": 1}')

    assert report == Remark("The standalone audit dear found 1 row.", is_problem=True)


def test_what_failed_and_what_was_left_out_is_known_at_the_end() -> None:
    progress = Progress()

    failed = read(progress, '{"event": "failed", "model": "shop.a", "message": "no"}')
    skipped = read(progress, '{"event": "skipped", "model": "shop.b", "because": "shop.a"}')

    assert (failed, skipped) == (
        lines.FailedLine(model="shop.a", message="no"),
        lines.SkippedLine(model="shop.b", because="shop.a"),
    )
    assert (progress.failed, progress.skipped) == ({"shop.a": "no"}, {"shop.b": "shop.a"})


def test_a_restatement_has_cleared_its_intervals_once_the_backfill_begins() -> None:
    progress = Progress()
    read(progress, PLAN)

    assert read(progress, '{"event": "stage", "name": "create"}') is None
    assert read(progress, '{"event": "stage", "name": "backfill", "total": 1}') == Cleared("12ab")


def test_a_run_that_found_another_one_did_nothing() -> None:
    progress = Progress()
    read(progress, '{"event": "result", "ok": true, "skipped": "`prod` is being run already."}')

    assert progress.is_taken


def test_only_what_nobody_has_to_mend_may_succeed_later() -> None:
    lasting, passing = Progress(), Progress()
    read(lasting, '{"event": "error", "message": "no such model", "kind": "RequestError"}')
    read(passing, '{"event": "error", "message": "Spark is away", "kind": "SparkUnavailable", "retry": true}')

    assert not lasting.may_succeed_later
    assert passing.may_succeed_later
