"""What the store remembers, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.errors import LeaseHeld, PlanMoved, Refused, RequestError
from planner.intervals import Interval, merge
from planner.model.model import Column
from planner.plan.build import Category, Word
from planner.plan.costs import Cost
from planner.snapshot.environment import Environment
from planner.state.environments import Action
from planner.state.store import StateStore
from tests.planner.builders import days, environment, snapshot

pytestmark = pytest.mark.usefixtures("state_url")  # on both databases
LAWS = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ID = (Column("id", "int"),)
STRETCHES = st.lists(
    st.tuples(st.integers(1, 25), st.integers(0, 5)).map(lambda p: days(p[0], p[0] + p[1])), max_size=6
)

HOLD = """
import sys, time
from planner.state.store import StateStore
with StateStore(sys.argv[1], sys.argv[2]).lease("prod", "the other one", ttl=600):
    print("held", flush=True)
    time.sleep(600)
"""


def until(true: Callable[[], bool]) -> None:
    """Wait for something, but not for ever."""
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline, "it never came"
        threading.Event().wait(0.02)


def promoted(store: StateStore, new: Environment, who: str = "ann") -> Environment:
    """The environment after one whole promotion."""
    for each in new.snapshots.values():
        store.register_table(each.table, ID)
    with store.lease(new.name, who) as lease:
        promotion = store.begin_promotion(lease, store.environment(new.name), new, plan_id="p", who=who, note="n")
        store.finish_promotion(lease, promotion)
    return store.environment(new.name)


# intervals


def test_neighbours_become_one_interval(store: StateStore) -> None:
    for stretch in (days(1, 2), days(5, 6), days(3, 4)):
        store.record_interval("s.t", stretch)

    assert store.loaded(["s.t", "s.unknown"]) == {"s.t": (days(1, 6),), "s.unknown": ()}


def test_a_forgotten_interval_leaves_a_hole(store: StateStore) -> None:
    store.record_interval("s.t", days(1, 9))

    store.forget_interval("s.t", days(4, 5))

    assert store.loaded(["s.t"])["s.t"] == (days(1, 3), days(6, 9))


def test_a_forgotten_table_holds_nothing(store: StateStore) -> None:
    store.record_interval("s.t", days(1, 9))

    store.forget_tables(["s.t"])

    assert store.loaded(["s.t"]) == {"s.t": ()}
    assert store.physical_tables() == {}


@LAWS
@given(stretches=STRETCHES, again=st.randoms(use_true_random=False))
def test_recording_is_idempotent_and_order_does_not_matter(
    store: StateStore, stretches: list[Interval], again: object
) -> None:
    one, two = f"s.{uuid.uuid4().hex}", f"s.{uuid.uuid4().hex}"
    shuffled = [*stretches, *stretches]
    again.shuffle(shuffled)  # type: ignore[attr-defined]

    for stretch in stretches:
        store.record_interval(one, stretch)
    for stretch in shuffled:
        store.record_interval(two, stretch)

    assert store.loaded([one])[one] == store.loaded([two])[two] == merge(stretches)


def test_writers_at_the_same_time_lose_nothing(state_url: str, project: str) -> None:
    stores = [StateStore(state_url, project) for _ in range(2)]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda day: stores[day % 2].record_interval("s.t", days(day, day)), range(1, 21)))
    loaded = stores[0].loaded(["s.t"])["s.t"]
    for opened in stores:
        opened.close()

    assert loaded == (days(1, 20),)


def test_projects_in_one_database_do_not_see_each_other(state_url: str, project: str) -> None:
    mine, other = StateStore(state_url, project), StateStore(state_url, f"{project}-other")
    mine.record_interval("s.t", days(1, 1))
    promoted(mine, environment("prod", snapshot("s.t")))

    with mine.lease("prod", "ann"), other.lease("prod", "bob"):
        assert other.loaded(["s.t"]) == {"s.t": ()}
        assert other.environments() == ()
    mine.close()
    other.close()


# costs


def test_what_batches_cost_is_added_up_by_table(store: StateStore) -> None:
    for first, rows, seconds in ((1, 10, 1.5), (3, 20, 0.5), (3, 30, 2.5)):  # the second batch was computed again
        store.record_cost("s.t", days(first, first).start, units=2, rows=rows, seconds=seconds)

    assert store.costs(["s.t", "s.unknown"]) == {"s.t": Cost(units=4, rows=40, seconds=4)}


def test_what_a_table_cost_is_forgotten_with_the_table(store: StateStore) -> None:
    store.record_interval("s.t", days(1, 2))
    store.record_cost("s.t", days(1, 2).start, units=2, rows=5, seconds=1)
    store.forget_interval("s.t", days(1, 2))
    kept = store.costs(["s.t"])

    store.forget_tables(["s.t"])

    assert kept == {"s.t": Cost(2, 5, 1)}
    assert store.costs(["s.t"]) == {}


# leases


def test_the_loser_is_told_whose_the_lease_is(store: StateStore) -> None:
    told = "`prod` is being changed by plan 12 since"
    with store.lease("prod", "plan 12"), pytest.raises(LeaseHeld, match=told), store.lease("prod", "plan 13"):
        pass


def test_a_lease_can_be_waited_for(store: StateStore) -> None:
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with store.lease("prod", "first"):
            held.set()
            let_go.wait(120)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold)
        assert held.wait(120)
        threading.Timer(0.3, let_go.set).start()
        with store.lease("prod", "second", wait=120) as lease:
            assert lease.token == 2


@LAWS
@given(names=st.lists(st.sampled_from(["prod", "dev", "table:s.t"]), max_size=8))
def test_tokens_only_grow(store: StateStore, names: list[str]) -> None:
    last: dict[str, int] = {}
    for name in names:
        with store.lease(name, "ann") as lease:
            assert lease.token > last.get(name, 0)
            last[name] = lease.token


def test_one_of_many_gets_it(store: StateStore) -> None:
    inside: list[int] = []

    def enter(_: int) -> int:
        with store.lease("prod", "one of many", wait=30) as lease:
            inside.append(1)
            assert len(inside) == 1
            inside.pop()
            return lease.token

    with ThreadPoolExecutor(4) as pool:
        tokens = list(pool.map(enter, range(8)))

    assert sorted(tokens) == list(range(1, 9))


def test_a_held_lease_is_renewed(store: StateStore) -> None:
    with store.lease("prod", "ann", ttl=0.6):
        first = store.holder("prod")
        assert first is not None
        until(lambda: (now := store.holder("prod")) is not None and now.expires_at > first.expires_at)


def test_an_expired_lease_is_taken_over_and_its_late_writes_are_refused(store: StateStore) -> None:
    slow = store._take("prod", "slow", ttl=0.01)  # nobody renews it

    with store.lease("prod", "quick", wait=20) as quick:
        with pytest.raises(LeaseHeld, match="quick took it over"):
            store.record_interval("s.t", days(1, 1), lease=slow)  # type: ignore[arg-type]
        store.record_interval("s.t", days(2, 2), lease=quick)

    assert store.loaded(["s.t"])["s.t"] == (days(2, 2),)


def test_the_lease_of_a_killed_process_is_free_at_once(store: StateStore, state_url: str, project: str) -> None:
    other = subprocess.Popen([sys.executable, "-c", HOLD, state_url, project], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "held\n"
    with pytest.raises(LeaseHeld, match="the other one"), store.lease("prod", "ann"):
        pass
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and its parent has not asked how

    with store.lease("prod", "ann") as lease:
        assert lease.token == 2
    other.communicate(timeout=120)


def test_a_process_number_that_is_used_again_holds_no_lease(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("planner.state.leases._began", lambda _pid: "1")
        store._take("prod", "one before us that had our number", ttl=600)

    assert store.holder("prod") is None
    with store.lease("prod", "ann") as lease:
        assert lease.token == 2


@pytest.mark.parametrize(("then", "now"), [(None, "5"), ("", "5"), ("5", None), ("5", "5")])
def test_a_process_that_runs_and_cannot_be_looked_at_keeps_its_lease(
    then: str | None, now: str | None, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.state.leases._began", lambda _pid: then)
    store._take("prod", "ann", ttl=600)
    monkeypatch.setattr("planner.state.leases._began", lambda _pid: now)

    with pytest.raises(LeaseHeld, match="ann"), store.lease("prod", "bob"):
        pass


def test_a_lease_that_was_given_back_allows_nothing(store: StateStore) -> None:
    with store.lease("prod", "ann") as lease:
        pass

    with pytest.raises(LeaseHeld, match="given back"):
        store.check(lease)


# environments and promotions


def test_an_environment_that_is_not_there_has_revision_0(store: StateStore) -> None:
    assert store.environment("dev") == Environment("dev")
    assert not store.environment("dev").exists


def test_a_promoted_environment_comes_back_as_it_was_given(store: StateStore) -> None:
    given_ = environment("prod", snapshot("s.a"), snapshot("s.b", "v2", None))

    now = promoted(store, given_)

    assert (now.snapshots, now.views, now.revision, now.plan_id) == (given_.snapshots, given_.views, 1, "p")
    assert now.promoted_at is not None and now.promoted_at.tzinfo is UTC
    assert store.environments() == (now,)


def test_history_tells_who_when_and_why_newest_first(store: StateStore) -> None:
    promoted(store, environment("prod", snapshot("s.a")))
    promoted(store, environment("prod", snapshot("s.a", "v2")), who="bob")

    rows = store.history("prod")

    assert [(row.revision, row.who, row.note, row.action) for row in rows] == [
        (2, "bob", "n", Action.PROMOTED),
        (1, "ann", "n", Action.PROMOTED),
    ]
    assert store.at_revision("prod", 1).snapshots == {"s.a": snapshot("s.a")}
    with pytest.raises(RequestError, match="no revision 7"):
        store.at_revision("prod", 7)


def test_a_promotion_is_pending_until_it_is_finished(store: StateStore) -> None:
    new = environment("prod", snapshot("s.a"))
    store.register_table(snapshot("s.a").table, ID)
    with store.lease("prod", "ann") as lease:
        promotion = store.begin_promotion(lease, Environment("prod"), new)
        store.record_step(lease, promotion, "s.a")
        (pending,) = store.pending_promotions()
        store.finish_promotion(lease, promotion)

    assert pending.done == {"s.a"}
    assert pending.changes == promotion.changes
    assert pending.new.snapshots == new.snapshots
    assert store.pending_promotions() == ()


def test_rolling_back_puts_the_old_map_in_force(store: StateStore) -> None:
    old = promoted(store, environment("prod", snapshot("s.a")))
    store.register_table(snapshot("s.a", "v2").table, ID)
    with store.lease("prod", "ann") as lease:
        promotion = store.begin_promotion(lease, old, environment("prod", snapshot("s.a", "v2")))
        store.roll_back_promotion(lease, promotion)

    assert store.environment("prod") == old
    assert store.pending_promotions() == ()
    assert store.history("prod")[0].action is Action.UNDONE
    assert promoted(store, environment("prod", snapshot("s.a", "v2"))).revision == 3


def test_a_first_promotion_rolled_back_leaves_no_environment(store: StateStore) -> None:
    store.register_table(snapshot("s.a").table, ID)
    with store.lease("dev", "ann") as lease:
        promotion = store.begin_promotion(lease, Environment("dev"), environment("dev", snapshot("s.a")))
        store.roll_back_promotion(lease, promotion)

    assert store.environments() == ()


def test_a_dropped_environment_leaves_only_its_history(store: StateStore) -> None:
    dev = promoted(store, environment("dev", snapshot("s.a")))
    with store.lease("dev", "ann") as lease:
        dropping = store.begin_promotion(lease, dev, Environment("dev"), action=Action.DROPPED)
        assert store.pending_promotions()[0].action is Action.DROPPED
        store.finish_promotion(lease, dropping)

    assert not store.environment("dev").exists
    assert [row.action for row in store.history("dev")] == [Action.DROPPED, Action.PROMOTED]
    assert promoted(store, environment("dev", snapshot("s.a"))).revision == 3


def test_a_plan_for_another_revision_is_refused(store: StateStore) -> None:
    promoted(store, environment("prod", snapshot("s.a")))

    with store.lease("prod", "ann") as lease, pytest.raises(PlanMoved, match=r"revision 1.*made for revision 0"):
        store.begin_promotion(lease, Environment("prod"), environment("prod", snapshot("s.a")))


def test_nothing_is_promoted_over_an_unfinished_promotion(store: StateStore) -> None:
    store.register_table(snapshot("s.a").table, ID)
    with store.lease("prod", "ann") as lease:
        promotion = store.begin_promotion(lease, Environment("prod"), environment("prod", snapshot("s.a")))

        with pytest.raises(PlanMoved):
            store.begin_promotion(lease, promotion.new, environment("prod", snapshot("s.a")))


def test_a_table_that_is_gone_is_named_and_nothing_is_written(store: StateStore) -> None:
    with store.lease("prod", "ann") as lease, pytest.raises(Refused, match=r"mergeplan__s\.s__a__v1` is gone"):
        store.begin_promotion(lease, Environment("prod"), environment("prod", snapshot("s.a")))

    assert store.environments() == ()
    assert store.history() == ()


def test_no_step_is_recorded_without_the_lease(store: StateStore) -> None:
    store.register_table(snapshot("s.a").table, ID)
    with store.lease("prod", "ann") as lease:
        promotion = store.begin_promotion(lease, Environment("prod"), environment("prod", snapshot("s.a")))

    with pytest.raises(LeaseHeld):
        store.record_step(lease, promotion, "s.a")
    with pytest.raises(LeaseHeld):
        store.finish_promotion(lease, promotion)
    with pytest.raises(LeaseHeld):
        store.roll_back_promotion(lease, promotion)
    assert store.pending_promotions() == (replace(promotion, new=store.environment("prod")),)


# plans and words


def test_a_saved_plan_comes_back(store: StateStore) -> None:
    store.save_plan("p1", "pr_7", tables=["s.b", "s.a"], options={"start": "2026-01-01"}, result={"models": [1]})
    store.close_plan("p1", "applied")

    plan = store.plan("p1")

    assert (plan.environment, plan.status, plan.tables) == ("pr_7", "applied", ("s.a", "s.b"))
    assert (plan.options, plan.components, plan.result) == ({"start": "2026-01-01"}, {}, {"models": [1]})
    assert store.plans_since(plan.created_at) == (plan,)
    assert store.plans_since(plan.created_at + timedelta(seconds=1)) == ()


def test_an_unknown_plan_is_told(store: StateStore) -> None:
    with pytest.raises(RequestError, match="no plan `p9`"):
        store.plan("p9")


def test_the_last_word_about_a_change_counts(store: StateStore) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    word = Word("s.a", Category.BREAKING, "old", "new", "ann", at)
    store.record_word("pr_7", word)
    store.record_word("pr_7", replace(word, category=Category.NON_BREAKING))
    store.record_word("pr_7", replace(word, new="newer"))
    store.record_word("pr_8", word)

    assert store.words("pr_7") == (replace(word, category=Category.NON_BREAKING), replace(word, new="newer"))
    store.forget_words("pr_7")
    assert store.words("pr_7") == ()
    assert store.words("pr_8") == (word,)
