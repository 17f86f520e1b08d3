"""Which tables nobody but mergeplan writes."""

from __future__ import annotations

from mergeplan.planner.state.physical_tables import are_ours
from mergeplan.planner.state.store import StateStore


def test_a_table_is_ours_when_all_that_it_stands_on_are(store: StateStore) -> None:
    """One that was adopted stands on files of others, which may be overwritten."""
    for name, reads in (("s.a", []), ("s.b", ["s.a"]), ("s.adopted", ["raw.t"]), ("s.after", ["s.b", "s.adopted"])):
        store.tables.register(name, (), reads)
    known = store.tables.all()

    assert are_ours(known, ["s.a", "s.b"])
    assert not any(are_ours(known, ["s.a", name]) for name in ("s.adopted", "s.after", "raw.t"))


def test_a_table_that_is_to_be_dropped_is_not_looked_at(store: StateStore) -> None:
    store.tables.register("s.a", ())
    with store.leases.hold("table:s.a", "test") as lease:
        assert store.tables.mark_garbage("s.a", lease=lease, seen_generation=0)

    assert not are_ours(store.tables.all(), ["s.a"])
