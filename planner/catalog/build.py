"""From a project, its lineage and an environment to the catalog."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial

from mergeplan.planner.catalog import catalog
from mergeplan.planner.catalog.unused import find_unused_columns
from mergeplan.planner.errors import Place
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.parsing.definitions.audits.audit_calls import is_blocking
from mergeplan.planner.parsing.definitions.formatting import format_tree
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.render import render_model
from mergeplan.planner.plan.costs import TableHistory, TableSize
from mergeplan.planner.plan.schedule import Loaded, Window, schedule_run
from mergeplan.planner.project.lineage import ALL, ROWS, Followed, FollowedModels, Node
from mergeplan.planner.project.loader import Project
from mergeplan.planner.semantics.shape_memory import NO_MEMORY, ShapeMemory
from mergeplan.planner.snapshot.environment import Environment


@dataclass(frozen=True)
class CatalogSources:
    project: Project
    environment: Environment
    loaded: Loaded
    now: datetime
    open_memory: Callable[[], AbstractContextManager[ShapeMemory]] = lambda: nullcontext(NO_MEMORY)
    on_follow: Callable[[int], None] = lambda done: None  # hears how many queries are followed
    stored_columns: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)  # by physical table
    sizes: Mapping[str, TableSize] = field(default_factory=dict)  # by physical table
    histories: Mapping[str, TableHistory] = field(default_factory=dict)  # by physical table


def build_catalog(sources: CatalogSources) -> catalog.Catalog:
    """Return the catalog of the project's models, parents first; no query is followed before it is asked for."""
    project, environment = sources.project, sources.environment
    graph = graph_of(project.models)
    builder = _Builder(sources, graph)
    models = {name: builder.build(name) for name in graph.order}
    unopened = tuple(_list_unopened(project))
    return catalog.Catalog(
        project=project.config.project or project.root.name,
        environment=environment.name,
        made_at=sources.now,
        models=models,
        revision=environment.revision,
        promoted_at=environment.promoted_at,
        exposures=project.exposures,
        unopened=unopened,
        default_catalog=project.catalogs.in_spark,
        _find_unused=lambda: None if unopened else find_unused_columns(models, project.standalone),
    )


class Neighbours:
    def __init__(self, lineage: Mapping[str, Followed]) -> None:
        self.made_from: dict[Node, dict[Node, None]] = {}
        self.read_by: dict[Node, dict[Node, None]] = {}
        for followed in lineage.values():
            for edge in followed.edges:
                self.made_from.setdefault(edge.target, {})[edge.source] = None
                self.read_by.setdefault(edge.source, {})[edge.target] = None

    def column(self, model: str, name: str) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """Return the sources of a column, and its readers, by itself or as one of all columns."""
        column_node, every = Node(model, name), Node(model, ALL)
        sources = {**self.made_from.get(column_node, {}), **self.made_from.get(every, {})}
        targets = {**self.read_by.get(column_node, {}), **self.read_by.get(every, {})}
        return tuple(sources), tuple(targets)

    def row_deciders(self, model: str) -> tuple[Node, ...]:
        return tuple({**self.made_from.get(Node(model, ROWS), {}), **self.made_from.get(Node(model, ALL), {})})


class _Builder:
    """Builds each model; what is looked up for each is sorted by model once."""

    def __init__(self, sources: CatalogSources, graph: Graph) -> None:
        self.sources, self.graph = sources, graph
        self.find_queries = cache(partial(_follow_queries, sources, graph))
        self.deployed = _deployed_tables(sources)
        self.tests: dict[str, list[catalog.CatalogTest]] = {}
        for test in sources.project.tests:
            self.tests.setdefault(test.model, []).append(catalog.CatalogTest(test.name, test.place, test.description))
        self.exposures: dict[str, list[str]] = {}
        for exposure in sources.project.exposures:
            for name in exposure.models:
                self.exposures.setdefault(name, []).append(exposure.name)

    def build(self, name: str) -> catalog.CatalogModel:
        model = self.sources.project.models[name]
        return catalog.CatalogModel(
            declared=model,
            find_query=lambda: self.find_queries()[name],
            parents=model.depends_on,
            readers=self.graph.children[name],
            audits=tuple(list_audits(self.sources.project, model)),
            tests=tuple(self.tests.get(name, ())),
            exposures=tuple(self.exposures.get(name, ())),
            deployed=self.deployed.get(name),
        )


def _follow_queries(sources: CatalogSources, graph: Graph) -> Mapping[str, catalog.CatalogQuery]:
    snapshots, embedded = sources.environment.snapshots, sources.project.models_to_inline
    queries: dict[str, catalog.CatalogQuery] = {}
    with sources.open_memory() as memory:
        lineage = FollowedModels(graph, memory, on_follow=sources.on_follow)
        neighbours = Neighbours(lineage)
        for name in graph.order:
            model, followed = graph.models[name], lineage[name]
            stored = sources.stored_columns.get(snapshots[name].table, ()) if name in snapshots else ()
            columns = build_columns(model, followed, neighbours, stored)
            rendered = render_query(model, embedded, sources.now, memory)
            queries[name] = catalog.CatalogQuery(columns, neighbours.row_deciders(name), followed.why_not, rendered)
    return queries


def build_columns(
    model: Model, followed: Followed, neighbours: Neighbours, stored_columns: tuple[Column, ...] = ()
) -> tuple[catalog.CatalogColumn, ...] | None:
    """Return the columns that follow from the files, or else those of the table; None where neither is known."""
    stored_types = {column.name: column.type for column in stored_columns}
    names = tuple(stored_types) or None if followed.columns is None else followed.columns
    if names is None:
        return None
    types = followed.table.certain_types | {column.name: column.type for column in model.columns}
    comments = {column.name: column.comment for column in model.columns} | dict(model.metadata.column_descriptions)
    return tuple(
        catalog.CatalogColumn(
            name,
            types.get(name, ""),
            comments.get(name, ""),
            *neighbours.column(model.name, name),
            stored_type=stored_types.get(name, ""),
        )
        for name in names
    )


def list_audits(project: Project, model: Model) -> Iterator[catalog.CatalogAudit]:
    for call in model.checks.audits:
        yield catalog.CatalogAudit(call.name, call.arguments, is_blocking(call, project.audits))
    for audit in project.standalone:
        if model.name in audit.depends_on and not audit.skip:
            yield catalog.CatalogAudit(audit.name, (), audit.blocking, standalone=True)


def render_query(model: Model, embedded_models: Mapping[str, Model], now: datetime, memory: ShapeMemory) -> str:
    """Return the query as Spark runs it for the last completed interval; '' for a model without one."""
    if not model.sql:
        return ""
    sql = model.written.text.strip() or model.sql
    if "@" in sql or embedded_models.keys() & set(model.depends_on):
        due = model.cron.due(now)
        interval = Interval(model.cron.cut(due - timedelta(seconds=1)), due)
        sql = render_model(model, {}, embedded_models, interval, now)
    elif sql in model.source:
        return sql  # as it is written: most queries need no parse
    key = memory.key("layout", sql)
    text = memory.recall(str, key)
    if text is None:
        text = format_tree(spark_tree(sql), "spark")
        memory.remember(key, text)
    return text


def _deployed_tables(sources: CatalogSources) -> dict[str, catalog.DeployedTable]:
    environment, models = sources.environment, sources.project.models
    snapshots = environment.snapshots
    graph = graph_of({name: snapshot.model for name, snapshot in snapshots.items()})
    behind = schedule_run(graph, snapshots, sources.loaded, Window(sources.now)) if snapshots else {}
    tables: dict[str, catalog.DeployedTable] = {}
    for name, snapshot in snapshots.items():
        shown = name in environment.views and snapshot.kind.has_view
        loaded_time: Timeline = sources.loaded.timeline_of(snapshot) if snapshot.kind.is_stored else ()
        history = sources.histories.get(snapshot.table) if loaded_time else None
        tables[name] = catalog.DeployedTable(
            view=environment.naming.view(name, environment.name) if shown else "",
            table=snapshot.table if snapshot.kind.has_view else "",
            version=snapshot.version,
            held=loaded_time,
            missing=behind.get(name, ((), ()))[1],
            current=name in models and _same_text(models[name], snapshot.model),
            history=history,
            size=sources.sizes.get(snapshot.table),
            rows=history.count_rows(snapshot.model, loaded_time) if history else None,
        )
    return tables


def _same_text(model: Model, deployed: Model) -> bool:
    written = replace(deployed.written, text=model.written.text, text_line=model.written.text_line)
    moved_model = replace(deployed, path=model.path, line=model.line, source=model.source, written=written)
    return model in (deployed, moved_model)


def _list_unopened(project: Project) -> Iterable[catalog.UnopenedModel]:
    for refusal in project.refused.refusals:
        for error in refusal.errors:
            yield catalog.UnopenedModel(error.place or Place(refusal.path), error.message, refusal.models)
    for reader in project.refused.left_out:
        reason = f"`{reader.model}` reads `{reader.reads}`, which cannot be opened."
        yield catalog.UnopenedModel(reader.place.place, reason, (reader.model,))
