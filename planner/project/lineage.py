"""Column-level lineage through all models of a project, and the columns that decide which rows there are.

It is read from the queries alone. Rows decide rows all the way down: a model has the rows that it has because of the
rows of what it reads. Where a query cannot be followed column by column, all that it reads matters to all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.semantics.columns import model_shape
from mergeplan.planner.semantics.dependencies import tables_in
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.query.algebra import Block, Relation
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.semantics.types import normalize_type

ROWS = ""  # instead of a column's name: which rows the model has
ALL = "*"  # instead of a column's name: any column, and the rows, because it is not known which
UNKNOWN = Parent(None)


class How(StrEnum):
    """How one column depends on another."""

    MADE_FROM = "made_from"
    DECIDES_ROWS = "decides_rows"
    EVERY_COLUMN = "every_column"  # unknown, so every column may depend on every other


@dataclass(frozen=True)
class Node:
    """A column of a model or of another table; ROWS and ALL are used where no single column can be named."""

    model: str
    column: str

    def meets(self, other: Node) -> bool:
        """True when one is the other, or may be."""
        return self.model == other.model and (self.column == other.column or ALL in (self.column, other.column))


@dataclass(frozen=True)
class Edge:
    """The source goes into the target."""

    source: Node
    target: Node
    how: How


@dataclass(frozen=True)
class Lineage:
    """A model or column and everything that it is made from, or with `downstream` everything that is made from it.

    `unfollowed` has the reason why a model's query could not be followed.
    """

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
    edges: tuple[Edge, ...] = ()
    why_not: str = ""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Its columns' names, None when they are not known."""
        return self.table.columns


def lineage_of(models: Mapping[str, Model], target: str, *, downstream: bool = False) -> Lineage:
    """The lineage of `schema.model` or `schema.model.column`; RequestError if there is no such model or column."""
    graph = graph_of(models)
    model, column = _resolve_name(graph, target)
    readers = [name for name, candidate in models.items() if model in candidate.depends_on]
    about = {model, *readers, *graph.downstream(readers)} if downstream else {model}
    followed = follow(graph, about | graph.upstream(about))
    own = followed.get(model, Followed(UNKNOWN))
    if column is not None and own.columns is not None and column not in own.columns:
        raise RequestError(f"`{model}` has no column `{column}`.", hint=did_you_mean(column, own.columns))
    starts = _starts(model, column, own, downstream=downstream)
    edges = _walk(starts, (edge for lineage in followed.values() for edge in lineage.edges), downstream=downstream)
    lost = sorted({edge.target.model for edge in edges if edge.how is How.EVERY_COLUMN})
    return Lineage(model, column, downstream, starts, edges, tuple((name, followed[name].why_not) for name in lost))


def follow(graph: Graph, names: Iterable[str]) -> dict[str, Followed]:
    """Each of these models with what goes into its columns; all that they read must be among the names."""
    wanted = set(names)
    tables: dict[str, Followed] = {}
    for name in (name for name in graph.order if name in wanted):
        model = graph.models[name]
        parents = {parent: tables[parent].table if parent in tables else UNKNOWN for parent in model.depends_on}
        tables[name] = _follow_model(model, parents)
    return tables


def _follow_model(model: Model, parents: Mapping[str, Parent]) -> Followed:
    declared = tuple(column.name for column in model.columns) or None
    types = tuple((column.name, normalize_type(column.type)) for column in model.columns)
    if model.python:
        whole = tuple(Edge(Node(p, ALL), Node(model.name, ALL), How.EVERY_COLUMN) for p in model.depends_on)
        return Followed(Parent(declared, types=types), whole, "it is Python code")
    if not model.sql:
        return Followed(Parent(declared or (model.seed.header if model.seed else None), types=types))
    shape = model_shape(model, parents)
    cast = types if types and not model.kind.is_view else shape.types
    names = shape.columns or declared
    kept = tuple(column.name for column in model.history_columns)
    table = Parent(
        names and (*names, *kept), types=(*cast, *((c.name, normalize_type(c.type)) for c in model.history_columns))
    )
    if shape.relation is not None:
        return Followed(table, tuple(_edges(model, shape, shape.relation)))
    every = (Edge(Node(p, ALL), Node(model.name, ALL), How.EVERY_COLUMN) for p in sorted(shape.reads))
    return Followed(table, tuple(every), _why_not(shape, parents))


def _edges(model: Model, shape: Shape, relation: Relation) -> Iterator[Edge]:
    block, name = relation.block, model.name
    steps = tuple(step for step in block.steps if not step.is_lookup)
    deciding = tables_in(Block(block.sources, steps, block.where))
    for column, value in relation.columns.items():
        reads = {parent: shape.reads[parent].outputs.get(column, frozenset()) for parent in sorted(shape.reads)}
        # A lookup decides no rows: which rows the looked-up table has shows in the values that are found there.
        looked_up = tables_in(Block(tuple(value.free), where=(value,)))
        for parent, read in reads.items():
            rows = [ROWS] if parent in looked_up - deciding else []
            for column_read in (*sorted(read), *rows):
                yield Edge(Node(parent, column_read), Node(name, column), How.MADE_FROM)
    # In SCD type 2, when a version is valid depends on which rows each run finds, and how they differ from the last
    # run's.
    for kept in model.history_columns:
        yield from (Edge(Node(parent, ROWS), Node(name, kept.name), How.MADE_FROM) for parent in sorted(shape.reads))
    for parent in sorted(shape.reads):
        # A time-partitioned table keeps only the rows of its interval, so its time column decides rows too.
        of_time = shape.reads[parent].outputs.get(model.time_column, frozenset())
        rows = [ROWS] if parent in deciding else []
        for column_read in (*sorted(shape.reads[parent].rows | of_time), *rows):
            yield Edge(Node(parent, column_read), Node(name, ROWS), How.DECIDES_ROWS)


def _why_not(shape: Shape, parents: Mapping[str, Parent]) -> str:
    unknown = [f"`{name}`" for name in sorted(shape.reads) if parents.get(name, UNKNOWN).columns is None]
    if unknown:
        return f"the columns of {', '.join(unknown)} are not known"
    if shape.unresolved:
        return f"its query names a column `{shape.unresolved}` that nothing it reads has"
    return "its query has a part that is not followed column by column"


def _resolve_name(graph: Graph, target: str) -> tuple[str, str | None]:
    """The model, or the table that models read, and the column."""
    known = {*graph.models, *(name for model in graph.models.values() for name in model.depends_on)}
    parts = target.strip().lower().split(".")
    whole = next((n for n in (3, 2) if ".".join(parts[:n]) in known), 2)
    model, dot, column = ".".join(parts[:whole]), len(parts) > whole, ".".join(parts[whole:])
    if model not in known:
        raise RequestError(f"There is no model `{model if dot else target}`.", hint=did_you_mean(model, known))
    if dot and not column:
        raise RequestError(f"`{target}` ends where a column is expected.", hint="Write MODEL or MODEL.COLUMN.")
    return model, column if dot else None


def _starts(model: str, column: str | None, own: Followed, *, downstream: bool) -> tuple[Node, ...]:
    """A column depends on its values and on its model's rows; what is made from the values does not depend on the
    rows."""
    blurred = bool(own.why_not) and not downstream  # one column is then made from what all are made from
    if column is not None:
        return (Node(model, column),) if downstream or blurred else (Node(model, column), Node(model, ROWS))
    if own.columns is None or blurred:
        return (Node(model, ALL),)
    return tuple(Node(model, name) for name in (*own.columns, ROWS))


def _walk(starts: tuple[Node, ...], edges: Iterable[Edge], *, downstream: bool) -> tuple[Edge, ...]:
    """Every edge that is reached, ending where its neighbour begins even if one of them speaks of all columns."""
    at: dict[str, list[Edge]] = {}
    for edge in edges:
        at.setdefault((edge.source if downstream else edge.target).model, []).append(edge)
    path_edges: dict[Edge, None] = {}
    waiting, seen = list(starts), set(starts)
    for node in waiting:
        for edge in at.get(node.model, ()):
            near, far = (edge.source, edge.target) if downstream else (edge.target, edge.source)
            if not near.meets(node):
                continue
            path_edges[replace(edge, source=node) if downstream else replace(edge, target=node)] = None
            if far not in seen:
                seen.add(far)
                waiting.append(far)
    return tuple(path_edges)
