"""The graph of a plan's models, laid out in columns from what is read to what reads it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mergeplan.bot.report.markdown import NAMES, category_of
from mergeplan.planner.contract.plan import ModelChange

WIDTH, HEIGHT, GAP_X, GAP_Y, EDGE = 226, 46, 64, 16, 12
NAME_MOST = 27  # characters that fit into a box
DRAWN_MOST = 150  # more than this could not be read


@dataclass(frozen=True)
class Box:
    """A model: its top left corner, and what stands in it."""

    model: ModelChange
    x: int
    y: int
    label: str
    category: str
    kind: str


@dataclass(frozen=True)
class Drawing:
    """Boxes, the curves between them, and the size of it all."""

    boxes: tuple[Box, ...]
    curves: tuple[str, ...]
    width: int
    height: int
    box_width: int = WIDTH
    box_height: int = HEIGHT


def drawing(models: Sequence[ModelChange]) -> Drawing | None:
    """The graph of these models; None where there is nothing to see, or too much."""
    if not 0 < len(models) <= DRAWN_MOST:
        return None
    depths = _depths(models)
    columns: dict[int, list[ModelChange]] = {}
    for model in models:
        columns.setdefault(depths[model.name], []).append(model)
    places: dict[str, tuple[int, int]] = {}
    for depth in sorted(columns):
        for row, model in enumerate(_sort_column(columns[depth], places)):
            places[model.name] = EDGE + depth * (WIDTH + GAP_X), EDGE + row * (HEIGHT + GAP_Y)
    curves = [
        _curve(places[parent], places[model.name]) for model in models for parent in model.parents if parent in places
    ]
    width = max(x for x, _ in places.values()) + WIDTH + EDGE
    height = max(y for _, y in places.values()) + HEIGHT + EDGE
    return Drawing(tuple(_box(model, *places[model.name]) for model in models), tuple(curves), width, height)


def _depths(models: Sequence[ModelChange]) -> dict[str, int]:
    """How many models stand above each, on the longest way; a cycle, which no plan has, ends the count."""
    known = {model.name: model for model in models}
    depths: dict[str, int] = {}
    for _ in range(len(models)):
        before = dict(depths)
        for model in models:
            above = [depths.get(parent, 0) + 1 for parent in model.parents if parent in known and parent != model.name]
            depths[model.name] = min(max(above, default=0), len(models))
        if depths == before:
            break
    return depths


def _sort_column(column: Sequence[ModelChange], places: Mapping[str, tuple[int, int]]) -> list[ModelChange]:
    """The models of a column beside what they read, so that few lines cross."""

    def middle(model: ModelChange) -> float:
        heights = [places[parent][1] for parent in model.parents if parent in places]
        return sum(heights) / len(heights) if heights else 0.0

    return sorted(column, key=lambda model: (middle(model), model.name))


def _curve(start: tuple[int, int], end: tuple[int, int]) -> str:
    """The path of a line from the right side of one box to the left side of another."""
    x1, y1 = start[0] + WIDTH, start[1] + HEIGHT // 2
    x2, y2 = end[0], end[1] + HEIGHT // 2
    bend = max(GAP_X // 2, (x2 - x1) // 2)
    return f"M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"


def _box(model: ModelChange, x: int, y: int) -> Box:
    name, category = model.name, category_of(model)
    label = name if len(name) <= NAME_MOST else f"…{name[-NAME_MOST + 1 :]}"
    work = ", recomputed" if model.recomputed and model.change != "added" else ", skipped" if model.skipped else ""
    known = category if category in NAMES else "undecided"
    return Box(model, x, y, label, known, f"{NAMES[known]}{work}")
