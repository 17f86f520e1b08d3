import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.graph import graph_of
from tests.planner.building import model, project

CHAIN = project(
    model("s.a", "SELECT 1 AS x"),
    model("s.b", "SELECT x FROM s.a", tags=("daily",)),
    model("s.c", "SELECT x FROM s.b"),
)


def test_parents_come_before_children() -> None:
    assert graph_of(CHAIN).order == ("s.a", "s.b", "s.c")


def test_a_cycle_is_drawn_from_its_first_model_in_reading_direction() -> None:
    ring = project(
        model("s.a", "SELECT x FROM s.b"), model("s.b", "SELECT x FROM s.c"), model("s.c", "SELECT x FROM s.a")
    )

    with pytest.raises(ProjectError, match=r"s\.a -> s\.b -> s\.c -> s\.a") as caught:
        graph_of(ring)

    assert caught.value.place is not None
    assert caught.value.place.path == "models/s.a.sql"
