"""What the task of a model does, given what the state says."""

from __future__ import annotations

import pytest

from mergeplan.airflow.decisions import ModelView, RunView, Step, decide, decide_task, present


def run(status: str = "running", *models: ModelView, **fields: object) -> RunView:
    return RunView("d/r", status, 4, models={model.name: model for model in models}, **fields)  # type: ignore[arg-type]


def a(status: str, reported: bool = False, **fields: object) -> ModelView:
    return ModelView("s.a", status, reported=reported, **fields)  # type: ignore[arg-type]


B = ModelView("s.b", "running")


@pytest.mark.parametrize(
    ("view", "step"),
    [
        (None, Step.WAIT),
        (run(alive=True), Step.WAIT),  # what is due is not known yet
        (run("running", B, alive=True), Step.NOTHING_DUE),
        (run("done"), Step.NOTHING_DUE),
        (run("failed", B), Step.NOTHING_DUE),  # another model failed
        (run("running", a("due"), alive=True), Step.WAIT),
        (run("running", a("done"), alive=True), Step.SUCCEED),
        (run("done", a("done", True)), Step.RESTATE),  # it was cleared
        (run("failed", a("failed")), Step.FAIL),
        (run("failed", a("skipped")), Step.FAIL),
        (run("failed", a("failed", True)), Step.RESUME),  # it is tried again
        (run("running", a("failed", True), alive=True), Step.WAIT),  # another task made the run go on
    ],
)
def test_a_task_takes_the_step_that_the_state_asks_for(view: RunView | None, step: Step) -> None:
    assert decide(view, "s.a").step is step


@pytest.mark.parametrize("model", [a("running"), a("due")])
def test_a_run_that_was_killed_is_waited_for_until_its_retry_is_late(model: ModelView) -> None:
    assert decide(run("running", model, quiet=30), "s.a", 60).step is Step.WAIT
    lost = decide(run("running", model, quiet=90), "s.a", 60)
    assert (lost.step, lost.reason) == (Step.FAIL, "The run `d/r` ended without a result 90 s ago.")
    again = ModelView("s.a", model.status, reported=True)
    assert decide(run("running", again, quiet=90), "s.a", 60).step is Step.RESUME


def test_a_run_that_failed_as_a_whole_fails_its_models_when_nobody_takes_it_up() -> None:
    assert decide(run("failed", message="Spark is away.", quiet=30), "s.a", 60).step is Step.WAIT
    failed = decide(run("failed", message="Spark is away.", quiet=90), "s.a", 60)
    assert (failed.step, failed.reason) == (Step.FAIL, "Spark is away.")


def test_a_result_says_rows_time_audits_and_table() -> None:
    model = a("done", table="p.a", intervals=(("2026-01-01", "2026-01-02"),), rows=7, seconds=1.25,
              audits=(("not_null", 0, True), ("near", 2, False)))  # fmt: skip
    done = decide(run("done", model), "s.a")

    assert done.reason == "`s.a` [2026-01-01 - 2026-01-02]: 7 rows in 1.2 s into p.a, 2 audits found 2 rows."
    assert done.revision == 4
    assert model.data["audits"][1] == {"name": "near", "rows": 2, "blocking": False}


def b(status: str, reported: bool = False) -> ModelView:
    return ModelView("s.b", status, reported=reported)


@pytest.mark.parametrize(
    ("models", "step", "names"),
    [
        ((a("done"), b("running")), Step.WAIT, ["s.b"]),
        ((a("done"), b("failed")), Step.FAIL, ["s.b"]),
        ((a("done", True), b("failed", True)), Step.RESUME, ["s.b"]),  # of a retry `s.a` is not computed again
        ((a("done", True), b("done")), Step.SUCCEED, ["s.a", "s.b"]),
        ((a("done", True), b("done", True)), Step.RESTATE, ["s.a", "s.b"]),
        ((a("done"),), Step.SUCCEED, ["s.a"]),  # nothing of `s.b` was due
        ((), Step.NOTHING_DUE, []),
    ],
)
def test_a_task_of_several_models_waits_for_all_and_repeats_none(
    models: tuple[ModelView, ...], step: Step, names: list[str]
) -> None:
    decision = decide_task(run("done", *models), ["s.a", "s.b"])
    assert (decision.step, [model.name for model in decision.models]) == (step, names)


def test_a_task_returns_the_data_of_its_model_or_of_those_that_were_computed() -> None:
    assert (present([{"rows": 1}], 1), present([{"rows": 1}], 2)) == ({"rows": 1}, {"models": [{"rows": 1}]})
    assert present([], 1) is present([], 2) is None


def test_a_model_that_was_dropped_is_said_to_be_gone_unless_it_has_a_result() -> None:
    gone = frozenset({"s.b"})
    retried = decide(run("failed", a("failed", True), shown=gone), "s.a")

    assert (retried.step, retried.reason) == (
        Step.NOTHING_DUE, "`prod` does not have `s.a` any more: there is nothing to compute.",
    )  # fmt: skip
    assert decide(run("done", a("done"), shown=gone), "s.a").step is Step.SUCCEED
    assert decide(None, "s.a").step is Step.WAIT
