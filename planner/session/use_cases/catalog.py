"""catalog: the project's models as data, beside what an environment shows of them. It starts no Spark."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from mergeplan.planner.cache.store import Cache, Lookups
from mergeplan.planner.cache.version import reader_version
from mergeplan.planner.catalog.build import CatalogSources, build_catalog
from mergeplan.planner.catalog.catalog import Catalog, UnusedColumn
from mergeplan.planner.errors import RequestError
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.semantics.shape_memory import ShapeMemory
from mergeplan.planner.session.workspace import Workspace, load_state
from mergeplan.planner.snapshot.environment import PROD, Environment

BATCHES = 20  # of each table, the newest


def make_catalog(work: Workspace, environment: str) -> Catalog:
    """Build the catalog of the project's files beside an environment; raise RequestError if it does not exist.

    Prod may be empty still. The analysis of the queries is cached for the next call.
    """
    catalog = outline_catalog(work, environment)
    for model in catalog.models.values():
        _ = model.query
    return catalog


def outline_catalog(work: Workspace, environment: str, on_follow: Callable[[int], None] = lambda done: None) -> Catalog:
    """Build the catalog of which a query is followed when it is asked for, though the workspace is closed by then.

    `on_follow` then receives the number of queries that are analysed.
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
    open_memory = partial(_open_memory, work.settings.cache)
    sources = CatalogSources(work.project, environment, loaded, work.now, open_memory, on_follow)
    if tables := [snapshot.table for snapshot in environment.snapshots.values()]:
        stored_tables, histories = work.store.tables.load(tables), work.store.costs.load_history(tables, BATCHES)
        columns = {name: table.columns for name, table in stored_tables.items()}
        sizes = {name: table.size for name, table in stored_tables.items() if table.size}
        sources = replace(sources, stored_columns=columns, histories=histories, sizes=sizes)
    return build_catalog(sources)


@contextmanager
def _open_memory(folder: Path | None) -> Iterator[ShapeMemory]:
    with closing(Lookups(Cache(folder))) as lookups:
        yield ShapeMemory(lookups, reader_version())
        lookups.keep()
