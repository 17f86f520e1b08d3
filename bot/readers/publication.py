"""What a project shows others of its prod: its views, and the tables of others that its models and exposures read.

Pure. A column that is not certainly unread counts as read: a wrong "nobody reads it" breaks a table of somebody's.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mergeplan.planner.contract.catalog import CatalogModelRow, CatalogView
from mergeplan.planner.contract.tables import LineageEnd
from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.project.lineage import ALL

EXTERNAL = "EXTERNAL"
TEXT_MAX = 200  # characters of an owner or an exposure's name
NAME_MAX = 400  # characters of a table's full name; a longer one is no table's


@dataclass(frozen=True)
class TableReader:
    """A model that reads another project's table, or an exposure of it; `columns` is None where any may be read."""

    name: str
    columns: tuple[str, ...] | None
    owner: str = ""
    is_exposure: bool = False
    path: str = ""
    approvers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Publication:
    """The prod of one project: the full name of each model's view, and the readers of each table of others.

    `shown_to` are the names of the repositories that may see the names of these readers.
    """

    views: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, tuple[TableReader, ...]] = field(default_factory=dict)
    shown_to: tuple[str, ...] = ()


class Column(NamedTuple):
    """A column of a model or table, '' for its rows and ALL for any."""

    model: str
    name: str


def publish_catalog(catalog: CatalogView) -> Publication:
    default = catalog.default_catalog or SESSION_CATALOG
    deployed = ((model.name, model.deployed) for model in catalog.models)
    views = {name: full_name(row.view, default) for name, row in deployed if row is not None and row.view}
    models = {model.name: model for model in catalog.models if model.kind.upper() != EXTERNAL}
    declared = {m.name: {column.name.lower() for column in m.columns or ()} for m in catalog.models}
    readers: dict[str, list[TableReader]] = {}
    for table, reader in (*_find_model_readers(models), *_find_exposures(catalog, models)):
        # A query of all columns, as they are declared here, may be of all columns that there are.
        reads_all = bool(declared.get(table)) and declared[table] <= set(reader.columns or ())
        entry = replace(reader, columns=None) if reads_all else reader
        readers.setdefault(full_name(table, default), []).append(entry)
    reads = {
        table: tuple(entries) for table, entries in readers.items() if len(table) <= NAME_MAX and table.isprintable()
    }
    return Publication(views, reads)


def _find_model_readers(models: Mapping[str, CatalogModelRow]) -> Iterator[tuple[str, TableReader]]:
    for model in models.values():
        for table in dict.fromkeys(model.parents):
            if table not in models:
                yield (
                    table,
                    TableReader(model.name, _read_columns(model, table), model.owner[:TEXT_MAX], path=model.path),
                )


def _find_exposures(catalog: CatalogView, models: Mapping[str, CatalogModelRow]) -> Iterator[tuple[str, TableReader]]:
    for exposure in catalog.exposures:
        for table, columns in _trace_columns(models, exposure.models).items():
            yield table, TableReader(exposure.name[:TEXT_MAX], columns, exposure.owner[:TEXT_MAX], is_exposure=True)


def full_name(table: str, default_catalog: str) -> str:
    """Return the name of a table with its catalog, in lower case.

    >>> full_name("core.orders", "spark_catalog"), full_name("lake.core.orders", "spark_catalog")
    ('spark_catalog.core.orders', 'lake.core.orders')
    """
    return table.lower() if table.count(".") > 1 else f"{default_catalog}.{table}".lower()


def _read_columns(model: CatalogModelRow, table: str) -> tuple[str, ...] | None:
    """Return the columns of a table that a model reads; () for its rows alone, None for any."""
    if model.unfollowed or model.columns is None:
        return None
    ends = (*model.row_deciders, *(end for column in model.columns for end in column.made_from))
    return _name_columns(end.column or "" for end in ends if end.model == table)


def _name_columns(names: Iterable[str]) -> tuple[str, ...] | None:
    """Return the names without the rows' mark; None where any column may be among them, or no trace was found."""
    columns = {name.lower() for name in names}
    return None if ALL in columns or not columns else tuple(sorted(columns - {""}))


def _trace_columns(models: Mapping[str, CatalogModelRow], names: Iterable[str]) -> Mapping[str, tuple[str, ...] | None]:
    waiting = [Column(name, column) for name in names for column in (ALL, "")]
    reached, tables = set(waiting), dict[str, set[str]]()
    while waiting:
        column = waiting.pop()
        if column.model not in models:
            tables.setdefault(column.model, set()).add(column.name)
            continue
        for source in _find_sources(models[column.model], column.name):
            if source not in reached:
                reached.add(source)
                waiting.append(source)
    return {table: _name_columns(columns) for table, columns in tables.items()}


def _find_sources(model: CatalogModelRow, column: str) -> Iterator[Column]:
    if model.unfollowed or model.columns is None:
        yield from (Column(parent, ALL) for parent in model.parents)
        return
    if column in ("", ALL):
        yield from map(_to_column, model.row_deciders)
    for candidate in model.columns:
        if column in (ALL, candidate.name):
            yield from map(_to_column, candidate.made_from)


def _to_column(end: LineageEnd) -> Column:
    return Column(end.model, end.column or "")
