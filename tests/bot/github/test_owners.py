"""Several owners: what happens to one of them delays nobody else, and the service says what it is."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pytest

from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.records import PullState
from mergeplan.bot.service.worker import Worker
from mergeplan_sandbox.faults import RateLimit
from tests.bot.changing import change_prod
from tests.bot.conftest import COLUMN, PROJECT, SHOP, Bench, until
from tests.bot.service.test_app import send

pytestmark = pytest.mark.sampled

STORE = "bob/store"
MANY = 500 if "MERGEPLAN_CASES" in os.environ else 20


@pytest.fixture(name="two")
def _two(bench: Bench) -> Bench:
    """ann's shop and bob's store, both with a prod that stands."""
    bench.github.add_user("bob")
    bench.github.create_repository(STORE, PROJECT)
    bench.github.set_permission(STORE, "wim", "write")
    bench.github.install_app(STORE)
    bench.idle()
    return bench


def open_silently(bench: Bench, repository: str) -> int:
    """A pull request of which no webhook tells."""
    bench.github.faults.drop("*", times=2)
    bench.github.commit(repository, "quiet", COLUMN, "Quiet", author="wim")
    return bench.github.open_pull_request(repository, "quiet", "main", "Quiet", author="wim")


def is_planned(bench: Bench, repository: str, number: int) -> bool:
    return bench.context.inbox.pulls.get(repository, number).state is PullState.PLANNED


def owners(bench: Bench) -> dict[str, dict[str, Any]]:
    """What /readyz says, by owner."""
    answer = httpx.get(f"{bench.url}/readyz", headers={"Accept": "application/json"}).json()
    return {owner["owner"]: owner for owner in answer["owners"]}


def test_a_suspended_owner_does_not_stop_the_timer_for_others(two: Bench) -> None:
    """Behaviour 44."""
    two.github.suspend_app("ann")
    number = open_silently(two, STORE)
    two.worker.sweep()

    until(lambda: is_planned(two, STORE, number), what="bob's plan")
    answer = httpx.get(f"{two.url}/readyz")
    assert (answer.status_code, owners(two)["ann"]["state"]) == (200, "suspended")
    assert "\nann: suspended since " in answer.text
    assert owners(two)["bob"]["state"] == "working"


def test_an_owner_that_is_let_in_again_is_worked_for_at_once(two: Bench) -> None:
    """Behaviour 44: what was pushed meanwhile is planned, by the webhook that tells of it."""
    two.github.suspend_app("ann")
    number = open_silently(two, SHOP)
    two.worker.sweep()
    two.context.inbox.queue.wake(SHOP, number)
    two.worker.sweep()
    assert not is_planned(two, SHOP, number)
    two.github.faults.clear()
    two.github.suspend_app("ann", is_suspended=False)

    until(lambda: is_planned(two, SHOP, number), what="ann's plan")
    assert owners(two)["ann"]["state"] == "working"


@pytest.mark.parametrize("delivered", [pytest.param(True, marks=pytest.mark.prove), False])
def test_an_app_removed_and_installed_again_is_worked_for_without_a_restart(two: Bench, delivered: bool) -> None:
    """Behaviour 44: the old token gets 401 and the old installation 404; also when no webhook of either came."""
    number = two.open(COLUMN)
    two.idle()
    if not delivered:
        two.github.faults.drop("*", times=2)
    two.github.uninstall_app("ann")
    two.github.install_app(SHOP)
    two.idle()
    two.github.commit(SHOP, "change", {"models/orders.sql": "SELECT 3 AS id\n"}, "Again", author="wim")
    two.idle()

    assert two.record(number).head == two.head(number)
    assert is_planned(two, SHOP, number)
    assert httpx.get(f"{two.url}/readyz").text == "ready\nisolation: required\nspark: confined\n"


def test_a_removed_app_is_left_alone_and_others_go_on(two: Bench) -> None:
    two.github.uninstall_app("ann")
    number = open_silently(two, STORE)
    two.worker.sweep()
    until(lambda: is_planned(two, STORE, number), what="bob's plan")

    assert "ann" not in owners(two)
    before = len(two.github.calls)
    two.worker.sweep()
    assert not [call for call in two.github.calls[before:] if "/ann/" in call.path]


@pytest.mark.parametrize(
    "how",
    [
        RateLimit(retry_after=600),
        pytest.param(RateLimit(reset_in=600), marks=pytest.mark.prove),
        pytest.param(RateLimit(429, 600), marks=pytest.mark.prove),
        RateLimit(),
    ],
)
def test_a_rate_limit_pauses_every_call_of_that_owner_and_no_other(two: Bench, how: RateLimit) -> None:
    """Behaviours 23, 44: the timer's calls too; a second limit without numbers pauses for a minute."""
    two.github.faults.rate_limit(says=how, owner="ann")
    two.worker.sweep()
    assert two.github.faults.pending_faults() == []
    before = len(two.github.calls)
    number = open_silently(two, STORE)
    two.context.inbox.queue.wake(SHOP, 0)
    two.github.comment(SHOP, _issue(two), "/help", author="wim")
    two.worker.sweep()
    until(lambda: is_planned(two, STORE, number), what="bob's plan")

    assert not [
        call for call in two.github.calls[before:] if "/ann/" in call.path and call.login == two.github.bot_login
    ]
    assert owners(two)["ann"]["state"] == "paused"
    assert 30 < owners(two)["ann"]["seconds"] <= 601
    assert httpx.get(f"{two.url}/readyz").status_code == 200


def _issue(bench: Bench) -> int:
    return bench.github.open_issue(SHOP, "A question", author="wim")


def test_an_owner_that_hangs_is_not_waited_for(make_bench: Callable[..., Bench]) -> None:
    """Behaviour 44: the timer looks at each owner apart."""
    bench = make_bench(sweep_seconds=0.3)
    bench.github.add_user("bob")
    bench.github.create_repository(STORE, PROJECT)
    bench.github.set_permission(STORE, "wim", "write")
    bench.github.install_app(STORE)
    bench.idle()
    bench.github.faults.slow("GET", "^/repos/ann/", seconds=600, times=1000)
    number = open_silently(bench, STORE)

    until(lambda: is_planned(bench, STORE, number), what="bob's plan")
    bench.github.faults.clear()


def test_one_owners_long_plans_leave_room_for_another(two: Bench) -> None:
    """Behaviour 44: two workers, two endless plans of ann's; bob's is made all the same."""
    two.knobs(hang="pr")
    two.open(COLUMN, "one")
    two.open(COLUMN, "two")
    until(lambda: two.calls("plan", "pr_1"), what="ann's first plan")
    two.github.commit(STORE, "change", COLUMN, "Bob's", author="wim")
    number = two.github.open_pull_request(STORE, "change", "main", "Bob's", author="wim")

    until(lambda: is_planned(two, STORE, number), what="bob's plan")
    two.knobs()


def test_threads_that_claim_at_once_leave_the_last_thread_to_others(
    two: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 44: both of ann's jobs fall due in one instant, while each claim takes a while."""
    two.worker.stop()
    worker, claim = Worker(two.context), two.context.inbox.queue.claim

    def slow_claim(*arguments: Any, **more: Any) -> Job | None:
        time.sleep(0.2)
        return claim(*arguments, **more)

    monkeypatch.setattr(two.context.inbox.queue, "claim", slow_claim)
    two.context.inbox.queue.wake(SHOP, 1)
    two.context.inbox.queue.wake(SHOP, 2)
    with ThreadPoolExecutor(2) as threads:
        jobs = list(threads.map(lambda _: worker.claim(), range(2)))

    assert sorted(job.number if job else 0 for job in jobs) in ([0, 1], [0, 2])


def test_an_installation_of_many_repositories_brings_them_all(bench: Bench) -> None:
    """The first hook of an installation names every repository; none waits for the timer."""
    names = [{"id": number, "full_name": f"bob/{name}"} for number, name in enumerate("abc", start=9001)]
    body = {"action": "created", "installation": {"id": 9, "account": {"login": "bob"}}, "repositories": names}
    assert send(bench, json.dumps(body).encode(), "installation").status_code == 202
    assert {"bob/a", "bob/b", "bob/c"} <= set(bench.context.inbox.queue.repositories())


def test_a_repository_that_vanished_is_left_alone(two: Bench) -> None:
    two.open(COLUMN)
    two.idle()
    two.github.delete_repository(SHOP)
    two.context.inbox.queue.wake(SHOP, 1)
    two.context.inbox.queue.wake(SHOP, 0)
    number = open_silently(two, STORE)
    two.worker.sweep()

    until(lambda: is_planned(two, STORE, number), what="bob's plan")
    until(two.context.inbox.queue.is_idle, what="ann's jobs to be left")


def calls_charged(bench: Bench, since: int) -> list[str]:
    """The calls that count against the hour: a 304 is free, and the App's own budget is another one."""
    calls = bench.github.calls[since:]
    return [call.path for call in calls if call.status != 304 and not call.path.startswith("/app")]


def test_the_timer_is_free_while_nothing_happens(two: Bench) -> None:
    """Behaviour 44: after the first look every answer is a 304, and what changed is seen all the same."""
    two.worker.sweep()
    before = len(two.github.calls)
    two.worker.sweep()
    assert calls_charged(two, before) == []
    assert len(two.github.calls) > before

    number = open_silently(two, SHOP)
    two.worker.sweep()
    until(lambda: is_planned(two, SHOP, number), what="the plan")


def test_many_idle_repositories_fit_into_the_hour(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged: 3 calls a repository, once in a token's hour: 1,500 for 500, and GitHub gives those 12,500.

    `make prove` counts the calls of 500.
    """
    bench = make_bench(polls_per_minute=10**9)
    state = bench.github.state
    git, shop, prod = state.git(SHOP), state.repositories[SHOP], bench.context.inbox.prods.get(SHOP)
    names = [f"ann/shop{index}" for index in range(MANY - 1)]
    monkeypatch.setattr(type(state), "git", lambda self, name: git)
    for index, name in enumerate(names):
        bench.context.inbox.prods.update(
            name, change_prod, state=prod.state, branch=prod.branch, commit=prod.commit, revision=1
        )
        with state.lock:
            state.repositories[name] = replace(shop, id=10_000 + index, full_name=name)
            state.installations["ann"].repositories.add(name)
    bench.worker.sweep()
    first = calls_charged(bench, 0)
    before = len(bench.github.calls)
    bench.worker.sweep()

    assert len(bench.github.calls) - before >= 3 * MANY
    assert calls_charged(bench, before) == []
    assert 3 * MANY <= len(first) <= 3 * MANY + 40
