import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.graph import graph_of, update_graph
from tests.planner.building import model, project

CHAIN = project(
    model("s.a", "SELECT 1 AS x"),
    model("s.b", "SELECT x FROM s.a", tags=("daily",)),
    model("s.c", "SELECT x FROM s.b"),
)


def test_parents_come_before_children() -> None:
    assert graph_of(CHAIN).order == ("s.a", "s.b", "s.c")


def test_models_that_are_as_deep_are_in_alphabetical_order() -> None:
    reads = {"s.z": "1 AS x", "s.y": "x FROM s.z", "s.x": "x FROM s.y, s.z", "s.b": "x FROM s.z", "s.a": "x FROM s.x"}
    models = project(*(model(name, f"SELECT {text}") for name, text in reads.items()), model("s.c", "SELECT 1 AS x"))

    assert graph_of(models).order == ("s.c", "s.z", "s.b", "s.y", "s.x", "s.a")


def test_a_cycle_is_drawn_from_its_first_model_in_reading_direction() -> None:
    ring = project(
        model("s.a", "SELECT x FROM s.b"), model("s.b", "SELECT x FROM s.c"), model("s.c", "SELECT x FROM s.a")
    )

    with pytest.raises(ProjectError, match=r"s\.a -> s\.b -> s\.c -> s\.a") as caught:
        graph_of(ring)

    assert caught.value.place is not None
    assert caught.value.place.path == "models/s.a.sql"


def test_a_graph_is_updated_for_the_models_that_changed() -> None:
    before = graph_of(project(model("db.a"), model("db.b", "SELECT * FROM db.a"), model("db.c", "SELECT 1 AS x")))
    same = project(model("db.a"), model("db.b", "SELECT x FROM db.a"), model("db.c", "SELECT 1 AS x"))
    other = project(model("db.a"), model("db.b", "SELECT * FROM db.c"), model("db.c", "SELECT 1 AS x"))
    fewer = project(model("db.a"), model("db.b", "SELECT * FROM db.a"))

    for models, changed in ((same, {"db.b"}), (other, {"db.b"}), (fewer, set[str]())):
        assert update_graph(before, models, changed) == graph_of(models)
        assert update_graph(before, models, changed).children == graph_of(models).children


def test_an_updated_graph_has_no_cycle() -> None:
    before = graph_of(project(model("db.a"), model("db.b", "SELECT * FROM db.a")))
    circle = project(model("db.a", "SELECT * FROM db.b"), model("db.b", "SELECT * FROM db.a"))

    with pytest.raises(ProjectError, match="cycle"):
        update_graph(before, circle, {"db.a"})
