"""The state forgets what nobody can ask for, and what somebody can ask for is answered as before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mergeplan.planner.state import tables as t
from mergeplan.planner.state.environments import Cause, HistoryAction
from mergeplan.planner.state.retention import Forgotten
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot
from tests.planner.state.test_state import promote

pytestmark = pytest.mark.usefixtures("state_url")  # on both databases
DAY = timedelta(days=1)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def history_of(store: StateStore, revisions: int, name: str = "prod") -> None:
    """An environment that got another version of one of its two models every day."""
    for number in range(1, revisions + 1):
        promote(store, environment(name, snapshot("s.a", f"v{number}"), snapshot("s.b")))
        _date(store, name, number)


def _date(store: StateStore, name: str, revision: int) -> None:
    mine = (t.environment_history.c.environment == name, t.environment_history.c.revision == revision)
    day = FIRST + revision * DAY
    with store.database.writing() as tx:
        tx.execute(tx.update(t.environment_history).where(*mine).values(at=day))
        tx.execute(tx.update(t.promotions).where(t.promotions.c.new_revision == revision).values(ended_at=day))


def revisions(store: StateStore, name: str = "prod") -> list[int]:
    return [row.revision for row in store.environments.history(name)]


def test_revisions_that_were_replaced_before_are_forgotten_and_the_others_are_read_as_they_were(
    store: StateStore,
) -> None:
    history_of(store, 6)
    before = {number: store.environments.get_revision("prod", number).snapshots for number in (4, 5, 6)}

    done = store.retention.forget(FIRST + 4.5 * DAY)

    assert (done.revisions, revisions(store)) == (3, [6, 5, 4])
    assert {number: store.environments.get_revision("prod", number).snapshots for number in before} == before
    assert promote(store, environment("prod", snapshot("s.a", "v7"), snapshot("s.b"))).revision == 7


def test_nothing_that_is_in_force_is_forgotten_however_old_it_is(store: StateStore) -> None:
    history_of(store, 1)

    done = store.retention.forget(FIRST + 900 * DAY)

    assert (done.revisions, revisions(store)) == (0, [1])
    assert store.environments.get("prod").snapshots["s.a"].version == "v1"


def test_what_a_pending_promotion_would_go_back_to_stays(store: StateStore) -> None:
    history_of(store, 2)
    old, new = store.environments.get("prod"), environment("prod", snapshot("s.b"))
    with store.leases.hold("prod", "ann") as lease:
        store.promotions.begin(lease, old, new, Cause())

    store.retention.forget(datetime.now(UTC) + DAY)

    (pending,) = store.promotions.pending()
    assert pending.old.snapshots == old.snapshots
    assert revisions(store) == [3, 2]


def test_a_revision_that_was_undone_replaces_nothing(store: StateStore) -> None:
    history_of(store, 1)
    with store.leases.hold("prod", "ann") as lease:
        old, new = store.environments.get("prod"), environment("prod", snapshot("s.b"))
        store.promotions.roll_back(lease, store.promotions.begin(lease, old, new, Cause()))
    _date(store, "prod", 2)

    store.retention.forget(FIRST + 30 * DAY)

    assert store.environments.get("prod").snapshots.keys() == {"s.a", "s.b"}


def test_an_environment_that_was_dropped_counts_on_and_so_does_the_generation(store: StateStore) -> None:
    history_of(store, 3, "pr_7")
    with store.leases.hold("pr_7", "ann") as lease:
        old = store.environments.get("pr_7")
        gone = store.promotions.begin(lease, old, environment("pr_7"), Cause(action=HistoryAction.DROPPED))
        store.promotions.finish(lease, gone)
    _date(store, "pr_7", 4)
    before = store.environments.generation()

    done = store.retention.forget(FIRST + 900 * DAY)

    assert (done.revisions, revisions(store, "pr_7")) == (3, [4])
    assert store.environments.generation() == before
    assert promote(store, environment("pr_7", snapshot("s.a"))).revision == 5
    assert store.environments.generation() > before


def test_a_snapshot_is_forgotten_when_no_revision_names_it_and_its_table_is_gone(store: StateStore) -> None:
    history_of(store, 4)
    store.tables.forget([snapshot("s.a", "v1").table])

    done = store.retention.forget(FIRST + 5 * DAY)

    assert (done.revisions, done.snapshots) == (3, 1)
    assert {entry.version for entry in store.snapshots.all() if entry.name == "s.a"} == {"v2", "v3", "v4"}


def test_plans_and_the_journal_go_with_their_time(store: StateStore) -> None:
    history_of(store, 2)
    store.plans.save("old", "dev")
    store.plans.save("new", "dev")
    with store.database.writing() as tx:
        tx.execute(tx.update(t.plans).where(t.plans.c.id == "old").values(created_at=FIRST))

    done = store.retention.forget(FIRST + 1.5 * DAY)

    assert (done.plans, done.promotions) == (1, 1)
    assert [plan.id for plan in store.plans.since(FIRST - DAY)] == ["new"]


def test_when_a_model_restated_itself_last_is_not_forgotten(store: StateStore) -> None:
    history_of(store, 1)
    table = snapshot("s.a", "v1").table
    for day in (3, 9):
        store.restatements.begin(f"r{day}", "prod", {}, leases=(), by_itself=(table, FIRST + day * DAY))

    done = store.retention.forget(datetime.now(UTC) + DAY)

    assert done == Forgotten(promotions=1, plans=1)
    assert store.restatements.last_restated("prod")["s.a"] == FIRST + 9 * DAY


def test_a_model_in_a_new_table_restated_itself_when_its_former_one_did(store: StateStore) -> None:
    """A merge between a tick and its run would else put off the restatement to the next tick."""
    history_of(store, 3)
    assert store.restatements.last_restated("prod") == {"s.a": FIRST + DAY, "s.b": FIRST + DAY}

    table = snapshot("s.a", "v1").table
    store.restatements.begin("r", "prod", {}, leases=(), by_itself=(table, FIRST + 2 * DAY))

    assert store.restatements.last_restated("prod") == {"s.a": FIRST + 2 * DAY, "s.b": FIRST + DAY}
