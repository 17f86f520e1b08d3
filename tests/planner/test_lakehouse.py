"""One table of each format from its first plan to a rollback, in a Spark of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.model.table_format import TABLE_FORMATS
from tests.planner.lakehouse import steps_of

OLD, NEW = [[1, 10], [2, 20]], [[1, 11], [2, 21]]


@pytest.mark.prove
@pytest.mark.parametrize("form", TABLE_FORMATS)
def test_a_table_is_built_edited_promoted_and_rolled_back(form: str, tmp_path: Path) -> None:
    steps = steps_of("tests.planner.lakehouse", form, str(tmp_path / "shop"))
    assert steps[:2] == [["built", 1, OLD], ["edited", 1, OLD]]
    assert steps[2:4] == [["promoted", 0, NEW], ["rolled back", 0, OLD]]
    assert {(name, provider) for name, _, provider in steps[4:]} == {("prod", form), ("dev", form)}
