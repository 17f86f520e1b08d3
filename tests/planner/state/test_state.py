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

from mergeplan.planner.errors import LeaseHeld, PlanMoved, Refused, RequestError
from mergeplan.planner.intervals import Interval, merge_intervals
from mergeplan.planner.model.model import Column
from mergeplan.planner.plan.build import Category, Override
from mergeplan.planner.plan.costs import Cost
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state import snapshots
from mergeplan.planner.state.environments import Cause, HistoryAction
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import days, environment, snapshot

pytestmark = pytest.mark.usefixtures("state_url")  # on both databases
LAWS = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ID = (Column("id", "int"),)
STRETCHES = st.lists(
    st.tuples(st.integers(1, 25), st.integers(0, 5)).map(lambda p: days(p[0], p[0] + p[1])), max_size=6
)

HOLD = """
import sys, time
from mergeplan.planner.state.store import StateStore
with StateStore(sys.argv[1], sys.argv[2]).leases.hold("prod", "the other one", ttl=600):
    print("held", flush=True)
    time.sleep(600)
"""


def until(true: Callable[[], bool]) -> None:
    """Wait for something, but not for ever."""
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline, "it never came"
        threading.Event().wait(0.02)


def promote(store: StateStore, new: Environment, who: str = "ann") -> Environment:
    """The environment after one whole promotion."""
    for version in new.snapshots.values():
        store.tables.register(version.table, ID)
    with store.leases.hold(new.name, who) as lease:
        promotion = store.promotions.begin(
            lease, store.environments.get(new.name), new, Cause(plan_id="p", who=who, note="n")
        )
        store.promotions.finish(lease, promotion)
    return store.environments.get(new.name)


def test_a_promotion_writes_the_snapshots_that_changed_and_finds_the_others(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = promote(store, environment("prod", snapshot("s.a"), snapshot("s.b")))
    written, encode = list[str](), snapshots._build_row
    monkeypatch.setattr(snapshots, "_build_row", lambda one: (written.append(one.name), encode(one))[1])

    after = promote(store, replace(before, snapshots={**before.snapshots, "s.b": snapshot("s.b", "v2")}))

    assert written == ["s.b"]
    assert (after.snapshots["s.a"], after.snapshots["s.b"].version) == (before.snapshots["s.a"], "v2")
    newest, older = (revision.snapshots for revision in store.environments.history("prod"))
    assert newest["s.a"] == older["s.a"] and newest["s.b"] != older["s.b"]


# intervals


def test_neighbours_become_one_interval(store: StateStore) -> None:
    for stretch in (days(1, 2), days(5, 6), days(3, 4)):
        store.intervals.record("s.t", stretch)

    assert store.intervals.load_timelines(["s.t", "s.unknown"]) == {"s.t": (days(1, 6),), "s.unknown": ()}


def test_a_forgotten_interval_leaves_a_hole(store: StateStore) -> None:
    store.intervals.record("s.t", days(1, 9))

    store.intervals.forget("s.t", days(4, 5))

    assert store.intervals.load_timelines(["s.t"])["s.t"] == (days(1, 3), days(6, 9))


def test_a_forgotten_table_holds_nothing(store: StateStore) -> None:
    store.intervals.record("s.t", days(1, 9))

    store.tables.forget(["s.t"])

    assert store.intervals.load_timelines(["s.t"]) == {"s.t": ()}
    assert store.tables.all() == {}


@LAWS
@given(stretches=STRETCHES, again=st.randoms(use_true_random=False))
def test_recording_is_idempotent_and_order_does_not_matter(
    store: StateStore, stretches: list[Interval], again: object
) -> None:
    one, two = f"s.{uuid.uuid4().hex}", f"s.{uuid.uuid4().hex}"
    shuffled = [*stretches, *stretches]
    again.shuffle(shuffled)  # type: ignore[attr-defined]

    for stretch in stretches:
        store.intervals.record(one, stretch)
    for stretch in shuffled:
        store.intervals.record(two, stretch)

    assert (
        store.intervals.load_timelines([one])[one]
        == store.intervals.load_timelines([two])[two]
        == merge_intervals(stretches)
    )


def test_writers_at_the_same_time_lose_nothing(state_url: str, project: str) -> None:
    stores = [StateStore(state_url, project) for _ in range(2)]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda day: stores[day % 2].intervals.record("s.t", days(day, day)), range(1, 21)))
    loaded = stores[0].intervals.load_timelines(["s.t"])["s.t"]
    for opened in stores:
        opened.close()

    assert loaded == (days(1, 20),)


def test_projects_in_one_database_do_not_see_each_other(state_url: str, project: str) -> None:
    mine, other = StateStore(state_url, project), StateStore(state_url, f"{project}-other")
    mine.intervals.record("s.t", days(1, 1))
    promote(mine, environment("prod", snapshot("s.t")))

    with mine.leases.hold("prod", "ann"), other.leases.hold("prod", "bob"):
        assert other.intervals.load_timelines(["s.t"]) == {"s.t": ()}
        assert other.environments.all() == ()
    mine.close()
    other.close()


# costs


def test_what_batches_cost_is_added_up_by_table(store: StateStore) -> None:
    for first, rows, seconds in ((1, 10, 1.5), (3, 20, 0.5), (3, 30, 2.5)):  # the second batch was computed again
        store.costs.record("s.t", days(first, first).start, units=2, rows=rows, seconds=seconds)

    assert store.costs.load(["s.t", "s.unknown"]) == {"s.t": Cost(units=4, rows=40, seconds=4)}


def test_the_newest_batches_come_first_and_the_rest_is_counted(store: StateStore) -> None:
    for first in (1, 2, 3):
        store.costs.record("s.t", days(first, first).start, units=1, rows=first, seconds=2)

    history = store.costs.load_history(["s.t", "s.unknown"], most=2)
    assert set(history) == {"s.t"}
    assert (history["s.t"].total, history["s.t"].count) == (Cost(units=3, rows=6, seconds=6), 3)
    assert [batch.rows for batch in history["s.t"].batches] == [3, 2]
    assert history["s.t"].written_at == max(batch.at for batch in history["s.t"].batches)


def test_what_a_table_cost_is_forgotten_with_the_table(store: StateStore) -> None:
    store.intervals.record("s.t", days(1, 2))
    store.costs.record("s.t", days(1, 2).start, units=2, rows=5, seconds=1)
    store.intervals.forget("s.t", days(1, 2))
    kept = store.costs.load(["s.t"])

    store.tables.forget(["s.t"])

    assert kept == {"s.t": Cost(2, 5, 1)}
    assert store.costs.load(["s.t"]) == {}


# leases


def test_the_loser_is_told_whose_the_lease_is(store: StateStore) -> None:
    told = "`prod` is being changed by plan 12 since"
    with (
        store.leases.hold("prod", "plan 12"),
        pytest.raises(LeaseHeld, match=told),
        store.leases.hold("prod", "plan 13"),
    ):
        pass


def test_a_lease_can_be_waited_for(store: StateStore) -> None:
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with store.leases.hold("prod", "first"):
            held.set()
            let_go.wait(120)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold)
        assert held.wait(120)
        threading.Timer(0.3, let_go.set).start()
        with store.leases.hold("prod", "second", wait=120) as lease:
            assert lease.token == 2


@LAWS
@given(names=st.lists(st.sampled_from(["prod", "dev", "table:s.t"]), max_size=8))
def test_tokens_only_grow(store: StateStore, names: list[str]) -> None:
    last: dict[str, int] = {}
    for name in names:
        with store.leases.hold(name, "ann") as lease:
            assert lease.token > last.get(name, 0)
            last[name] = lease.token


def test_one_of_many_gets_it(store: StateStore) -> None:
    inside: list[int] = []

    def enter(_: int) -> int:
        with store.leases.hold("prod", "one of many", wait=30) as lease:
            inside.append(1)
            assert len(inside) == 1
            inside.pop()
            return lease.token

    with ThreadPoolExecutor(4) as pool:
        tokens = list(pool.map(enter, range(8)))

    assert sorted(tokens) == list(range(1, 9))


def test_a_held_lease_is_renewed(store: StateStore) -> None:
    with store.leases.hold("prod", "ann", ttl=3):
        first = store.leases.holder("prod")
        assert first is not None
        until(lambda: (now := store.leases.holder("prod")) is not None and now.expires_at > first.expires_at)


def test_an_expired_lease_is_taken_over_and_its_late_writes_are_refused(store: StateStore) -> None:
    slow = store.leases._take_lease("prod", "slow", ttl=0.01)  # nobody renews it

    with store.leases.hold("prod", "quick", wait=20) as quick:
        with pytest.raises(LeaseHeld, match="quick took it over"):
            store.intervals.record("s.t", days(1, 1), lease=slow)  # type: ignore[arg-type]
        store.intervals.record("s.t", days(2, 2), lease=quick)

    assert store.intervals.load_timelines(["s.t"])["s.t"] == (days(2, 2),)


def test_the_lease_of_a_killed_process_is_free_at_once(store: StateStore, state_url: str, project: str) -> None:
    other = subprocess.Popen([sys.executable, "-c", HOLD, state_url, project], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "held\n"
    with pytest.raises(LeaseHeld, match="the other one"), store.leases.hold("prod", "ann"):
        pass
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and its parent has not asked how

    with store.leases.hold("prod", "ann") as lease:
        assert lease.token == 2
    other.communicate(timeout=120)


def test_a_process_number_that_is_used_again_holds_no_lease(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("mergeplan.planner.state.leases._began", lambda _pid: "1")
        store.leases._take_lease("prod", "one before us that had our number", ttl=600)

    assert store.leases.holder("prod") is None
    with store.leases.hold("prod", "ann") as lease:
        assert lease.token == 2


@pytest.mark.parametrize(("then", "now"), [(None, "5"), ("", "5"), ("5", None), ("5", "5")])
def test_a_process_that_runs_and_cannot_be_looked_at_keeps_its_lease(
    then: str | None, now: str | None, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mergeplan.planner.state.leases._began", lambda _pid: then)
    store.leases._take_lease("prod", "ann", ttl=600)
    monkeypatch.setattr("mergeplan.planner.state.leases._began", lambda _pid: now)

    with pytest.raises(LeaseHeld, match="ann"), store.leases.hold("prod", "bob"):
        pass


def test_a_lease_that_was_given_back_allows_nothing(store: StateStore) -> None:
    with store.leases.hold("prod", "ann") as lease:
        pass

    with pytest.raises(LeaseHeld, match="given back"):
        store.leases.check(lease)


# environments and promotions


def test_an_environment_that_is_not_there_has_revision_0(store: StateStore) -> None:
    assert store.environments.get("dev") == Environment("dev")
    assert not store.environments.get("dev").exists


def test_a_promoted_environment_comes_back_as_it_was_given(store: StateStore) -> None:
    given_ = environment("prod", snapshot("s.a"), snapshot("s.b", "v2", None))

    now = promote(store, given_)

    assert (now.snapshots, now.views, now.revision, now.plan_id) == (given_.snapshots, given_.views, 1, "p")
    assert now.promoted_at is not None and now.promoted_at.tzinfo is UTC
    assert store.environments.all() == (now,)


def test_history_tells_who_when_and_why_newest_first(store: StateStore) -> None:
    promote(store, environment("prod", snapshot("s.a")))
    promote(store, environment("prod", snapshot("s.a", "v2")), who="bob")

    rows = store.environments.history("prod")

    assert [(row.revision, row.who, row.note, row.action) for row in rows] == [
        (2, "bob", "n", HistoryAction.PROMOTED),
        (1, "ann", "n", HistoryAction.PROMOTED),
    ]
    assert store.environments.get_revision("prod", 1).snapshots == {"s.a": snapshot("s.a")}
    with pytest.raises(RequestError, match="no revision 7"):
        store.environments.get_revision("prod", 7)


def test_a_promotion_is_pending_until_it_is_finished(store: StateStore) -> None:
    new = environment("prod", snapshot("s.a"))
    store.tables.register(snapshot("s.a").table, ID)
    with store.leases.hold("prod", "ann") as lease:
        promotion = store.promotions.begin(lease, Environment("prod"), new)
        store.promotions.record_steps(lease, promotion, ["s.a"])
        (pending,) = store.promotions.pending()
        store.promotions.finish(lease, promotion)

    assert pending.done == {"s.a"}
    assert pending.changes == promotion.changes
    assert pending.new.snapshots == new.snapshots
    assert store.promotions.pending() == ()


def test_rolling_back_puts_the_old_map_in_force(store: StateStore) -> None:
    old = promote(store, environment("prod", snapshot("s.a")))
    store.tables.register(snapshot("s.a", "v2").table, ID)
    with store.leases.hold("prod", "ann") as lease:
        promotion = store.promotions.begin(lease, old, environment("prod", snapshot("s.a", "v2")))
        store.promotions.roll_back(lease, promotion)

    assert store.environments.get("prod") == old
    assert store.promotions.pending() == ()
    assert store.environments.history("prod")[0].action is HistoryAction.UNDONE
    assert promote(store, environment("prod", snapshot("s.a", "v2"))).revision == 3


def test_a_first_promotion_rolled_back_leaves_no_environment(store: StateStore) -> None:
    store.tables.register(snapshot("s.a").table, ID)
    with store.leases.hold("dev", "ann") as lease:
        promotion = store.promotions.begin(lease, Environment("dev"), environment("dev", snapshot("s.a")))
        store.promotions.roll_back(lease, promotion)

    assert store.environments.all() == ()


def test_a_dropped_environment_leaves_only_its_history(store: StateStore) -> None:
    dev = promote(store, environment("dev", snapshot("s.a")))
    with store.leases.hold("dev", "ann") as lease:
        dropping = store.promotions.begin(lease, dev, Environment("dev"), Cause(action=HistoryAction.DROPPED))
        assert store.promotions.pending()[0].action is HistoryAction.DROPPED
        store.promotions.finish(lease, dropping)

    assert not store.environments.get("dev").exists
    assert [row.action for row in store.environments.history("dev")] == [HistoryAction.DROPPED, HistoryAction.PROMOTED]
    assert promote(store, environment("dev", snapshot("s.a"))).revision == 3


def test_a_plan_for_another_revision_is_refused(store: StateStore) -> None:
    promote(store, environment("prod", snapshot("s.a")))

    with store.leases.hold("prod", "ann") as lease, pytest.raises(PlanMoved, match=r"revision 1.*made for revision 0"):
        store.promotions.begin(lease, Environment("prod"), environment("prod", snapshot("s.a")))


def test_nothing_is_promoted_over_an_unfinished_promotion(store: StateStore) -> None:
    store.tables.register(snapshot("s.a").table, ID)
    with store.leases.hold("prod", "ann") as lease:
        promotion = store.promotions.begin(lease, Environment("prod"), environment("prod", snapshot("s.a")))

        with pytest.raises(PlanMoved):
            store.promotions.begin(lease, promotion.new, environment("prod", snapshot("s.a")))


def test_a_table_that_is_gone_is_named_and_nothing_is_written(store: StateStore) -> None:
    with store.leases.hold("prod", "ann") as lease, pytest.raises(Refused, match=r"mergeplan__s\.s__a__v1` is gone"):
        store.promotions.begin(lease, Environment("prod"), environment("prod", snapshot("s.a")))

    assert store.environments.all() == ()
    assert store.environments.history() == ()


def test_no_step_is_recorded_without_the_lease(store: StateStore) -> None:
    store.tables.register(snapshot("s.a").table, ID)
    with store.leases.hold("prod", "ann") as lease:
        promotion = store.promotions.begin(lease, Environment("prod"), environment("prod", snapshot("s.a")))

    with pytest.raises(LeaseHeld):
        store.promotions.record_steps(lease, promotion, ["s.a"])
    with pytest.raises(LeaseHeld):
        store.promotions.finish(lease, promotion)
    with pytest.raises(LeaseHeld):
        store.promotions.roll_back(lease, promotion)
    assert store.promotions.pending() == (replace(promotion, new=store.environments.get("prod")),)


# plans and words


def test_a_saved_plan_comes_back(store: StateStore) -> None:
    store.plans.save("p1", "pr_7", tables=["s.b", "s.a"], options={"start": "2026-01-01"})
    store.plans.close("p1", "applied", {"models": [1]})

    plan = store.plans.get("p1")

    assert (plan.environment, plan.status, plan.tables) == ("pr_7", "applied", ("s.a", "s.b"))
    assert (plan.options, plan.components, plan.result) == ({"start": "2026-01-01"}, {}, {"models": [1]})
    assert store.plans.since(plan.created_at) == (plan,)
    assert store.plans.since(plan.created_at + timedelta(seconds=1)) == ()


def test_an_unknown_plan_is_told(store: StateStore) -> None:
    with pytest.raises(RequestError, match="no plan `p9`"):
        store.plans.get("p9")


def test_the_last_word_about_a_change_counts(store: StateStore) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    word = Override("s.a", Category.BREAKING, "old", "new", "ann", at)
    store.overrides.record("pr_7", word)
    store.overrides.record("pr_7", replace(word, category=Category.NON_BREAKING))
    store.overrides.record("pr_7", replace(word, new="newer"))
    store.overrides.record("pr_8", word)

    assert store.overrides.list_for("pr_7") == (
        replace(word, category=Category.NON_BREAKING),
        replace(word, new="newer"),
    )
    store.overrides.forget("pr_7", "s.a")
    assert store.overrides.list_for("pr_7") == ()
    assert store.overrides.list_for("pr_8") == (word,)
