"""Every revision is read as it was promoted, and history grows by what changed."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeplan.planner.state import maps, tables
from mergeplan.planner.state.maps import EnvironmentMap, encode_map, is_whole, read_maps
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot
from tests.planner.state.test_state import promote

NAMES = st.sampled_from([f"s.m{number}" for number in range(6)])
MAPS = st.builds(
    lambda snapshots, views: EnvironmentMap(snapshots, frozenset(views) & snapshots.keys()),
    st.dictionaries(NAMES, st.sampled_from(["a", "b", "c"])),
    st.frozensets(NAMES),
)


@given(st.lists(MAPS, min_size=1, max_size=12))
def test_what_is_written_revision_by_revision_is_read_the_same(history: list[EnvironmentMap]) -> None:
    before = [None, *history]
    rows = [encode_map(new, old, number) for number, (new, old) in enumerate(zip(history, before, strict=False), 1)]

    assert list(read_maps(json.loads(json.dumps(rows)))) == history


def maps_in_store(store: StateStore) -> list[Mapping[str, object]]:
    history = tables.environment_history
    with store.environments._database.reading() as tx:
        return [row.snapshots for row in tx.execute(tx.select(history).order_by(history.c.revision))]


@pytest.mark.usefixtures("state_url")
def test_many_promotions_of_one_model_keep_the_others_once(store: StateStore) -> None:
    others = [snapshot(f"s.m{number}") for number in range(60)]
    new = environment("prod", *others, snapshot("s.a", "v0"))
    for number in range(6):
        old = promote(store, new)
        new = environment("prod", *others, snapshot("s.a", f"v{number + 1}"))

    sizes = [len(json.dumps(stored_map)) for stored_map in maps_in_store(store)]

    assert sizes[0] > 20 * max(sizes[1:])
    assert [store.environments.get_revision("prod", n).snapshots["s.a"].version for n in (1, 4, 6)] == [
        "v0",
        "v3",
        "v5",
    ]
    assert store.environments.get_revision("prod", 6).snapshots == old.snapshots


@pytest.mark.usefixtures("state_url")
def test_a_whole_map_comes_again_and_is_all_that_is_read(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "WHOLE", 4)
    for number in range(10):
        promote(store, environment("prod", snapshot("s.a", f"v{number}"), snapshot("s.b")))

    assert [is_whole(stored_map) for stored_map in maps_in_store(store)] == [n % 4 == 1 for n in range(1, 11)]
    versions = [store.environments.get_revision("prod", n).snapshots["s.a"].version for n in range(1, 11)]
    assert versions == [f"v{number}" for number in range(10)]
    assert [len(row.snapshots) for row in store.environments.history("prod")] == [2] * 10
