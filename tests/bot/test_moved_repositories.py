"""A repository that is renamed, transferred or recreated: what was built stays, and nobody gets another's records."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from mergeplan.bot.forge.failures import ForgeFailed
from mergeplan.bot.inbox.queue import Job, queue_key
from mergeplan.bot.prod import reconcile
from mergeplan.bot.prod.decide import Action
from mergeplan.bot.prod.prod_pass import ProdPass
from mergeplan.bot.prod.reconcile import reconcile_prod
from mergeplan.bot.pulls.reconcile import reconcile_pull
from mergeplan.bot.records import Prod, PullState
from mergeplan_sandbox.state import Comment
from tests.bot.conftest import COLUMN, PROJECT, SHOP, Bench, until

STORE = "ann/store"  # the shop's later name
COMPANY = "acme/shop"  # the shop at its later owner


def merge(bench: Bench, repository: str, number: int) -> None:
    bench.github.merge(repository, number, author=repository.partition("/")[0])
    bench.idle()


def sweep(bench: Bench) -> None:
    """The timer's look at all repositories, to its end; one that has begun is not begun again."""
    bench.worker.sweep()
    until(lambda: not any("'sweep'" in thread.name for thread in threading.enumerate()), what="the sweep's end")
    bench.idle()


def plan_comments(bench: Bench, repository: str, number: int) -> list[Comment]:
    return [c for c in bench.github.comments(repository, number) if "mergeplan:plan" in c.body]


@pytest.mark.parametrize("source", ["webhook", "timer"])
def test_a_renamed_repository_keeps_its_plans_and_its_prod(bench: Bench, source: str) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    built, prod = len(bench.calls("plan")), bench.context.inbox.prods.get(SHOP)
    bench.github.move_repository(SHOP, STORE)
    if source == "timer":
        bench.github.faults.drop("*", times=100)
    merge(bench, STORE, number)
    bench.github.faults.clear()
    sweep(bench)

    record = bench.record(number)
    assert (record.state, record.environment.exists) == (PullState.PROMOTED, False)
    assert bench.context.inbox.prods.get(SHOP).revision == prod.revision + 1
    assert len(bench.calls("plan")) == built + 1  # the promotion
    assert len(plan_comments(bench, STORE, number)) == 1
    assert bench.context.inbox.prods.get(STORE).state is Prod.UNKNOWN  # it has no records of its own


def test_a_transferred_repository_goes_on_when_the_app_is_there(bench: Bench) -> None:
    bench.github.add_user("acme", organization=True)
    number = bench.open(COLUMN)
    bench.idle()
    built = len(bench.calls("plan"))
    bench.github.move_repository(SHOP, COMPANY)
    bench.github.install_app(COMPANY)
    bench.idle()
    merge(bench, COMPANY, number)

    assert bench.context.inbox.prods.get(COMPANY).state is Prod.UNKNOWN  # it has no records of its own
    assert bench.record(number).state is PullState.PROMOTED
    assert len(bench.calls("plan")) == built + 1  # the promotion


def test_a_fork_under_the_earlier_name_is_a_fork(bench: Bench) -> None:
    """ann gave her repository to acme and forked it: her branch is no more trusted than another's."""
    bench.github.add_user("acme", organization=True)
    bench.github.move_repository(SHOP, COMPANY)
    bench.github.install_app(COMPANY)
    bench.idle()
    assert bench.github.fork(COMPANY, "ann") == SHOP
    bench.github.commit(SHOP, "change", COLUMN, "A change", author="ann")
    number = bench.github.open_pull_request(COMPANY, "ann:change", "main", "A change", author="ann")
    bench.idle()

    assert bench.record(number).state is PullState.HELD
    assert not bench.calls("plan", "pr_")


def test_a_new_repository_under_an_earlier_name_has_records_of_its_own(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    record, prod = bench.record(number), bench.context.inbox.prods.get(SHOP)
    bench.github.move_repository(SHOP, STORE)
    bench.github.create_repository(SHOP, PROJECT)
    bench.github.install_app(SHOP)
    sweep(bench)
    bench.github.commit(SHOP, "change", COLUMN, "A change", author="ann")
    other = bench.github.open_pull_request(SHOP, "change", "main", "A change", author="ann")
    bench.idle()

    key = f"{SHOP}.{bench.github.state.repositories[SHOP].id}"
    assert bench.context.inbox.pulls.get(key, other).state is PullState.PLANNED
    assert bench.context.inbox.prods.get(key).state is Prod.READY
    assert (bench.record(number), bench.context.inbox.prods.get(SHOP)) == (record, prod)
    merge(bench, STORE, number)
    assert bench.record(number).state is PullState.PROMOTED
    assert bench.context.inbox.pulls.get(key, other).state is PullState.PLANNED


def test_a_new_repository_under_a_name_that_was_given_up_is_heard_at_once(bench: Bench) -> None:
    bench.github.move_repository(SHOP, STORE)
    bench.github.commit(STORE, "main", COLUMN, "A push", author="ann")  # its webhook tells the name
    bench.idle()
    bench.github.remove_from_app(STORE)
    bench.github.state.repositories[STORE].private = True
    bench.github.create_repository(SHOP, PROJECT)
    bench.github.install_app(SHOP)
    bench.github.commit(SHOP, "change", COLUMN, "A change", author="ann")
    number = bench.github.open_pull_request(SHOP, "change", "main", "A change", author="ann")
    bench.idle()

    key = f"{SHOP}.{bench.github.state.repositories[SHOP].id}"
    assert bench.context.inbox.pulls.get(key, number).head


@pytest.mark.parametrize("is_suspended", [False, True])
def test_a_private_repository_that_left_unseen_keeps_its_records(bench: Bench, is_suspended: bool) -> None:
    """Its earlier owner's token sees it no more than if it was deleted."""
    number = bench.open(COLUMN)
    bench.idle()
    record, prod = bench.record(number), bench.context.inbox.prods.get(SHOP)
    bench.github.add_user("acme", organization=True)
    bench.github.state.repositories[SHOP].private = True
    bench.github.faults.drop("*", times=100)
    bench.github.move_repository(SHOP, COMPANY)
    bench.github.install_app(COMPANY)
    if is_suspended:
        bench.github.suspend_app("acme")
    bench.github.create_repository(SHOP, PROJECT)
    bench.github.install_app(SHOP)
    bench.worker._sweep_owner("ann")
    bench.idle()

    new_key = f"{SHOP}.{bench.github.state.repositories[SHOP].id}"
    assert bench.context.inbox.prods.get(new_key).state is Prod.READY
    assert (bench.record(number), bench.context.inbox.prods.get(SHOP)) == (record, prod)


def test_a_fork_of_a_private_repository_that_left_gets_no_records_of_it(bench: Bench) -> None:
    """The App is not at the new owner yet: the fork's owner has the original's name, and nobody sees the original."""
    prod = bench.context.inbox.prods.get(SHOP)
    bench.github.add_user("acme", organization=True)
    bench.github.state.repositories[SHOP].private = True
    bench.github.move_repository(SHOP, COMPANY)
    bench.github.set_permission(COMPANY, "ann", "read")
    assert bench.github.fork(COMPANY, "ann") == SHOP
    bench.github.install_app(SHOP)
    bench.worker._sweep_owner("ann")
    assert bench.context.inbox.repositories.find(SHOP).number == bench.github.state.repositories[COMPANY].id

    bench.github.install_app(COMPANY)
    merge_commit = bench.github.commit(COMPANY, "main", COLUMN, "A push", author="acme")
    bench.idle()
    assert bench.context.inbox.prods.get(SHOP).commit == merge_commit != prod.commit


def test_a_repository_that_cannot_be_told_from_another_stops_no_other(bench: Bench) -> None:
    bench.github.create_repository("ann/second", PROJECT)
    bench.github.install_app("ann/second")
    bench.idle()
    bench.github.faults.drop("*", times=100)
    bench.github.move_repository(SHOP, STORE)
    bench.github.create_repository(SHOP, PROJECT)
    bench.github.install_app(SHOP)
    bench.github.faults.fail("GET", rf"/repositories/{bench.github.state.repositories[STORE].id}$", status=401, times=9)
    bench.github.commit("ann/second", "change", COLUMN, "A change", author="ann")
    number = bench.github.open_pull_request("ann/second", "change", "main", "A change", author="ann")
    sweep(bench)

    assert bench.context.inbox.pulls.get("ann/second", number).state is PullState.PLANNED
    assert bench.context.inbox.repositories.find(SHOP).number == bench.github.state.repositories[STORE].id


def test_nothing_is_done_in_a_repository_that_took_the_name_unseen(bench: Bench) -> None:
    """Webhooks lost, no look yet: what was due for the earlier repository touches nothing of the new one."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.faults.drop("*", times=100)
    bench.github.move_repository(SHOP, STORE)
    bench.github.create_repository(SHOP, PROJECT)
    bench.github.install_app(SHOP)
    bench.github.commit(SHOP, "change", COLUMN, "A change", author="ann")
    assert number == bench.github.open_pull_request(SHOP, "change", "main", "A change", author="ann")
    for job, due in ((reconcile_pull, number), (reconcile_prod, 0)):
        with pytest.raises(ForgeFailed, match="`ann/shop` is another repository now"):
            job(bench.context, Job(queue_key(SHOP, due), SHOP, due, 1, 0, 0))

    assert not bench.github.comments(SHOP, number)
    assert not bench.github.checks(SHOP, bench.github.pull_request(SHOP, number).head_sha)
    assert bench.record(number).state is PullState.PLANNED


def test_a_job_whose_repository_lost_its_name_goes_on_under_the_present_one(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.github.faults.drop("*", times=100)
    bench.github.move_repository(SHOP, STORE)
    bench.github.create_repository(SHOP, PROJECT)
    bench.github.install_app(SHOP)

    bench.context.inbox.queue.wake(SHOP, 0)
    bench.idle()

    assert bench.context.inbox.repositories.find(SHOP).name == STORE
    assert "job_failed" not in capsys.readouterr().out


def test_a_job_of_a_repository_that_github_does_not_know_ends(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """A late webhook gave it a name that another repository has: it is not tried again for hours."""
    bench.context.inbox.repositories.note({999: "ann/gone"})
    bench.context.inbox.repositories.note({999: SHOP})

    bench.context.inbox.queue.wake("ann/gone", 0)
    bench.idle()

    log = capsys.readouterr().out
    assert "job_failed" not in log and log.count("job_ended") == 1


def test_a_job_of_prod_asks_nothing_of_a_repository_that_takes_the_name_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An action may take hours; the next one would read the other repository's reviews."""
    bench.github.faults.drop("*", times=100)
    bench.github.commit(SHOP, "main", COLUMN, "A push", author="ann")

    def act(current: ProdPass, action: Action) -> None:
        apply_action(current, action)
        bench.github.move_repository(SHOP, STORE)
        bench.github.create_repository(SHOP, PROJECT)
        bench.github.install_app(SHOP)

    apply_action = reconcile._apply_action
    monkeypatch.setattr(reconcile, "_apply_action", act)
    with pytest.raises(ForgeFailed, match="`ann/shop` is another repository now"):
        reconcile_prod(bench.context, Job(queue_key(SHOP, 0), SHOP, 0, 1, 0, 0))


def test_a_recreated_repository_goes_on_with_its_prod(bench: Bench) -> None:
    """Deleted, and created under its name: its pull requests are counted from 1, and prod is not built again."""
    number = bench.open(COLUMN)
    bench.idle()
    prod, built = bench.context.inbox.prods.get(SHOP), len(bench.calls("plan", "prod"))
    bench.github.delete_repository(SHOP)
    bench.github.create_repository(SHOP, PROJECT)
    bench.github.install_app(SHOP)
    bench.github.set_permission(SHOP, "wim", "write")
    sweep(bench)
    assert bench.record(number).state is PullState.NEW
    assert number == bench.open(COLUMN)
    bench.idle()

    assert bench.record(number).state is PullState.PLANNED
    assert bench.context.inbox.prods.get(SHOP).revision == prod.revision
    assert len(bench.calls("plan", "prod")) == built
    merge(bench, SHOP, number)
    assert bench.record(number).state is PullState.PROMOTED


@pytest.fixture(name="token_bench")
def _token_bench(make_bench: Callable[..., Bench]) -> Bench:
    """A service with ann's token, which no webhook reaches, and whose prod is built."""
    bench = make_bench(person="ann", repositories=SHOP)
    bench.github.faults.drop("*", times=1000)
    sweep(bench)
    return bench


def test_a_token_follows_a_rename_without_a_webhook(token_bench: Bench) -> None:
    bench = token_bench
    number = bench.open(COLUMN)
    sweep(bench)
    bench.github.move_repository(SHOP, STORE)
    sweep(bench)
    bench.github.create_repository(SHOP, PROJECT)
    merge(bench, STORE, number)
    sweep(bench)

    key = f"{SHOP}.{bench.github.state.repositories[SHOP].id}"
    assert bench.context.inbox.repositories.find(SHOP).name == STORE
    assert bench.record(number).state is PullState.PROMOTED
    assert bench.context.inbox.prods.get(key).state is Prod.READY


def test_a_token_goes_on_with_a_recreated_repository(token_bench: Bench) -> None:
    bench = token_bench
    prod = bench.context.inbox.prods.get(SHOP)
    bench.github.delete_repository(SHOP)
    bench.github.create_repository(SHOP, PROJECT)
    bench.github.set_permission(SHOP, "wim", "write")
    sweep(bench)
    number = bench.open(COLUMN)
    sweep(bench)

    assert bench.record(number).state is PullState.PLANNED
    assert bench.context.inbox.prods.get(SHOP).revision == prod.revision
