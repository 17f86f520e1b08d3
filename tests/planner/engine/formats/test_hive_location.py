"""Where a table's rows lie, read off what the catalog says of it."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.formats.hive_files import HiveLocation
from mergeplan.planner.engine.spark.described import Described

BASE = "file:/wh/t"
OTHER = "file:/wh/a table with a password=x in its path"


def hive_location(location: str, base: str = "") -> HiveLocation:
    properties = f"[mergeplan.place={base.encode().hex()},owner=ann]" if base else ""
    return HiveLocation(Described({"Location": location, "Table Properties": properties}, {}))


def test_a_batch_lies_below_the_place_where_the_table_was_created() -> None:
    batch = hive_location(f"{BASE}/mergeplan-00000000000000ab0123456789abcdef")

    assert (batch.base, batch.batch_id, batch.has_others_files) == (BASE, "00000000000000ab", False)


def test_a_table_on_anothers_files_knows_its_own_place_and_has_no_batch_of_its_own() -> None:
    taken = hive_location("file:/wh/old/mergeplan-00000000000000ab0123456789abcdef", BASE)

    assert (taken.base, taken.batch_id, taken.has_others_files) == (BASE, "", True)


@pytest.mark.parametrize("place", [BASE, f"{BASE}/mergeplan-{'0' * 32}", OTHER, f"{BASE}2/mergeplan-{'0' * 32}"])
def test_a_location_that_a_property_kept_is_found_again(place: str) -> None:
    kept = hive_location(place, BASE).as_property

    assert hive_location(f"{BASE}/mergeplan-{'1' * 32}", BASE).resolve_property(kept) == place
    assert "password" not in kept
