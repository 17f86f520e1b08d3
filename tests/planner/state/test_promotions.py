"""A view's name belongs to one environment, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from mergeplan.planner.errors import Refused
from mergeplan.planner.naming import Naming, Suffix
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.promotions import Promotion
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot
from tests.planner.state.test_state import ID

pytestmark = pytest.mark.usefixtures("state_url")  # on both databases
TABLE = Naming(Suffix.TABLE)
ROUNDS = 20


def shown_in(name: str, model: str) -> Environment:
    return replace(environment(name, snapshot(model)), naming=TABLE)


def begin(store: StateStore, new: Environment) -> Promotion | Refused:
    """Begin a promotion, or return why not."""
    for table in [version.table for version in new.snapshots.values()]:
        store.tables.register(table, ID)
    with store.leases.hold(new.name, "test", wait=60) as lease:
        try:
            return store.promotions.begin(lease, store.environments.get(new.name), new)
        except Refused as error:
            return error


def finish(store: StateStore, promotion: Promotion | Refused, *, back: bool = False) -> None:
    assert isinstance(promotion, Promotion)
    with store.leases.hold(promotion.environment, "test") as lease:
        (store.promotions.roll_back if back else store.promotions.finish)(lease, promotion)


@pytest.mark.parametrize("done", [True, False])
def test_a_name_that_another_environment_has_is_refused(store: StateStore, *, done: bool) -> None:
    first = begin(store, shown_in("prod", "s.t__dev"))
    if done:
        finish(store, first)

    refused = begin(store, shown_in("dev", "s.t"))

    assert str(refused).startswith(
        "`s.t__dev` is the view of `s.t__dev` in `prod`, and the view of `s.t` is to stand there."
    )
    assert not store.environments.get("dev").exists


def test_a_name_stays_taken_until_it_is_certain_that_its_view_goes(store: StateStore) -> None:
    finish(store, begin(store, shown_in("prod", "s.t__dev")))
    leaves = begin(store, shown_in("prod", "s.other"))

    assert isinstance(begin(store, shown_in("dev", "s.t")), Refused)
    finish(store, leaves)
    assert isinstance(begin(store, shown_in("dev", "s.t")), Promotion)


def test_a_view_that_an_environment_has_already_asks_nothing(store: StateStore) -> None:
    finish(store, begin(store, shown_in("dev", "s.t")))

    assert isinstance(begin(store, shown_in("dev", "s.t")), Promotion)


def test_of_two_promotions_that_begin_at_one_moment_one_gets_the_name(store: StateStore) -> None:
    gate = threading.Barrier(2)

    def begin_at_the_gate(new: Environment) -> Promotion | Refused:
        gate.wait()
        return begin(store, new)

    for number in range(ROUNDS):
        pair = shown_in(f"n{number}", "s.t__a"), shown_in(f"a__n{number}", "s.t")
        with ThreadPoolExecutor(2) as pool:
            begun = list(pool.map(begin_at_the_gate, pair))

        assert sorted(type(result).__name__ for result in begun) == ["Promotion", "Refused"]
