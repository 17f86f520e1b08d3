"""Which boxes the lineage draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.errors import RequestError
from mergeplan.planner.project.lineage import Node
from mergeplan.planner.ui import graph_view
from mergeplan.planner.ui.graph_view import CatalogGraph, GraphView, GraphWish, column_graph, graph_of_catalog

Make = Callable[..., Catalog]
WIDE = {f"m{n}": f"MODEL (name mart.m{n}, kind FULL);\nSELECT total FROM shop.total" for n in range(4)}
OUTSIDE = {"apart": "MODEL (name shop.apart, kind FULL);\nSELECT id FROM raw.events"}


@pytest.fixture(name="graph")
def _graph(catalog: Make) -> CatalogGraph:
    return graph_of_catalog(catalog(**WIDE, **OUTSIDE))


def box_names(view: GraphView) -> list[str]:
    return [f"[{box.name}]" if box.is_folded else box.name for box in view.boxes]


def test_without_a_wish_every_model_and_table_of_others_is_drawn(graph: CatalogGraph) -> None:
    view = graph.view(GraphWish())

    assert set(box_names(view)) == {"shop.apart", "shop.items", "shop.daily", "shop.total", "shop.shown", *(
        f"mart.m{n}" for n in range(4))}  # fmt: skip
    assert ("shop.items", "shop.daily") in view.edges


def test_a_focus_shows_so_many_steps_each_way(graph: CatalogGraph) -> None:
    near = graph.view(GraphWish("shop.total", up=1, down=0))
    outside = graph.view(GraphWish("raw.events"))

    assert [(box.name, box.steps) for box in near.boxes] == [("shop.daily", -1), ("shop.total", 0)]
    assert box_names(outside) == ["raw.events", "shop.apart"]


def test_a_selector_narrows_the_models(graph: CatalogGraph) -> None:
    assert box_names(graph.view(GraphWish(selector="+shop.daily & ^shop.items"))) == ["shop.daily"]
    assert set(box_names(graph.view(GraphWish("shop.total", selector="mart.*")))) == {f"mart.m{n}" for n in range(4)}


def test_schemas_are_folded_and_opened(graph: CatalogGraph) -> None:
    folded = graph.view(GraphWish(fold="all"))
    opened = graph.view(GraphWish(fold="all", opened=("mart",)))

    assert box_names(folded) == ["[shop]", "[mart]"]
    assert folded.edges == (("\0shop", "\0mart"),)
    assert box_names(opened) == ["[shop]", *(f"mart.m{n}" for n in range(4))]


def test_where_there_is_too_much_the_largest_schemas_are_folded(
    graph: CatalogGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_view, "BOXES_MOST", 5)

    assert box_names(graph.view(GraphWish()))[0] == "[shop]"
    assert "shop.total" in box_names(graph.view(GraphWish("shop.total")))
    assert graph.view(GraphWish(fold="none")).left_out == 4


def test_what_names_nothing_is_refused(graph: CatalogGraph) -> None:
    for wish in (GraphWish("shop.none"), GraphWish(selector="nothing.*"), GraphWish(selector="(")):
        with pytest.raises(RequestError):
            graph.view(wish)


def test_the_lineage_of_a_column_has_only_what_it_is_made_from_and_what_reads_it(catalog: Make) -> None:
    made = catalog(**WIDE)
    view = column_graph(made).view(graph_of_catalog(made), Node("shop.daily", "price"), 2, 2)

    assert view.columns["shop.items"] == ("price",)
    assert view.columns["mart.m0"] == ("total",)
    assert "shop.apart" not in view.columns
    with pytest.raises(RequestError, match="no column `prices`"):
        column_graph(made).view(graph_of_catalog(made), Node("shop.daily", "prices"), 2, 2)


def test_the_focus_is_never_folded(graph: CatalogGraph) -> None:
    view = graph.view(replace(GraphWish("mart.m1"), fold="all"))

    assert box_names(view) == ["[shop]", "mart.m1"]
