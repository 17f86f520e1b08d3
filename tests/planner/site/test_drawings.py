"""The drawings: boxes that never lie on each other, lines from left to right, and a calendar of what is held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

from mergeplan.planner.catalog.catalog import Catalog, CatalogModel, DeployedTable
from mergeplan.planner.intervals import Cron, Interval
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.site.calendar_strip import draw_strip
from mergeplan.planner.site.neighbourhood import FAR_MOST, NEAR_MOST, WIDTH, draw_neighbourhood

Make = Callable[..., Catalog]
NOW = datetime(2026, 11, 27, 5, tzinfo=UTC)


def graph(*edges: str) -> dict[str, CatalogModel]:
    """Models from edges such as `a>b`: b reads a."""
    pairs = [tuple(edge.split(">")) for edge in edges]
    names = dict.fromkeys(name for pair in pairs for name in pair)
    return {
        name: CatalogModel(
            Model(name, Kind.FULL, "m.sql", 1, ""),
            parents=tuple(a for a, b in pairs if b == name),
            readers=tuple(b for a, b in pairs if a == name),
        )
        for name in names
    }


def strip_model(held: list[tuple[int, int]], missing: list[tuple[int, int]], cron: str = "@daily") -> CatalogModel:
    """A model whose table holds and lacks the days from and to so many days ago."""
    midnight = NOW.replace(hour=0)

    def spans(pairs: list[tuple[int, int]]) -> tuple[Interval, ...]:
        return tuple(Interval(midnight - timedelta(a), midnight - timedelta(b)) for a, b in pairs)

    declared = Model("s.m", Kind.INCREMENTAL_BY_TIME_RANGE, "m.sql", 1, "", cron=Cron(cron))
    return CatalogModel(declared, deployed=DeployedTable("s.m", "t", "v", spans(held), spans(missing)))


def test_two_steps_are_drawn_each_way_and_every_line_leads_right() -> None:
    models = graph("a>b", "b>c", "a>c", "c>d", "d>e", "e>f", "z>a")
    drawn = draw_neighbourhood(models, "c")

    at = {box.name: box.x for box in drawn.boxes}
    assert set(at) == {"a", "b", "c", "d", "e", "z"}
    assert all(at[parent] + WIDTH <= at[n] for n in at for parent in models[n].parents if parent in at)


def test_boxes_never_lie_on_each_other() -> None:
    edges = (
        [f"p{n}>x" for n in range(20)]
        + [f"x>r{n}" for n in range(30)]
        + [f"r{n}>q{m}" for n in range(9) for m in range(9)]
    )
    drawn = draw_neighbourhood(graph(*edges), "x")

    assert all(abs(a.x - b.x) >= WIDTH or abs(a.y - b.y) >= drawn.box_height for a, b in combinations(drawn.boxes, 2))
    assert all(0 <= box.x <= drawn.width - WIDTH and 0 <= box.y <= drawn.height for box in drawn.boxes)


def test_of_many_neighbours_some_are_drawn_and_the_rest_counted() -> None:
    drawn = draw_neighbourhood(graph(*(f"x>r{n}" for n in range(30)), *(f"r0>q{n}" for n in range(40))), "x")

    labels = [box.label for box in drawn.boxes if not box.name]
    assert set(labels) == {f"and {40 - FAR_MOST} more", f"and {30 - NEAR_MOST} more"}


def test_a_model_that_reads_itself_or_stands_alone_is_drawn() -> None:
    assert [box.name for box in draw_neighbourhood(graph("x>x"), "x").boxes] == ["x"]
    assert draw_neighbourhood({"x": replace(graph("x>y")["x"], readers=())}, "x").curves == ()


def test_a_table_that_no_file_declares_is_a_box_without_a_page(catalog: Make) -> None:
    made = catalog(apart="MODEL (name shop.apart, kind FULL);\nSELECT x FROM raw.stuff")
    drawn = draw_neighbourhood(made.models, "shop.apart")

    assert [(box.name, box.kind) for box in drawn.boxes if box.name != "shop.apart"] == [("raw.stuff", "no model")]


def test_each_day_is_held_missing_or_neither() -> None:
    strip = draw_strip(strip_model([(100, 20), (15, 2)], [(20, 15), (2, 0)]), NOW)

    assert strip is not None
    cells = {state: sum(b.width * b.height // 169 for b in strip.blocks if b.state == state) for state in strip.states}
    assert (cells, strip.shows) == ({"held": 80 + 13, "missing": 5 + 2}, "one day")


def test_a_day_of_which_some_hours_are_held_is_a_part() -> None:
    midnight = NOW.replace(hour=0)
    model = strip_model([(3, 1)], [])
    assert model.deployed
    held = (*model.deployed.held[:-1], Interval(midnight - timedelta(3), midnight + timedelta(hours=4)))
    strip = draw_strip(replace(model, deployed=replace(model.deployed, held=held)), NOW)

    assert strip is not None
    assert strip.states == ("held", "part")


def test_months_have_a_column_a_year() -> None:
    strip = draw_strip(strip_model([(700, 60)], [(57, 27)], "@monthly"), NOW)

    assert strip is not None
    assert (strip.shows, [label.text for label in strip.labels][:2]) == ("one month", ["Jan", "Apr"])
    assert "2024" in [label.text for label in strip.labels]


def test_a_table_that_is_written_whole_has_no_calendar() -> None:
    model = strip_model([(3, 1)], [])

    assert draw_strip(replace(model, declared=Model("s.m", Kind.FULL, "m.sql", 1, "")), NOW) is None
    assert draw_strip(replace(model, deployed=None), NOW) is None
    assert draw_strip(strip_model([], []), NOW) is None
