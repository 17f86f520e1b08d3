"""Prod's first build on the sandbox: who waits for it, and when it is tried again. The planner is scripted."""

from __future__ import annotations

import time

import pytest

from mergeplan.bot.records import Prod, PullState
from tests.bot.changing import change_prod
from tests.bot.conftest import COLUMN, SHOP, Bench, until
from tests.bot.test_pull_requests import GREEN


def unbuilt(bench: Bench) -> None:
    """Prod was never built, and its job has not looked yet."""
    bench.context.inbox.prods.update(SHOP, change_prod, state=Prod.UNKNOWN, commit="", promoted_commit="", revision=0)
    (bench.home / "scripted.json").unlink()


def test_a_pull_request_waits_for_prods_first_build(bench: Bench) -> None:
    """There is nothing to compare with yet: the checks wait, and the plan is made as soon as prod stands."""
    unbuilt(bench)
    bench.knobs(hang="prod")
    number = bench.open(COLUMN)
    until(lambda: bench.record(number).state is PullState.WAITING, what="the wait")
    until(lambda: {run.status for run in bench.checks(bench.head(number)).values()} == {"queued"}, what="the checks")
    bench.knobs()
    bench.idle()

    assert bench.conclusions(bench.head(number)) == GREEN
    assert bench.context.inbox.prods.get(SHOP).state is Prod.READY


def test_prods_first_build_is_tried_again_while_what_it_needs_is_busy(bench: Bench) -> None:
    """Behaviour 45: a warm Spark that is slow to start is no refusal: pull requests wait, and are planned on prod."""
    unbuilt(bench)
    bench.knobs(busy=len(bench.calls("plan", "prod")) + 1)
    number = bench.open(COLUMN)
    until(lambda: bench.context.inbox.prods.get(SHOP).attempts == 1, what="the first try")
    bench.idle()

    assert bench.context.inbox.prods.get(SHOP).state is Prod.READY
    assert bench.conclusions(bench.head(number)) == GREEN
    assert "1 non-breaking" in bench.plan(number)


@pytest.mark.prove
def test_a_first_build_that_stays_busy_is_told_without_a_path_and_tried_again_by_rerun(bench: Bench) -> None:
    """Behaviour 45: the check says why; pull requests wait, not planned as if all were new; Re-run and time mend it."""
    unbuilt(bench)
    bench.knobs(busy=1000)
    number = bench.open(COLUMN)
    until(lambda: bench.context.inbox.prods.get(SHOP).state is Prod.FAILED, what="the failure")
    bench.idle()
    check = bench.checks(bench.github.head(SHOP))["promotion"]
    assert check.conclusion == "failure"
    assert "are in use by process 7" in str(check.summary) and f"/{bench.folder.name}/" not in str(check.summary)
    assert bench.context.inbox.prods.get(SHOP).again_at > time.time()
    assert bench.calls("plan", f"pr_{number}") == []
    assert "are in use by process 7" in str(bench.checks(bench.head(number))["plan"].summary)

    bench.knobs()
    bench.github.rerequest(SHOP, check.id, author="ann")
    bench.idle()
    assert bench.context.inbox.prods.get(SHOP).state is Prod.READY
    assert bench.conclusions(bench.head(number)) == GREEN


def test_a_first_build_that_failed_is_tried_again_in_its_time_and_at_the_next_start(bench: Bench) -> None:
    """What may pass later by the timer, what the project has to mend when the service starts."""
    unbuilt(bench)
    bench.knobs(fail="prod")
    bench.worker.sweep()
    until(lambda: bench.context.inbox.prods.get(SHOP).state is Prod.FAILED, what="the failure")
    bench.idle()
    tries = len(bench.calls("plan", "prod"))
    bench.worker.sweep()
    bench.idle()
    assert len(bench.calls("plan", "prod")) == tries
    bench.worker.retry()
    bench.idle()
    assert len(bench.calls("plan", "prod")) == tries + 1

    bench.context.inbox.prods.update(SHOP, change_prod, again_at=time.time() - 1)
    bench.knobs()
    bench.worker.sweep()
    bench.idle()
    assert bench.context.inbox.prods.get(SHOP).state is Prod.READY


def test_a_pull_request_says_why_prods_first_build_failed_and_a_command_tries_it_again(bench: Bench) -> None:
    """It said "Waiting for prod's first build.", and `/plan` had no answer."""
    unbuilt(bench)
    bench.knobs(busy=1000)
    number = bench.open(COLUMN)
    until(lambda: bench.context.inbox.prods.get(SHOP).attempts == 1, what="the first try")
    until(lambda: "in use by process 7" in str(bench.checks(bench.head(number))["plan"].summary), what="the reason")
    check = bench.checks(bench.head(number))["plan"]
    assert check.title == "Prod could not be built yet."
    assert "The build is tried again automatically at " in str(check.summary)
    until(lambda: bench.context.inbox.prods.get(SHOP).state is Prod.FAILED, what="the failure")
    tries = bench.context.inbox.prods.get(SHOP).attempts

    bench.say(number, "/plan")
    assert "The next try begins now." in bench.replies(number)[-1]
    assert "in use by process 7" in bench.replies(number)[-1]
    until(lambda: bench.context.inbox.prods.get(SHOP).attempts > tries, what="the next try")
    bench.knobs()
    bench.worker.retry()
    bench.idle()
    assert bench.conclusions(bench.head(number)) == GREEN


def test_a_pull_request_is_told_that_prod_could_not_be_built_and_why_all_is_new(bench: Bench) -> None:
    """A fault of the project that no retry fixes: the pull request that fixes it must be planned."""
    unbuilt(bench)
    bench.knobs(fail="prod")
    number = bench.open(COLUMN)
    until(lambda: bench.context.inbox.prods.get(SHOP).state is Prod.FAILED, what="the failure")
    bench.idle()

    said = (
        "Prod could not be built: `models/orders.sql:1`: Spark refused a query. Until a merge fixes that, every model"
    )
    assert f"> [!WARNING]\n> {said} is planned as new.\n" in bench.plan(number)
    assert bench.plan(number).splitlines()[1] == "### ✅ Ready to merge · adds 2 tables to prod"
