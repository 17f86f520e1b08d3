"""Models in Spark's own catalog and in one of Iceberg's, from their first plan to the janitor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planner.lakehouse import steps_of

SHOWN = {
    "jdbc": ([10, 20], [10, 20], [20, 40], [11, 21], [11, 21], [22, 42]),
    "hadoop": ([10, 20], [10, 10, 20, 20], [30, 60], [11, 21], [11, 11, 21, 21], [33, 63]),
}


@pytest.mark.prove
@pytest.mark.parametrize("kind", SHOWN)
def test_models_in_two_catalogs_are_built_edited_promoted_rolled_back_and_swept(kind: str, tmp_path: Path) -> None:
    steps = dict(steps_of("tests.planner.two_catalogs", kind, str(tmp_path / "shop")))
    old, new = list(SHOWN[kind][:3]), list(SHOWN[kind][3:])
    assert (steps["edited"][1:], steps["dev"], steps["promoted"]) == (old, new[1], [0, *new])
    assert (steps["kept"], steps["rolled back"]) == (["hand", "hand"], [0, *old])
    assert {name.rpartition("__")[0] for name in steps["dropped"]} > {"lake.mergeplan__shop.shop__facts"}
    assert len(steps["left"]) == 2
    assert [name.rpartition(".")[2] for name in steps["cleaned"]] == sorted(steps["left"])
    assert sorted(steps["still"]) == [1, 2]
