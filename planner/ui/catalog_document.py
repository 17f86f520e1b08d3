"""The catalog that a document of the contract describes: the content of its pages, and no more of each model."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache, partial

from mergeplan.planner.catalog.catalog import (
    Catalog,
    CatalogAudit,
    CatalogColumn,
    CatalogModel,
    CatalogQuery,
    CatalogTest,
    DeployedTable,
    UnopenedModel,
    UnusedColumn,
)
from mergeplan.planner.contract import catalog as rows
from mergeplan.planner.contract.base import Spans
from mergeplan.planner.contract.schedule import FreshnessLimits
from mergeplan.planner.contract.tables import LineageEnd
from mergeplan.planner.errors import Place
from mergeplan.planner.intervals import Cron, Interval, Timeline, cron_error
from mergeplan.planner.model.exposure import Exposure
from mergeplan.planner.model.incremental import TimeRange, UniqueKey
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.metadata import Freshness, Metadata
from mergeplan.planner.model.model import DAILY, Model
from mergeplan.planner.model.schedule import Schedule
from mergeplan.planner.model.storage import Storage
from mergeplan.planner.plan.costs import BatchCost, Cost, TableHistory, TableSize
from mergeplan.planner.project.lineage import ROWS, Node


def catalog_of(view: rows.CatalogView) -> Catalog:
    """Return the catalog of a document; raise ValueError for an unknown kind or moment."""
    models = {row.name: _read_model(row) for row in view.models}
    unused = None
    if view.unused_columns is not None:
        unused = tuple(
            UnusedColumn(column.model, column.column, models[column.model].declared, column.named_by)
            for column in view.unused_columns
            if column.model in models
        )
    return Catalog(
        project=view.project,
        environment=view.environment,
        made_at=datetime.fromisoformat(view.made_at),
        models=models,
        revision=view.revision,
        promoted_at=datetime.fromisoformat(view.promoted_at) if view.promoted_at else None,
        exposures=tuple(Exposure(row.name, row.models, row.type, row.owner, row.url) for row in view.exposures),
        unopened=tuple(UnopenedModel(Place(row.path, row.line), row.reason, row.models) for row in view.unopened),
        default_catalog=view.default_catalog,
        _find_unused=lambda: unused,
    )


def _read_model(row: rows.CatalogModelRow) -> CatalogModel:
    columns = None if row.columns is None else tuple(map(_read_column, row.columns))
    return CatalogModel(
        declared=_read_declaration(row),
        find_query=partial(CatalogQuery, columns, _read_nodes(row.row_deciders), row.unfollowed, row.query),
        parents=row.parents,
        readers=row.readers,
        audits=tuple(
            CatalogAudit(audit.name, tuple(audit.arguments.items()), audit.blocking, audit.standalone)
            for audit in row.audits
        ),
        tests=tuple(CatalogTest(test.name, Place(test.path, test.line), test.description) for test in row.tests),
        exposures=row.exposures,
        deployed=_read_deployment(row.deployed) if row.deployed else None,
    )


def _read_declaration(row: rows.CatalogModelRow) -> Model:
    return Model(
        name=row.name,
        kind=Kind(row.kind),
        path=row.path,
        line=row.line,
        source=row.definition,
        depends_on=row.parents,
        cron=_parse_cron(row.schedule, row.interval_unit) if row.schedule else DAILY,
        schedule=Schedule(start=datetime.fromisoformat(row.start) if row.start else None),
        by_time=TimeRange(time_column=row.time_column),
        metadata=Metadata(
            description=row.description,
            owner=row.owner,
            tags=row.tags,
            grain=row.grain,
            freshness=_read_freshness(row.freshness) if row.freshness else None,
        ),
        storage=Storage(storage_format=row.format, partitioned_by=row.partitioned_by),
        by_key=UniqueKey(unique_key=row.unique_key),
        materialization=row.materialization,
    )


def _read_freshness(limits: FreshnessLimits) -> Freshness:
    warn, error = limits.warn_after_seconds or 0, limits.error_after_seconds or 0
    return Freshness(warn, error, limits.loaded_at, limits.filter)


@lru_cache(maxsize=256)
def _parse_cron(schedule: str, unit: str) -> Cron:
    """Return a cron of a schedule that may end with a time zone."""
    if cron_error(schedule) is None:
        return Cron(schedule, "", unit)
    text, _, zone = schedule.rpartition(" ")
    return Cron(text, zone, unit)


def _read_column(row: rows.CatalogColumnRow) -> CatalogColumn:
    ends = _read_nodes(row.made_from), _read_nodes(row.read_by)
    return CatalogColumn(row.name, row.type, row.description, *ends, stored_type=row.stored_type)


def _read_nodes(ends: Iterable[LineageEnd]) -> tuple[Node, ...]:
    return tuple(Node(end.model, ROWS if end.column is None else end.column) for end in ends)


def _read_deployment(row: rows.DeployedRow) -> DeployedTable:
    loaded_time, missing = _read_timeline(row.intervals), _read_timeline(row.missing)
    history = _read_history(row, row.written_at) if row.written_at else None
    size = TableSize(row.bytes, _parse_moment(row.measured_at)) if row.bytes is not None and row.measured_at else None
    return DeployedTable(row.view, row.table, row.version, loaded_time, missing, row.current, history, row.rows, size)


def _read_history(row: rows.DeployedRow, written_at: str) -> TableHistory:
    batches = (
        BatchCost(_parse_moment(batch.start), batch.units, batch.rows, batch.seconds, _parse_moment(batch.at))
        for batch in row.batches
    )
    units = sum(batch.units for batch in row.batches)
    total = Cost(units, row.rows_written, row.seconds)
    return TableHistory(total, row.batch_count, _parse_moment(written_at), tuple(batches))


def _read_timeline(spans: Spans) -> Timeline:
    return tuple(Interval(_parse_moment(start), _parse_moment(end)) for start, end in spans)


def _parse_moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
