"""catalog: the project's models as data, beside what an environment shows of them. It starts no Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mergeplan.planner.catalog.build import CatalogSources, build_catalog
from mergeplan.planner.catalog.catalog import Catalog, UnusedColumn
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.project.lineage import FollowedModels
from mergeplan.planner.session.workspace import Workspace, load_state
from mergeplan.planner.snapshot.environment import PROD, Environment

BATCHES = 20  # of each table, the newest


def make_catalog(work: Workspace, environment: str, on_follow: Callable[[int], None] = lambda done: None) -> Catalog:
    """Build the catalog of the project's files beside an environment; raise RequestError if it does not exist.

    Prod may be empty still. The analysis of the queries is cached for the next call. `on_follow` receives the number of
    queries that are analysed.
    """
    shown = work.store.environments.get(PROD) if environment == PROD else work.environment(environment)
    return _build_catalog(work, shown, load_state(work), on_follow)


def list_unused_columns(work: Workspace) -> tuple[UnusedColumn, ...]:
    """Return the columns that nothing needs; raise RequestError while a model cannot be opened. Read no state."""
    catalog = _build_catalog(work, Environment(PROD), Loaded({}))
    if catalog.unused_columns is None:
        file = catalog.unopened[0]
        message = f"The unused columns are not known while a model cannot be opened: {file.place}: {file.reason}"
        raise RequestError(message, hint="Correct the file: it may read any column.")
    return catalog.unused_columns


def _build_catalog(
    work: Workspace, environment: Environment, loaded: Loaded, on_follow: Callable[[int], None] = lambda done: None
) -> Catalog:
    memory = work.shapes
    lineage = FollowedModels(graph_of(work.project.models), memory, on_follow=on_follow)
    sources = CatalogSources(work.project, lineage, environment, loaded, work.now, memory)
    if tables := [snapshot.table for snapshot in environment.snapshots.values()]:
        stored_tables, histories = work.store.tables.load(tables), work.store.costs.load_history(tables, BATCHES)
        columns = {name: table.columns for name, table in stored_tables.items()}
        sizes = {name: table.size for name, table in stored_tables.items() if table.size}
        sources = replace(sources, stored_columns=columns, histories=histories, sizes=sizes)
    catalog = build_catalog(sources)
    work.lookups.keep()
    return catalog
