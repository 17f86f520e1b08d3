"""A model's neighbourhood as a drawing: what it reads on the left, what reads it on the right, two steps each way."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mergeplan.planner.catalog.catalog import CatalogModel
from mergeplan.planner.site.drawing import Drawing, Grid
from mergeplan.planner.wording import count_noun, shorten_name

WIDTH, HEIGHT, GAP_X, GAP_Y, EDGE = 214, 44, 56, 12, 4
GRID = Grid(WIDTH, HEIGHT, GAP_X)
LABEL_MOST = 26  # characters that fit into a box
NEAR_MOST, FAR_MOST = 8, 10  # boxes on each side: one step away, and two
Steps = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Box:
    """A model, or `name` '' for a number of models that are not drawn."""

    name: str
    x: int
    y: int
    label: str
    kind: str


@dataclass(frozen=True)
class _Side:
    """The models that are drawn on one side, and for each step how many are not."""

    names: tuple[str, ...]
    left_out: tuple[int, int]


def draw_neighbourhood(models: Mapping[str, CatalogModel], focus: str) -> Drawing[Box]:
    def parents(name: str) -> Sequence[str]:
        return models[name].parents if name in models else ()

    def readers(name: str) -> Sequence[str]:
        return models[name].readers if name in models else ()

    up, down = _choose_side(focus, parents), _choose_side(focus, readers)
    levels = {focus: 0}
    levels |= {name: -level for name, level in _longest_distances(up.names, parents).items()}
    levels |= {name: level for name, level in _longest_distances(down.names, readers).items() if name not in levels}
    columns: dict[int, list[str]] = {}
    for name, level in levels.items():
        columns.setdefault(level, []).append(name)
    hidden_counts = {sign * step: side.left_out[step - 1] for sign, side in ((-1, up), (1, down)) for step in (1, 2)}
    for level in (level for level, count in hidden_counts.items() if count):
        columns.setdefault(level, []).append(f"\0{level}")
    places = _place_boxes(columns, parents)
    edges = [(parent, name) for name in levels for parent in dict.fromkeys(parents(name)) if parent in levels]
    return Drawing(
        tuple(_make_box(models, name, hidden_counts, *place) for name, place in places.items()),
        tuple(GRID.curve(places[parent], places[name]) for parent, name in edges if parent != name),
        max(x for x, _ in places.values()) + WIDTH + EDGE,
        max(y for _, y in places.values()) + HEIGHT + EDGE,
        WIDTH,
        HEIGHT,
    )


def _choose_side(focus: str, step: Steps) -> _Side:
    """Return the nearest models of one direction, as many as can be read."""
    near = [name for name in dict.fromkeys(step(focus)) if name != focus]
    shown = near[:NEAR_MOST]
    beyond = dict.fromkeys(neighbour for name in shown for neighbour in step(name))
    far = [name for name in beyond if name != focus and name not in near]
    return _Side((*shown, *far[:FAR_MOST]), (len(near) - len(shown), len(far[FAR_MOST:])))


def _longest_distances(names: Iterable[str], step: Steps) -> dict[str, int]:
    """How many steps away each model stands on the longest way, so that every line leads from left to right."""
    chosen_names, levels = set(names), dict.fromkeys(names, 1)
    for _ in range(len(levels)):
        old_levels = dict(levels)
        for name in levels:
            for neighbour in step(name):
                if neighbour in chosen_names and neighbour != name:
                    levels[neighbour] = max(levels[neighbour], levels[name] + 1)
        if levels == old_levels:
            break
    return levels


def _place_boxes(columns: Mapping[int, list[str]], parents: Steps) -> dict[str, tuple[int, int]]:
    tallest, first = max(map(len, columns.values())), min(columns)
    places: dict[str, tuple[int, int]] = {}

    def middle(name: str) -> tuple[bool, float, str]:
        joined = [
            places[neighbour][1] for neighbour in places if neighbour in parents(name) or name in parents(neighbour)
        ]
        return name.startswith("\0"), sum(joined) / len(joined) if joined else 0.0, name

    for level in sorted(columns, key=abs):
        top = EDGE + (tallest - len(columns[level])) * (HEIGHT + GAP_Y) // 2
        for row, name in enumerate(sorted(columns[level], key=middle)):
            places[name] = EDGE + (level - first) * (WIDTH + GAP_X), top + row * (HEIGHT + GAP_Y)
    return places


def _make_box(models: Mapping[str, CatalogModel], name: str, more: Mapping[int, int], x: int, y: int) -> Box:
    if name.startswith("\0"):
        return Box("", x, y, f"and {count_noun(more[int(name[1:])], 'more', 'more')}", "")
    return Box(name, x, y, shorten_name(name, LABEL_MOST), models[name].kind if name in models else "no model")
