"""Deliveries, jobs and commands, on both databases: nothing twice, nothing lost, newest wins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
import sqlalchemy as sa

from mergeplan.bot.forge.events import Event, WrittenComment
from mergeplan.bot.inbox import repositories
from mergeplan.bot.inbox.database import InboxDatabase
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.inbox.repositories import Repositories
from mergeplan.bot.inbox.runs import Run
from mergeplan.bot.inbox.tables import PRODS, PULLS
from mergeplan.bot.records import PullState, Repository
from mergeplan.planner.errors import RequestError
from tests.bot.changing import change_prod, change_record
from tests.bot.conftest import read_guids, until
from tests.planner.conftest import empty_url, new_postgresql, postgresql  # noqa: F401 - fixtures

SHOP = "ann/shop"


@pytest.fixture(name="inbox")
def _inbox(empty_url: str) -> Iterator[Inbox]:  # noqa: F811 - the fixture
    made = Inbox(empty_url, settle_seconds=1.0)
    yield made
    made.close()


def event(guid: str, kind: str = "pull_request.opened", number: int = 7, **more: object) -> Event:
    return Event(guid, kind, SHOP, number, **more)  # type: ignore[arg-type]


def test_a_delivery_is_taken_in_once_though_it_comes_at_once_from_many(inbox: Inbox) -> None:
    """Behaviour 2."""
    taken: list[bool] = []
    threads = [threading.Thread(target=lambda: taken.append(inbox.deliveries.receive(event("g")))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(taken) == [False] * 5 + [True]


def test_deliveries_that_came_together_are_taken_in_together(inbox: Inbox) -> None:
    """Each once, in their order, each key due."""
    group = [event("1"), event("2", number=8), event("1"), Event("3", "push", SHOP, branch="main"), event("4")]
    assert inbox.deliveries.receive_all(group) == (True, True, False, True, True)
    assert inbox.deliveries.receive_all(group) == (False,) * 5

    assert [news.kind for news in inbox.deliveries.news(f"{SHOP}#7", 0)] == ["pull_request.opened"] * 2
    assert inbox.queue.depth().due == 3


def test_one_that_cannot_be_stored_keeps_no_other_out(inbox: Inbox) -> None:
    """As when what is known of a repository's prod is damaged."""
    inbox.prods.update(SHOP, change_prod, branch="main")
    with inbox.database.writing() as connection:
        connection.execute(PRODS.update().values(data="{"))
    first, push, last = inbox.deliveries.receive_all([event("1"), Event("2", "push", SHOP, branch="x"), event("3")])

    assert (first, last) == (True, True)
    assert isinstance(push, ValueError)
    assert read_guids(inbox) == {"1", "3"}


def test_a_group_makes_a_key_due_as_its_deliveries_would_one_by_one(inbox: Inbox) -> None:
    """A push settles, and a burst of them for no longer than ten times that; other news waits with it."""
    inbox.deliveries.receive(event("1"))
    job = inbox.queue.claim("one")
    assert job is not None
    inbox.queue.release(job, settle=True)
    pushes = [event(f"p{n}", "pull_request.synchronize", head="b" * 40) for n in range(5)]
    inbox.deliveries.receive_all([*pushes, event("2", "pull_request.edited")])

    assert inbox.queue.claim("one") is None
    until(lambda: inbox.queue.claim("one"), 5, "the job")


def test_groups_over_the_same_keys_do_not_stop_each_other(inbox: Inbox) -> None:
    """Two processes on one database take in what names the same pull requests, in other orders."""
    ended: list[bool | Exception] = []

    def send(name: str, numbers: list[int]) -> None:
        for turn in range(10):
            group = [event(f"{name}-{turn}-{number}", number=number) for number in numbers]
            ended.extend(inbox.deliveries.receive_all(group))
            inbox.queue.renew("one", [f"{SHOP}#{number}" for number in numbers])

    numbers = list(range(1, 30))
    threads = [
        threading.Thread(target=send, args=(name, order)) for name, order in (("a", numbers), ("b", numbers[::-1]))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ended == [True] * 580


def test_a_entry_has_one_worker_and_comes_back_when_news_came(inbox: Inbox) -> None:
    """One job a pull request; what came while it was worked on makes it due again."""
    inbox.deliveries.receive(event("1"))
    job = inbox.queue.claim("one")
    assert job is not None
    assert inbox.queue.claim("two") is None
    inbox.deliveries.receive(event("2", "pull_request.synchronize", head="b" * 40))
    assert [news.kind for news in inbox.deliveries.news(job.key, job.seen)] == ["pull_request.synchronize"]
    inbox.queue.release(job)

    again = inbox.queue.claim("two")
    assert again is not None
    inbox.queue.release(again)
    assert inbox.queue.claim("one") is None
    assert inbox.queue.is_idle()


def test_entries_of_different_pull_requests_run_side_by_side(inbox: Inbox) -> None:
    """And prod has one of its own."""
    for number in (7, 8):
        inbox.deliveries.receive(event(f"g{number}", number=number))
    inbox.deliveries.receive(Event("p", "push", SHOP, branch="main"))

    assert {getattr(inbox.queue.claim("one"), "key", "") for _ in range(3)} == {
        f"{SHOP}#7",
        f"{SHOP}#8",
        f"{SHOP}@prod",
    }


def test_a_dead_workers_entries_are_due_at_once(inbox: Inbox) -> None:
    """Behaviour 17."""
    inbox.deliveries.receive(event("1"))
    inbox.queue.claim("dead")
    inbox.queue.release_of("dead")

    assert inbox.queue.claim("alive") is not None


def test_many_pull_requests_of_one_repository_keep_no_other_waiting(inbox: Inbox) -> None:
    """Whoever claims: the repository of which least is worked on, and of that what has been due longest."""
    for number in range(1, 7):
        inbox.queue.wake(SHOP, number)
    inbox.queue.wake("ann/late", 1)

    claimed = [inbox.queue.claim(worker) for worker in ("one", "two", "one")]
    assert [job.key for job in claimed if job] == [f"{SHOP}#1", "ann/late#1", f"{SHOP}#2"]


def test_a_pull_request_with_a_command_is_worked_on_first(inbox: Inbox) -> None:
    for number in range(1, 7):
        inbox.queue.wake(SHOP, number)
    comment = WrittenComment(1, "wim", "/help", "2026-01-01T00:00:00+00:00")
    inbox.deliveries.receive(event("g", "issue_comment.created", 6, comment=comment))

    claimed = [inbox.queue.claim("one") for _ in range(2)]
    assert [job.number for job in claimed if job] == [6, 1]


def test_a_entry_that_could_not_be_given_back_is_free_when_its_claim_ends(empty_url: str) -> None:  # noqa: F811
    """Behaviour 17: its worker lives and says so, but works on it no longer."""
    with closing(Inbox(empty_url, lease_seconds=0.2)) as inbox:
        inbox.deliveries.receive(event("1"))
        inbox.deliveries.receive(event("2", number=8))
        held = {getattr(inbox.queue.claim("one"), "key", "") for _ in range(2)}
        assert held == {f"{SHOP}#7", f"{SHOP}#8"}

        def free() -> str:
            inbox.queue.renew("one", [f"{SHOP}#8"])
            return getattr(inbox.queue.claim("two"), "key", "")

        until(lambda: free() == f"{SHOP}#7", 5, "the claim's end")


def test_a_burst_settles_before_the_entry_is_due(inbox: Inbox) -> None:
    """Behaviour 20: after a superseded run, pushes put the next one off, but not for ever."""
    inbox.deliveries.receive(event("1"))
    job = inbox.queue.claim("one")
    assert job is not None
    inbox.queue.release(job, settle=True)
    inbox.deliveries.receive(event("2", "pull_request.synchronize", head="b" * 40))

    assert inbox.queue.claim("one") is None
    until(lambda: inbox.queue.claim("one"), 5, "the job")


def test_a_failure_is_tried_again_later_and_counted(inbox: Inbox) -> None:
    """Attempts grow with failures and end with a success."""
    inbox.deliveries.receive(event("1"))
    job = inbox.queue.claim("one")
    assert job is not None
    inbox.queue.release(job, again_in=0.0, error="boom")
    job = inbox.queue.claim("one")

    assert job is not None
    assert job.attempts == 1


def test_a_comment_with_a_command_is_kept_until_it_is_answered(inbox: Inbox) -> None:
    """By its webhook or by the timer, once; talk is not kept."""
    written = WrittenComment(5, "wim", "/plan", "2026-01-01T00:00:00Z")
    inbox.deliveries.receive(event("1", "issue_comment.created", comment=written))
    assert not inbox.commands.take(SHOP, 7, written)
    assert not inbox.commands.take(SHOP, 7, WrittenComment(6, "wim", "hello", written.at))

    (row,) = inbox.commands.open(SHOP, 7)
    inbox.commands.mark_seen(row)
    assert inbox.commands.unseen() == ()
    inbox.commands.answer(type(row)(**{**row.__dict__, "state": "answered"}))
    assert inbox.commands.open(SHOP, 7) == ()


def test_what_we_know_is_read_as_it_was_written(inbox: Inbox) -> None:
    """Records keep their types through the database."""
    inbox.pulls.update(SHOP, 7, change_record, state=PullState.PLANNED, head="a" * 40)
    inbox.prods.update(SHOP, change_prod, revision=3)
    inbox.decisions.record(SHOP, 7, "wim", "/plan", "p1")

    assert inbox.pulls.get(SHOP, 7).state is PullState.PLANNED
    assert inbox.prods.get(SHOP).revision == 3
    assert [decision[1:] for decision in inbox.decisions.list_decisions(SHOP, 7)] == [("wim", "/plan", "p1")]


def test_a_worker_whose_claim_was_taken_over_frees_nothing_and_learns_of_it(empty_url: str) -> None:  # noqa: F811
    """Behaviours 11, 17: one that was stopped for a while takes no key from the one that went on in its place."""
    with closing(Inbox(empty_url, lease_seconds=0.2)) as inbox:
        inbox.queue.wake(SHOP, 7)
        slow = inbox.queue.claim("slow")
        assert slow is not None and inbox.queue.renew("slow", [slow.key]) == ()
        until(lambda: inbox.queue.claim("quick"), what="the claim's end")
        lost = inbox.queue.renew("slow", [slow.key])
        inbox.queue.release(slow)

        assert lost == (slow.key,)
        assert not inbox.queue.holds(slow)
        assert inbox.queue.owners() == ("quick",)


def test_two_processes_write_one_pull_request_to_github_one_after_the_other(empty_url: str) -> None:  # noqa: F811
    """The older text of a comment never overwrites the newer one: with PostgreSQL across machines too."""
    with closing(Inbox(empty_url)) as one, closing(Inbox(empty_url)) as two:
        if one.database.is_shared:
            entered = threading.Event()

            def other() -> None:
                with two.pulls.alone(SHOP, 7):
                    entered.set()

            with one.pulls.alone(SHOP, 7), two.pulls.alone(SHOP, 8):
                waiting = threading.Thread(target=other)
                waiting.start()
                assert not entered.wait(0.3)
            waiting.join(30)
            assert entered.is_set()


def test_however_many_write_to_github_the_database_is_there_for_the_others(empty_url: str) -> None:  # noqa: F811
    """A writer waits for GitHub for seconds: it keeps no connection from those who only ask."""
    with closing(Inbox(empty_url)) as inbox, ExitStack() as writing:
        for number in range(20):
            writing.enter_context(inbox.pulls.alone(SHOP, number))

        assert inbox.pulls.update(SHOP, 1, change_record, reason="x").reason == "x"


def test_a_run_whose_machine_never_came_back_is_forgotten(inbox: Inbox) -> None:
    inbox.runs.begin(Run("run-1", f"{SHOP}#7", "gone:1:1", 1, "1"), "plan")
    inbox.deliveries.forget_old(1.0)
    assert [run.run_id for run in inbox.runs.open()] == ["run-1"]

    inbox.deliveries.forget_old(-1.0)
    assert inbox.runs.open() == ()


def test_the_plan_of_a_record_that_an_earlier_build_stored_is_found(inbox: Inbox, empty_url: str) -> None:  # noqa: F811
    inbox.pulls.update(SHOP, 7, change_record, state=PullState.PLANNED, run_lines="[]")
    engine = sa.create_engine(empty_url)
    with engine.begin() as connection:
        renamed = sa.func.replace(PULLS.c.data, '"run_lines"', '"said"')
        connection.execute(PULLS.update().values(data=renamed))
    engine.dispose()

    assert inbox.pulls.get(SHOP, 7).run.lines == "[]"


def test_a_service_that_stands_still_loses_its_turn(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mergeplan.planner.state.database.IDLE_SECONDS", 1)
    url, turns = request.getfixturevalue("new_postgresql")(), list[str]()
    one, other = InboxDatabase(url), InboxDatabase(url)

    with pytest.raises(RequestError, match="idle-in-transaction"), one.alone("ann/shop#1"), other.alone("ann/shop#1"):
        turns.append("the other's")

    assert turns == ["the other's"]
    one.close()
    other.close()


def test_the_first_project_that_asks_decides_which_of_them_answers_a_comment(inbox: Inbox) -> None:
    said = WrittenComment(9, "wim", "/help\n/status\n", "2026-01-01T00:00:00+00:00")
    assert inbox.commands.take("ann/shop~ads", 7, said)
    (row,) = inbox.commands.open("ann/shop~ads", 7)
    first = inbox.commands.share(row, {"ann/shop": ("/help", "/status"), "ann/shop~ads": ("/status",)})
    (other,) = inbox.commands.open("ann/shop", 7)
    second = inbox.commands.share(other, {"ann/shop": (), "ann/shop~ads": ("/help", "/status")})

    assert (first.lines, second.lines) == (("/status",), ("/help", "/status"))
    assert not inbox.commands.take("ann/shop", 7, said)
    assert inbox.queue.has_plans(["ann/shop"])


@pytest.mark.parametrize("holders_name", ["ann/store", "", None])
def test_two_services_settle_a_name_once(inbox: Inbox, holders_name: str | None) -> None:
    services = [Repositories(inbox.database) for _ in range(2)]
    services[0].note({1: SHOP})
    taken = [service.note({2: SHOP}) for service in services]
    for service, (name_taken,) in zip(services, taken, strict=True):
        service.settle(name_taken, holders_name)

    keys = {service.find_key(2, SHOP) for service in services}
    assert keys == {SHOP if holders_name == "" else f"{SHOP}.2"}


def test_a_name_that_two_repositories_seem_to_have_is_told_by_number(inbox: Inbox) -> None:
    """One left it unseen, for an owner without the App; the other was renamed."""
    inbox.repositories.note({1: SHOP, 2: "ann/store"})
    inbox.repositories.note({1: "ann/store"})
    assert inbox.repositories.keys_of([Repository("ann/store", 1)]) == (SHOP,)
    assert inbox.repositories.keys_of([Repository("ann/store", 2)]) == ("ann/store",)


def test_the_key_of_a_repository_is_that_of_the_service_that_saw_it_first(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one saw it at the same moment, and under another name."""
    inbox.repositories.note({1: SHOP})
    monkeypatch.setattr(repositories, "_read_rows", lambda _connection: {})
    assert Repositories(inbox.database).find_key(1, "ann/store") == SHOP


def test_looks_at_a_repository_do_not_grow_with_what_is_over(inbox: Inbox) -> None:
    """The timer reads what is open and what GitHub lists as closed last; a promotion wakes the newest merged ones."""
    for number in range(1, 40):
        state = PullState.PLANNED if number % 20 == 1 else PullState.PROMOTED if number % 2 else PullState.CLOSED
        inbox.pulls.update(SHOP, number, change_record, state=state)

    assert [record.number for record in inbox.pulls.list_current(SHOP, [38])] == [1, 21, 38]
    assert inbox.pulls.list_numbers(SHOP, 3) == (1, 21, 35, 37, 39)
    assert [record.number for record in inbox.pulls.last_promoted(SHOP, 2)] == [39, 37]


def test_locks_of_pull_requests_that_are_not_written_are_forgotten(inbox: Inbox) -> None:
    for number in range(20):
        with inbox.pulls.alone(SHOP, number):
            assert len(inbox.pulls._alone) == 1
    assert len(inbox.pulls._alone) == 0
