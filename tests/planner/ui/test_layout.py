"""The layout of boxes and lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mergeplan.planner.ui.layout import Size, lay_out

SIZE = Size(200, 40, 50, 12, 4)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]]]:
    """Boxes, and edges that may lead against their order."""
    keys = [f"m{number}" for number in range(draw(st.integers(1, 25)))]
    pairs = st.tuples(st.sampled_from(keys), st.sampled_from(keys)).filter(lambda pair: pair[0] != pair[1])
    return keys, draw(st.lists(pairs, max_size=60, unique=True)) if len(keys) > 1 else []


@given(graphs())
def test_no_two_boxes_overlap_and_all_are_inside(graph: tuple[list[str], list[tuple[str, str]]]) -> None:
    layout = lay_out(*graph, SIZE)

    spots = list(layout.spots.values())
    assert layout.spots.keys() == set(graph[0])
    assert layout.paths.keys() == set(graph[1])
    for number, one in enumerate(spots):
        assert 0 <= one.x <= layout.width - SIZE.width
        assert 0 <= one.y <= layout.height - SIZE.height
        for other in spots[number + 1 :]:
            assert abs(one.x - other.x) >= SIZE.width or abs(one.y - other.y) >= SIZE.height


@given(graphs())
def test_a_line_leads_from_left_to_right(graph: tuple[list[str], list[tuple[str, str]]]) -> None:
    keys, edges = graph
    layout = lay_out(keys, edges, SIZE)

    for parent, child in edges:
        if keys.index(parent) < keys.index(child):
            assert layout.spots[parent].x < layout.spots[child].x


def test_a_chain_is_one_row_and_a_long_line_goes_around_the_boxes_between() -> None:
    layout = lay_out(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")], SIZE)

    a, b, c = (layout.spots[name] for name in "abc")
    assert a.x < b.x < c.x
    height = int(layout.paths["a", "c"].partition("H")[0].rpartition(" ")[2])  # where it passes the column of `b`
    assert not b.y <= height <= b.y + SIZE.height


def test_boxes_without_a_line_stand_in_rows() -> None:
    layout = lay_out([f"m{number}" for number in range(9)], [], SIZE)

    assert len({spot.y for spot in layout.spots.values()}) == 3
