"""The boxes of the model graph that a page draws: a focus with a depth, a selector, and schemas folded into a box."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.selection import select

BOXES_MOST = 150  # more than this cannot be read
DEPTH_MOST = 20


@dataclass(frozen=True)
class GraphWish:
    focus: str = ""  # a model or a table, '' for none
    up: int = 2  # steps towards what the focus reads
    down: int = 2
    selector: str = ""  # `+shop.orders+`, `tag:x`
    fold: str = "auto"  # auto: only if there are too many boxes, all, none
    opened: tuple[str, ...] = ()  # schemas that stay unfolded


@dataclass(frozen=True)
class GraphBox:
    """A model, or the models of a schema."""

    name: str
    members: tuple[str, ...]
    is_folded: bool = False
    steps: int = 0  # from the focus; negative: the focus reads it

    @property
    def key(self) -> str:
        """The unique key of the box: a table may be called like a schema."""
        return f"\0{self.name}" if self.is_folded else self.name


@dataclass(frozen=True)
class GraphView:
    """The boxes in the order of the graph, parents first, the edges between them, and how many models are not drawn."""

    boxes: tuple[GraphBox, ...]
    edges: tuple[tuple[str, str], ...]
    models: tuple[str, ...]  # every model that fits, drawn or not
    left_out: int = 0

    @property
    def folded(self) -> tuple[GraphBox, ...]:
        return tuple(box for box in self.boxes if box.is_folded)


@dataclass(frozen=True)
class CatalogGraph:
    """The graph of a catalog: models, and the tables beside them that they read."""

    graph: Graph
    parents: Mapping[str, tuple[str, ...]] = field(repr=False)
    children: Mapping[str, tuple[str, ...]] = field(repr=False)
    rank: Mapping[str, int] = field(repr=False)  # parents before children

    def view(self, wish: GraphWish, only: Collection[str] | None = None) -> GraphView:
        """Return the boxes of a wish, of the models `only`; raise RequestError for an unknown focus or selector."""
        steps = self._focus_distances(wish)
        names = set(steps) if wish.focus else set(self.graph.models)
        if wish.selector.strip():
            names &= select(self.graph, [wish.selector.strip()])
        if only is not None:
            names &= set(only)
        models = tuple(sorted(names, key=lambda name: self.rank[name]))
        folded = self._choose_folds(models, wish)
        groups: dict[str, list[str]] = {}
        for name in models:
            schema = schema_of(name)
            groups.setdefault(f"\0{schema}" if schema in folded and name != wish.focus else name, []).append(name)
        keys = list(groups)
        if len(keys) > BOXES_MOST:
            near = sorted(keys, key=lambda key: min(abs(steps.get(name, 0)) for name in groups[key]))
            nearest = set(near[:BOXES_MOST])
            keys = [key for key in keys if key in nearest]
        boxes = tuple(_make_box(key, groups[key], steps) for key in keys)
        drawn = sum(len(box.members) for box in boxes)
        return GraphView(boxes, self._box_edges(boxes), models, len(models) - drawn)

    def _focus_distances(self, wish: GraphWish) -> Mapping[str, int]:
        if not wish.focus:
            return {}
        if wish.focus not in self.rank:
            raise RequestError(f"There is no model `{wish.focus}`.", hint="Search for it in the catalog.")
        ups = _find_distances(wish.focus, lambda name: self.parents.get(name, ()), wish.up)
        downs = _find_distances(wish.focus, lambda name: self.children.get(name, ()), wish.down)
        return {name: -distance for name, distance in ups.items()} | downs

    def _choose_folds(self, models: Sequence[str], wish: GraphWish) -> Collection[str]:
        """Return the schemas that are drawn as one box; with `auto` as many of the largest ones as necessary."""
        sizes: dict[str, int] = {}
        for name in models:
            sizes[schema_of(name)] = sizes.get(schema_of(name), 0) + 1
        if wish.fold == "none":
            return ()
        schemas = [schema for schema in sorted(sizes, key=lambda s: (-sizes[s], s)) if schema not in wish.opened]
        if wish.fold == "all":
            return schemas
        folded: set[str] = set()
        count = len(models)
        for schema in schemas:
            if count <= BOXES_MOST or (schema == schema_of(wish.focus) and len(sizes) > 1):
                continue
            if len(sizes) == 1:
                break  # one box would say nothing
            folded.add(schema)
            count -= sizes[schema] - 1
        return folded

    def _box_edges(self, boxes: Iterable[GraphBox]) -> tuple[tuple[str, str], ...]:
        box_of = {member: box.key for box in boxes for member in box.members}
        edges = (
            (box_of[parent], box_key)
            for name, box_key in box_of.items()
            for parent in self.parents[name]
            if parent in box_of
        )
        return tuple(dict.fromkeys(edge for edge in edges if edge[0] != edge[1]))


def graph_of_catalog(catalog: Catalog) -> CatalogGraph:
    graph = graph_of({name: model.declared for name, model in catalog.models.items()})
    outside = catalog.outside_tables
    parents = {name: tuple(p for p in dict.fromkeys(m.parents) if p != name) for name, m in catalog.models.items()}
    parents |= dict.fromkeys(outside, ())
    children: dict[str, list[str]] = {name: [] for name in parents}
    for name, reads in parents.items():
        for parent in reads:
            children[parent].append(name)
    rank = {name: number for number, name in enumerate((*outside, *graph.order))}
    return CatalogGraph(graph, parents, {name: tuple(readers) for name, readers in children.items()}, rank)


def schema_of(name: str) -> str:
    return name.rpartition(".")[0]


def _find_distances(start: str, step: Callable[[str], Iterable[str]], most: int) -> dict[str, int]:
    distances, frontier = {start: 0}, [start]
    for distance in range(1, min(most, DEPTH_MOST) + 1):
        frontier = [n for n in dict.fromkeys(o for name in frontier for o in step(name)) if n not in distances]
        distances |= dict.fromkeys(frontier, distance)
    return distances


def _make_box(key: str, members: Sequence[str], steps: Mapping[str, int]) -> GraphBox:
    nearest = min((steps.get(name, 0) for name in members), key=abs)
    return GraphBox(key.removeprefix("\0"), tuple(members), key.startswith("\0"), nearest)
