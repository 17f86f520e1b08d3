"""The graph of a plan's models, laid out in columns from what is read to what reads it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mergeplan.bot.report.markdown import NAMES, category_of
from mergeplan.planner.contract.plan import ModelChange
from mergeplan.planner.site.drawing import Drawing, Grid
from mergeplan.planner.wording import shorten_name

WIDTH, HEIGHT, GAP_X, GAP_Y, EDGE = 226, 46, 64, 16, 12
GRID = Grid(WIDTH, HEIGHT, GAP_X)
NAME_MOST = 27  # characters that fit into a box
DRAWN_MOST = 150  # more than this could not be read


@dataclass(frozen=True)
class Box:
    model: ModelChange
    x: int
    y: int
    label: str
    category: str
    kind: str


def draw_graph(models: Sequence[ModelChange]) -> Drawing[Box] | None:
    """Draw the graph of these models; None where it would be empty or too large."""
    if not 0 < len(models) <= DRAWN_MOST:
        return None
    depths = _count_depths(models)
    columns: dict[int, list[ModelChange]] = {}
    for model in models:
        columns.setdefault(depths[model.name], []).append(model)
    places: dict[str, tuple[int, int]] = {}
    for depth in sorted(columns):
        for row, model in enumerate(_sort_column(columns[depth], places)):
            places[model.name] = EDGE + depth * (WIDTH + GAP_X), EDGE + row * (HEIGHT + GAP_Y)
    edges = [(parent, model.name) for model in models for parent in model.parents if parent in places]
    width = max(x for x, _ in places.values()) + WIDTH + EDGE
    height = max(y for _, y in places.values()) + HEIGHT + EDGE
    boxes = tuple(_make_box(model, *places[model.name]) for model in models)
    curves = tuple(GRID.curve(places[parent], places[name]) for parent, name in edges)
    return Drawing(boxes, curves, width, height, WIDTH, HEIGHT)


def _count_depths(models: Sequence[ModelChange]) -> dict[str, int]:
    """Return the number of models above each, on the longest path; a cycle, which no plan has, ends the count."""
    models_by_name = {model.name: model for model in models}
    depths: dict[str, int] = {}
    for _ in range(len(models)):
        old_depths = dict(depths)
        for model in models:
            above = [
                depths.get(parent, 0) + 1
                for parent in model.parents
                if parent in models_by_name and parent != model.name
            ]
            depths[model.name] = min(max(above, default=0), len(models))
        if depths == old_depths:
            break
    return depths


def _sort_column(column: Sequence[ModelChange], places: Mapping[str, tuple[int, int]]) -> list[ModelChange]:
    """Sort the models of a column near their parents, so that few lines cross."""

    def middle(model: ModelChange) -> float:
        heights = [places[parent][1] for parent in model.parents if parent in places]
        return sum(heights) / len(heights) if heights else 0.0

    return sorted(column, key=lambda model: (middle(model), model.name))


def _make_box(model: ModelChange, x: int, y: int) -> Box:
    name, category = model.name, category_of(model)
    work = ", recomputed" if model.recomputed and model.change != "added" else ", skipped" if model.skipped else ""
    shown_category = category if category in NAMES else "undecided"
    return Box(model, x, y, shorten_name(name, NAME_MOST), shown_category, f"{NAMES[shown_category]}{work}")
