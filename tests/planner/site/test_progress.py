"""How far a run is: its lines, folded."""

from __future__ import annotations

import json
from functools import reduce

from mergeplan.planner.contract.wire import read_line
from mergeplan.planner.site.progress import RunProgress, Step, apply_line

PLAN = {
    "id": "p",
    "environment": "pr_7",
    "models": [
        {"name": "shop.a", "change": "direct", "intervals": [["2026-01-01", "2026-01-03"]]},
        {"name": "shop.b", "change": "indirect", "intervals": [["2026-01-01", "2026-01-03"]]},
        {"name": "shop.c", "change": "indirect"},
    ],
}


def batch(model: str, index: int, of: int) -> dict[str, object]:
    interval = ["2026-01-01", "2026-01-02"]
    return {"event": "batch", "model": model, "index": index, "of": of, "interval": interval, "rows": 5, "seconds": 1.5}


def run_of(*lines: dict[str, object]) -> RunProgress:
    read = [read_line(json.dumps(line)) for line in ({"event": "plan", "version": 1, "plan": PLAN}, *lines)]
    return reduce(apply_line, [line for line in read if line], RunProgress("run-1"))


def test_batches_bring_a_model_from_waiting_to_done() -> None:
    stage = {"event": "stage", "name": "backfill", "total": 4}
    begun, half = run_of(stage), run_of(stage, batch("shop.a", 1, 2))
    done = run_of(stage, batch("shop.a", 1, 2), batch("shop.a", 2, 2))

    assert [model.name for model in begun.models] == ["shop.a", "shop.b"]
    assert (half.models[0].step, half.models[0].done, half.models[0].of) == (Step.RUNNING, 1, 2)
    assert (done.models[0].step, done.models[0].rows, done.models[0].seconds) == (Step.DONE, 10, 3.0)
    assert (done.stage, done.done, done.of) == ("backfill", 2, 4)
    assert done.batches == (2, 3)


def test_a_run_that_has_only_begun_has_done_nothing() -> None:
    assert RunProgress("r").percent == 0
    assert RunProgress("r", ended=True).percent == 100


def test_what_failed_what_it_took_along_and_what_came_out_the_same_is_known() -> None:
    failed = run_of(
        {"event": "failed", "model": "shop.a", "message": "no such column"},
        {"event": "skipped", "model": "shop.b", "because": "shop.a"},
    )
    same = run_of({"event": "compared", "reader": "shop.b", "model": "shop.a", "columns": [], "skipped": True})

    assert [(model.step, model.note) for model in failed.models] == [
        (Step.FAILED, "no such column"),
        (Step.LEFT_OUT, "`shop.a` failed"),
    ]
    assert same.models[1].step is Step.UNCHANGED
    assert same.batches == (0, 1)


def test_a_model_that_a_run_leaves_as_it_is_counts_as_unchanged() -> None:
    stage = {"event": "stage", "name": "backfill", "total": 2}
    kept = run_of(stage, {**batch("shop.a", 1, 1), "rows": 0, "unchanged": True})

    assert kept.models[0].step is Step.UNCHANGED
    assert (kept.done, kept.of, kept.batches) == (1, 2, (0, 1))


def test_who_is_waited_for_is_told_until_it_goes_on() -> None:
    waits = run_of({"event": "waiting", "environment": "prod", "for": "ann on laptop"})
    goes_on = apply_line(waits, read_line(json.dumps({"event": "stage", "name": "promote", "total": 1})))  # type: ignore[arg-type]

    assert waits.note == "Waits for ann on laptop, which is changing `prod`."
    assert goes_on.note == ""


def test_a_batch_that_spark_lost_is_computed_again_and_that_is_said() -> None:
    left = {"model": "shop.orders", "interval": ["2026-01-01", "2026-01-02"]}
    waiting = {"event": "waiting", **left, "for": "Spark"}
    assert run_of(waiting).note == "Waits for a batch of `shop.orders` that an earlier run began on Spark."
    assert run_of(waiting, {"event": "repeated", **left}).note.endswith("is lost: it is computed again.")


def test_a_page_links_to_no_address_but_one_of_the_web() -> None:
    stage = {"event": "stage", "name": "backfill", "total": 4}
    addresses = ("https://h.example/app-1/", "javascript:alert(1)", "https://h.example/ x")

    assert [run_of({**stage, "spark_ui": address}).spark_ui for address in addresses] == [addresses[0], "", ""]
