"""Tables that are adopted, as lines."""

from __future__ import annotations

from mergeplan.planner.cli.texts.adopt_text import adoption_text
from mergeplan.planner.contract.adoption import AdoptedTable, AdoptionView


def test_only_time_since_the_epoch_is_all() -> None:
    tables = [
        AdoptedTable(model="a.b", table="c.d", fits=True, holds=((start, "2026-01-01"),))
        for start in ("1970-01-01", "1970-06-01")
    ]
    lines = [line for line in adoption_text(AdoptionView(tables=tuple(tables))) if "counts as" in line]

    assert lines == ["  counts as computed: all", "  counts as computed: [1970-06-01, 2026-01-01)"]
