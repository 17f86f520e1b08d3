"""A layered layout: boxes in columns from parents to downstream models, with few crossings. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Edge = tuple[str, str]
SWEEPS = 6


class Spot(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Size:
    """The size of a box, and of the space between boxes."""

    width: int
    height: int
    gap_x: int
    gap_y: int
    edge: int


@dataclass(frozen=True)
class Layout:
    spots: Mapping[str, Spot]
    paths: Mapping[Edge, str]
    width: int
    height: int


class _Node(NamedTuple):
    """A box, or with `edge` the place where a long edge passes a column."""

    key: str
    edge: Edge | None = None


def lay_out(keys: Sequence[str], edges: Iterable[Edge], size: Size) -> Layout:
    """Return the layout of boxes in the order of the graph; other edges go backwards, boxes without edges are below."""
    edges = list(edges)
    joined = {key for edge in edges for key in edge}
    levels = _assign_levels([key for key in keys if key in joined], edges)
    columns, links = _build_columns(levels, edges)
    for sweep in range(SWEEPS):
        _sort_columns(columns, links, forward=sweep % 2 == 0)
    heights = _assign_heights(columns, links, size)
    spots = {
        node.key: Spot(size.edge + level * (size.width + size.gap_x), heights[node])
        for level, column in enumerate(columns)
        for node in column
        if node.edge is None
    }
    bottom = max((spot.y + size.height + size.gap_y for spot in spots.values()), default=size.edge)
    apart = [key for key in keys if key not in joined]
    across = max(len(columns), 4)
    for number, key in enumerate(apart):
        row, place = divmod(number, across)
        spots[key] = Spot(
            size.edge + place * (size.width + size.gap_x), bottom + size.gap_y + row * (size.height + size.gap_y)
        )
    paths = {edge: _edge_path(edge, levels, heights, spots, size) for edge in edges}
    width = max((spot.x for spot in spots.values()), default=0) + size.width + size.edge
    return Layout(spots, paths, width, max((spot.y for spot in spots.values()), default=0) + size.height + size.edge)


def turn_layout(layout: Layout) -> Layout:
    """Return the layout from top to bottom in place of from left to right: each x is a y, and each y an x."""
    spots = {key: Spot(spot.y, spot.x) for key, spot in layout.spots.items()}
    paths = {edge: _turn_path(path) for edge, path in layout.paths.items()}
    return Layout(spots, paths, layout.height, layout.width)


def _turn_path(path: str) -> str:
    """Return a path with its coordinates exchanged.

    >>> _turn_path("M1 2C3 4 5 6 7 8H9")
    'M2 1C4 3 6 5 8 7V9'
    """
    return re.sub(r"(?<![\d-])(-?\d++) (-?\d++)", r"\2 \1", path).replace("H", "V")


def _assign_levels(keys: Sequence[str], edges: Iterable[Edge]) -> dict[str, int]:
    """Return the column of each box: right of all its parents, and as close to its downstream boxes as possible."""
    rank = {key: number for number, key in enumerate(keys)}
    parents: dict[str, list[str]] = {key: [] for key in keys}
    children: dict[str, list[str]] = {key: [] for key in keys}
    for parent, child in edges:
        if rank[parent] < rank[child]:
            parents[child].append(parent)
            children[parent].append(child)
    levels: dict[str, int] = {}
    for key in keys:
        levels[key] = max((levels[parent] + 1 for parent in parents[key]), default=0)
    for key in reversed(keys):
        if children[key] and not parents[key]:
            levels[key] = min(levels[child] for child in children[key]) - 1
    return levels


def _build_columns(
    levels: Mapping[str, int], edges: Iterable[Edge]
) -> tuple[list[list[_Node]], dict[_Node, tuple[list[_Node], list[_Node]]]]:
    columns: list[list[_Node]] = [[] for _ in range(max(levels.values(), default=-1) + 1)]
    links: dict[_Node, tuple[list[_Node], list[_Node]]] = {}

    def add(node: _Node, level: int) -> _Node:
        columns[level].append(node)
        links[node] = ([], [])
        return node

    for key, level in levels.items():
        add(_Node(key), level)
    for parent, child in edges:
        if levels[parent] >= levels[child]:
            continue
        last = _Node(parent)
        for level in range(levels[parent] + 1, levels[child] + 1):
            node = _Node(child) if level == levels[child] else add(_Node(str(level), (parent, child)), level)
            links[last][1].append(node)
            links[node][0].append(last)
            last = node
    return columns, links


def _sort_columns(
    columns: list[list[_Node]], links: Mapping[_Node, tuple[list[_Node], list[_Node]]], *, forward: bool
) -> None:
    place = {node: number for column in columns for number, node in enumerate(column)}
    side = 0 if forward else 1
    for column in columns if forward else reversed(columns):
        middles = {
            node: _mean_value([place[linked_node] for linked_node in links[node][side]], place[node]) for node in column
        }
        column.sort(key=lambda node: (middles[node], place[node]))
        place |= {node: number for number, node in enumerate(column)}


def _assign_heights(
    columns: Sequence[Sequence[_Node]], links: Mapping[_Node, tuple[list[_Node], list[_Node]]], size: Size
) -> dict[_Node, int]:
    """Return the vertical place of each node: beside its neighbours as far as the column's order leaves room."""
    room = {node: size.height + size.gap_y if node.edge is None else size.gap_y for node in links}
    heights: dict[_Node, float] = {}
    for column in columns:
        top = 0.0
        for node in column:
            heights[node] = top
            top += room[node]
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for column in columns if forward else list(reversed(columns)):
            _settle_column(column, heights, links, room, size.height, forward=forward)
    highest = min(heights.values(), default=0.0)
    return {node: round(height - highest) + size.edge for node, height in heights.items()}


def _settle_column(
    column: Sequence[_Node],
    heights: dict[_Node, float],
    links: Mapping[_Node, tuple[list[_Node], list[_Node]]],
    room: Mapping[_Node, float],
    height: int,
    *,
    forward: bool,
) -> None:
    """Move the nodes of a column towards their neighbours without changing their order."""

    def middle(node: _Node) -> float:
        return heights[node] + (height / 2 if node.edge is None else 0.0)

    middle_heights: list[float] = []
    for node in column:
        linked_nodes = links[node][0 if forward else 1] or links[node][1 if forward else 0]
        middle_heights.append(
            _mean_value([middle(o) for o in linked_nodes], middle(node)) - (height / 2 if node.edge is None else 0.0)
        )
    down: list[float] = []
    for number, want in enumerate(middle_heights):
        down.append(max(want, down[-1] + room[column[number - 1]]) if down else want)
    up = list(down)
    for number in range(len(up) - 1, -1, -1):
        limit = up[number + 1] - room[column[number]] if number + 1 < len(up) else middle_heights[number]
        up[number] = min(middle_heights[number], limit)
    for node, low, high in zip(column, down, up, strict=True):
        heights[node] = (low + high) / 2  # both keep the order and the room, and so does their middle


def _edge_path(
    edge: Edge, levels: Mapping[str, int], heights: Mapping[_Node, int], spots: Mapping[str, Spot], size: Size
) -> str:
    start, end, half = spots[edge[0]], spots[edge[1]], size.height // 2
    x, y, bend = start.x + size.width, start.y + half, size.gap_x // 2
    path = [f"M{x} {y}"]
    for level in range(levels[edge[0]] + 1, levels[edge[1]]):
        over, height = size.edge + level * (size.width + size.gap_x), heights[_Node(str(level), edge)]
        path.append(f"C{x + bend} {y} {over - bend} {height} {over} {height}H{over + size.width}")
        x, y = over + size.width, height
    if levels[edge[0]] >= levels[edge[1]]:
        bend = size.gap_x
    path.append(f"C{x + bend} {y} {end.x - bend} {end.y + half} {end.x} {end.y + half}")
    return "".join(path)


def _mean_value(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
