"""Column-level lineage through all models of a project, and the columns that decide which rows there are.

It is read from the queries alone. Rows decide rows all the way down: a model has the rows that it has because of the
rows of what it reads. Where a query cannot be followed column by column, all that it reads matters to all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.table_order import order_columns
from mergeplan.planner.naming import ColumnName
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.semantics.columns import model_shape
from mergeplan.planner.semantics.dependencies import tables_in
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.query.algebra import Block
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.semantics.shape_memory import NO_MEMORY, ShapeMemory
from mergeplan.planner.semantics.types import certain_types, normalize_type

ROWS = ""  # instead of a column's name: which rows the model has
ALL = "*"  # instead of a column's name: any column, and the rows, because it is not known which
UNKNOWN = Parent(None)


@dataclass(frozen=True)
class RowSources:
    """The tables whose rows decide those of a query, and those in whose rows a column's values are looked up."""

    deciding: frozenset[str]
    looked_up: Mapping[str, frozenset[str]]


class How(StrEnum):
    """How one column depends on another."""

    MADE_FROM = "made_from"
    DECIDES_ROWS = "decides_rows"
    EVERY_COLUMN = "every_column"  # unknown, so every column may depend on every other


class Node(NamedTuple):
    """A column of a model or of another table; ROWS and ALL are used where no single column can be named."""

    model: str
    column: str

    def meets(self, other: Node) -> bool:
        """Return True if both nodes are the same column, or one is all columns."""
        return self.model == other.model and (self.column == other.column or ALL in (self.column, other.column))


class Edge(NamedTuple):
    """The source goes into the target."""

    source: Node
    target: Node
    how: How


@dataclass(frozen=True)
class Lineage:
    """All that a model or column is made from, or with `downstream` all made from it, and why one is `unfollowed`."""

    model: str
    column: str | None  # None: the whole model
    downstream: bool
    starts: tuple[Node, ...]
    edges: tuple[Edge, ...] = ()
    unfollowed: tuple[tuple[str, str], ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Everything that is in it, each once."""
        ends = (end for edge in self.edges for end in (edge.source, edge.target))
        return tuple(dict.fromkeys((*self.starts, *ends)))


@dataclass(frozen=True)
class Followed:
    """One model: what downstream queries need to know of it, and the sources of each of its columns."""

    table: Parent
    find_edges: Callable[[], tuple[Edge, ...]] = tuple
    why_not: str = ""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Its columns' names, None when they are not known."""
        return self.table.columns

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """What goes into its columns."""
        return self.find_edges()


class FollowedModels(Mapping[str, Followed]):
    """A project's models, each analysed at its first use with all that it reads, or loaded from `memory`."""

    def __init__(
        self,
        graph: Graph,
        memory: ShapeMemory = NO_MEMORY,
        known: Mapping[str, Followed] = MappingProxyType({}),
        *,
        on_follow: Callable[[int], None] = lambda done: None,
    ) -> None:
        self.graph = graph
        self._memory = memory
        self._on_follow = on_follow  # hears how many are followed
        self._known = dict(known)

    def update(self, graph: Graph, names: Collection[str]) -> FollowedModels:
        """Return the models of a graph that differs in `names`; reuse lineages not downstream of one, now or before."""
        if graph.models.keys() != self.graph.models.keys():
            return FollowedModels(graph, self._memory)
        lost = {*names, *graph.downstream(names), *self.graph.downstream(names)}
        return FollowedModels(graph, self._memory, {n: model for n, model in self._known.items() if n not in lost})

    def __getitem__(self, name: str) -> Followed:
        if name not in self._known and name in self.graph.models:
            waiting = [name]
            while waiting:  # as deep as the graph is, which a stack is not
                unknown = [parent for parent in self.graph.parents[waiting[-1]] if parent not in self._known]
                if unknown:
                    waiting += unknown
                elif (last := waiting.pop()) not in self._known:
                    model = self.graph.models[last]
                    tables = {
                        name: self._known[name].table if name in self._known else UNKNOWN for name in model.depends_on
                    }
                    self._known[last] = _follow_model(model, tables, self._memory)
                    self._on_follow(len(self._known))
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self.graph.models

    def __iter__(self) -> Iterator[str]:
        return iter(self.graph.order)

    def __len__(self) -> int:
        return len(self.graph.models)


def lineage_of(
    models: Mapping[str, Model], target: str, *, downstream: bool = False, memory: ShapeMemory = NO_MEMORY
) -> Lineage:
    """Return the lineage of `schema.model` or `schema.model.column`; raise RequestError if it does not exist."""
    graph = graph_of(models)
    model, column = _resolve_name(graph, target)
    readers = [name for name, candidate in models.items() if model in candidate.depends_on]
    about = {model, *readers, *graph.downstream(readers)} if downstream else {model}
    related_models, followed = about | graph.upstream(about), FollowedModels(graph, memory)
    followed_model = followed.get(model, Followed(UNKNOWN))
    if column is not None and followed_model.columns is not None and column not in followed_model.columns:
        raise RequestError(f"`{model}` has no column `{column}`.", hint=did_you_mean(column, followed_model.columns))
    starts = _start_nodes(model, column, followed_model, downstream=downstream)
    related = (edge for name in graph.order if name in related_models for edge in followed[name].edges)
    edges = _walk_edges(starts, related, downstream=downstream)
    lost = sorted({edge.target.model for edge in edges if edge.how is How.EVERY_COLUMN})
    return Lineage(model, column, downstream, starts, edges, tuple((name, followed[name].why_not) for name in lost))


def _follow_model(model: Model, parents: Mapping[str, Parent], memory: ShapeMemory) -> Followed:
    declared = tuple(column.name for column in model.columns) or None
    types = tuple((column.name, normalize_type(column.type)) for column in model.columns)
    if model.python:
        declared = declared and order_columns(model, declared, dict(types))
        return Followed(Parent(declared, types=types), lambda: _from_all(model, model.depends_on), "it is Python code")
    if not model.sql:
        names = declared or (model.seed.header if model.seed else None)
        return Followed(Parent(names, types=types, is_open=model.open_columns))
    shape = model_shape(model, parents, memory)
    cast = types if types and not model.kind.is_view else shape.types
    names = shape.columns or declared
    history_types = tuple((column.name, normalize_type(column.type)) for column in model.history_columns)
    types = (*cast, *history_types)
    names = names and order_columns(model, (*names, *(name for name, _ in history_types)), certain_types(types))
    table = Parent(names, types=types)
    if shape.own is not None and shape.source is not None:
        return Followed(table, lambda: tuple(_find_edges(model, shape, row_sources_of(shape))))
    return Followed(table, lambda: _from_all(model, sorted(shape.reads)), _why_not(shape, parents))


def _from_all(model: Model, parents: Iterable[str]) -> tuple[Edge, ...]:
    return tuple(Edge(Node(parent, ALL), Node(model.name, ALL), How.EVERY_COLUMN) for parent in parents)


def _find_edges(model: Model, shape: Shape, rows_of: RowSources) -> Iterator[Edge]:
    name = model.name
    for column in shape.columns or ():
        reads = {parent: shape.reads[parent].outputs.get(column, frozenset()) for parent in sorted(shape.reads)}
        for parent, read in reads.items():
            rows = [ROWS] if parent in rows_of.looked_up.get(column, frozenset()) - rows_of.deciding else []
            for column_read in (*sorted(read), *rows):
                yield Edge(Node(parent, column_read), Node(name, column), How.MADE_FROM)
    # In SCD type 2, when a version is valid depends on which rows each run finds, and how they differ from the last
    # run's.
    for history_column in model.history_columns:
        yield from (
            Edge(Node(parent, ROWS), Node(name, history_column.name), How.MADE_FROM) for parent in sorted(shape.reads)
        )
    for parent in sorted(shape.reads):
        # A time-partitioned table keeps only the rows of its interval, so its time column decides rows too.
        of_time = shape.reads[parent].outputs.get(model.by_time.time_column, frozenset())
        rows = [ROWS] if parent in rows_of.deciding else []
        for column_read in (*sorted(shape.reads[parent].rows | of_time), *rows):
            yield Edge(Node(parent, column_read), Node(name, ROWS), How.DECIDES_ROWS)


def _why_not(shape: Shape, parents: Mapping[str, Parent]) -> str:
    unknown = [f"`{name}`" for name in sorted(shape.reads) if parents.get(name, UNKNOWN).columns is None]
    if unknown:
        return f"the columns of {', '.join(unknown)} are not known"
    if shape.unresolved:
        return f"its query names a column `{shape.unresolved}` that nothing it reads has"
    return f"its query has {shape.obstacle or 'a part'} that is not followed column by column"


def _resolve_name(graph: Graph, target: str) -> tuple[str, str | None]:
    table_names = {*graph.models, *(name for model in graph.models.values() for name in model.depends_on)}
    parts = target.strip().lower().split(".")
    whole = next((n for n in (3, 2) if ".".join(parts[:n]) in table_names), 2)
    model, dot, text = ".".join(parts[:whole]), len(parts) > whole, ".".join(parts[whole:])
    column = ColumnName.parse(text) or text  # `a-b` with or without back-ticks
    if model not in table_names:
        raise RequestError(f"There is no model `{model if dot else target}`.", hint=did_you_mean(model, table_names))
    if dot and not column:
        raise RequestError(f"`{target}` ends where a column is expected.", hint="Write MODEL or MODEL.COLUMN.")
    return model, column if dot else None


def _start_nodes(model: str, column: str | None, own: Followed, *, downstream: bool) -> tuple[Node, ...]:
    """Return the nodes where the walk starts.

    A column depends on its values and on its model's rows; what is made from the values does not depend on the rows.
    """
    blurred = bool(own.why_not) and not downstream  # one column is then made from what all are made from
    if column is not None:
        return (Node(model, column),) if downstream or blurred else (Node(model, column), Node(model, ROWS))
    if own.columns is None or blurred:
        return (Node(model, ALL),)
    return tuple(Node(model, name) for name in (*own.columns, ROWS))


def _walk_edges(starts: tuple[Node, ...], edges: Iterable[Edge], *, downstream: bool) -> tuple[Edge, ...]:
    """Return every edge that is reached; each ends where its neighbour begins, even if one is about all columns."""
    at: dict[str, list[Edge]] = {}
    for edge in edges:
        at.setdefault((edge.source if downstream else edge.target).model, []).append(edge)
    path_edges: dict[Edge, None] = {}
    waiting, reached_nodes = list(starts), set(starts)
    for node in waiting:
        for edge in at.get(node.model, ()):
            near, far = (edge.source, edge.target) if downstream else (edge.target, edge.source)
            if not near.meets(node):
                continue
            path_edges[edge._replace(source=node) if downstream else edge._replace(target=node)] = None
            if far not in reached_nodes:
                reached_nodes.add(far)
                waiting.append(far)
    return tuple(path_edges)


def row_sources_of(shape: Shape) -> RowSources:
    relation = shape.relation
    if relation is None:  # the stack is too deep by now to follow it again: any of them may
        reads = frozenset(shape.reads)
        return RowSources(reads, dict.fromkeys(shape.columns or (), reads))
    block = relation.block
    steps = tuple(step for step in block.steps if not step.is_lookup)
    # A lookup decides no rows: which rows the looked-up table has shows in the values that are found there.
    looked_up = {
        column: tables_in(Block(tuple(value.free), where=(value,))) for column, value in relation.columns.items()
    }
    return RowSources(tables_in(Block(block.sources, steps, block.where)), looked_up)
