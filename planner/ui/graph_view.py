"""The boxes of the graph that a page draws: of models by a focus, a selector and folded schemas; of one column."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.selection import select
from mergeplan.planner.project.lineage import ALL, ROWS, Node

BOXES_MOST = 150  # more than this cannot be read
DEPTH_MOST = 20
Neighbours = Mapping[Node, tuple[Node, ...]]


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


@dataclass(frozen=True)
class ColumnView:
    """The models that a column's lineage leads through, and the columns of each that are in it."""

    graph: GraphView
    columns: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class ColumnGraph:
    made_from: Neighbours = field(repr=False)
    read_by: Neighbours = field(repr=False)
    columns: Mapping[str, tuple[str, ...]] = field(repr=False)

    def view(self, models: CatalogGraph, column: Node, up: int, down: int) -> ColumnView:
        """Return a column's sources, `up` steps, and its readers, `down` steps; raise RequestError if it is unknown."""
        if column.column not in self.columns.get(column.model, ()):
            raise RequestError(f"`{column.model}` has no column `{column.column}`.", hint="Its page lists its columns.")
        steps = self._walk_lineage(column, self.made_from, up, -1) | self._walk_lineage(column, self.read_by, down, 1)
        columns: dict[str, dict[str, None]] = {}
        nearest: dict[str, int] = {}
        for node, step in steps.items():
            columns.setdefault(node.model, {})[node.column] = None
            if abs(step) <= abs(nearest.get(node.model, DEPTH_MOST + 1)):
                nearest[node.model] = step
        names = sorted(columns, key=lambda name: models.rank[name])
        drawn = set(sorted(names, key=lambda name: abs(nearest[name]))[:BOXES_MOST])
        boxes = tuple(GraphBox(name, (name,), steps=nearest[name]) for name in names if name in drawn)
        edges = dict.fromkeys(
            (source.model, node.model)
            for node in steps
            for source in self.made_from.get(node, ())
            if source in steps and source.model != node.model and {source.model, node.model} <= drawn
        )
        view = GraphView(boxes, tuple(edges), tuple(names), len(names) - len(boxes))
        return ColumnView(view, {name: tuple(parts) for name, parts in columns.items()})

    def _walk_lineage(self, start: Node, neighbours: Neighbours, most: int, sign: int) -> dict[Node, int]:
        steps, frontier = {start: 0}, [start]
        for step in range(1, min(most, DEPTH_MOST) + 1):
            reached = (
                neighbour
                for node in frontier
                for near in self._expand_node(node)
                for neighbour in neighbours.get(near, ())
            )
            frontier = [node for node in dict.fromkeys(reached) if node not in steps]
            steps |= dict.fromkeys(frontier, sign * step)
        return steps

    def _expand_node(self, node: Node) -> Iterable[Node]:
        """Return the nodes that a node represents: ALL is every column and the rows."""
        if node.column != ALL:
            return (node, Node(node.model, ALL))
        return (node, Node(node.model, ROWS), *(Node(node.model, name) for name in self.columns.get(node.model, ())))


def column_graph(catalog: Catalog) -> ColumnGraph:
    made_from: dict[Node, tuple[Node, ...]] = {}
    read_by: dict[Node, dict[Node, None]] = {}
    for name, model in catalog.models.items():
        made_from[Node(name, ROWS)] = model.row_deciders
        for column in model.columns or ():
            made_from[Node(name, column.name)] = column.made_from
    for target, sources in made_from.items():
        for source in sources:
            read_by.setdefault(source, {})[target] = None
    columns = {name: tuple(column.name for column in model.columns or ()) for name, model in catalog.models.items()}
    return ColumnGraph(made_from, {node: tuple(readers) for node, readers in read_by.items()}, columns)
