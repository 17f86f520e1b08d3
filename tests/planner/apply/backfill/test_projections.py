"""A query with a star reads the columns by which it was judged, and none that only its table has."""

from __future__ import annotations

import pytest

from mergeplan.planner.apply.backfill.layout import Layout
from tests.planner.building import NOW, external, model, project, promote


@pytest.mark.parametrize(
    ("query", "is_projected"),
    [
        ("SELECT *, 'a table' AS kind FROM s.part", True),
        ("SELECT * FROM s.part -- the whole table", True),
        ("SELECT *, id AS table FROM s.part", True),
        ("SELECT * FROM s.part NATURAL JOIN s.raw /* _metadata */", True),
        ("SELECT *, _metadata.file_name AS file FROM s.part", False),
    ],
)
def test_a_word_in_a_text_lets_no_query_see_hidden_columns(query: str, is_projected: bool) -> None:
    part = model("s.part", "SELECT id FROM s.raw", partitioned_by=("bucket(4, id)",))
    environment, _ = promote(project(external("s.raw", "id x"), part, model("s.reader", query)))
    snapshots = environment.snapshots
    layout = Layout(snapshots, {"s.reader": ("s.part",)}, NOW)

    read = layout.query(snapshots["s.reader"].model, None)

    assert (f"(SELECT `id` FROM `mergeplan__s`.`{snapshots['s.part'].table.split('.')[1]}`)" in read) is is_projected
