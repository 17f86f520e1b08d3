"""The sources and the readers of one column, model by model, within a depth."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.errors import RequestError
from mergeplan.planner.project.lineage import ALL, ROWS, Node
from mergeplan.planner.ui.graph_view import BOXES_MOST, DEPTH_MOST, CatalogGraph, GraphBox, GraphView

Neighbours = Mapping[Node, tuple[Node, ...]]


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
