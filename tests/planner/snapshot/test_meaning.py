"""Differences between the rows of a table and those that its query returns."""

from dataclasses import replace

import pytest

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column
from tests.planner.building import change_of, external, model, project


@pytest.mark.parametrize("kind", [Kind.VIEW, Kind.EMBEDDED])
@pytest.mark.parametrize(("type_", "recomputed"), [("char(5)", True), ("varchar(5)", False), ("string", False)])
def test_a_reader_is_computed_again_when_a_view_with_char_becomes_a_table(
    kind: Kind, type_: str, recomputed: bool
) -> None:
    """A table has STRING in its place, and Spark pads only texts that it compares with a CHAR."""
    raw = replace(external("s.raw", "c"), columns=(Column("c", type_),))
    reader = model("s.reader", "SELECT COUNT(*) AS n FROM s.part WHERE c = 'ab'")
    view, table = (project(raw, model("s.part", "SELECT c FROM s.raw", of), reader) for of in (kind, Kind.FULL))

    assert change_of(view, table)["s.reader"].recomputed == recomputed
    assert change_of(table, view)["s.reader"].recomputed == recomputed
