"""What each kind can do is one row of a table; these are the laws that its rows keep."""

from __future__ import annotations

import pytest

from mergeplan.planner.model.kind import TRAITS, Fill, Kept, Kind


def test_every_kind_has_its_row_of_the_table() -> None:
    assert list(TRAITS) == list(Kind)


@pytest.mark.parametrize("kind", Kind)
def test_only_what_lies_in_a_table_is_filled(kind: Kind) -> None:
    assert kind.is_stored == (kind.fill is not Fill.NOTHING)
    assert [kind.is_stored, kind.is_view, kind.is_embedded, kind.is_external].count(True) == 1
    assert kind.has_view == (kind.traits.kept in (Kept.TABLE, Kept.VIEW))


@pytest.mark.parametrize("kind", Kind)
def test_what_keeps_its_history_depends_on_the_order_of_its_batches(kind: Kind) -> None:
    """A table that can be built anew may also be filled in any order; the other way round a rebuild loses rows."""
    assert not kind.keeps_history or kind.is_order_dependent
    assert not kind.is_order_dependent or kind.is_incremental
    assert not (kind.is_by_time and kind.is_order_dependent)


def test_the_kinds_that_are_filled_interval_by_interval() -> None:
    assert {kind for kind in Kind if not kind.is_incremental} == {"SEED", "VIEW", "FULL", "EMBEDDED", "EXTERNAL"}
    assert {kind for kind in Kind if kind.keeps_history} == {
        "INCREMENTAL_UNMANAGED",
        "SCD_TYPE_2_BY_TIME",
        "SCD_TYPE_2_BY_COLUMN",
    }
    assert [kind for kind in Kind if not kind.has_query] == ["SEED", "EXTERNAL"]
