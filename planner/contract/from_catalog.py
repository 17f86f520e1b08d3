"""Conversion of the catalog to the contract's objects."""

from collections.abc import Iterable
from datetime import datetime

from mergeplan.planner.catalog.catalog import Catalog, CatalogColumn, CatalogModel, DeployedTable, UnusedColumn
from mergeplan.planner.contract import catalog as rows
from mergeplan.planner.contract.from_plan import format_spans
from mergeplan.planner.contract.schedule import freshness_limits
from mergeplan.planner.contract.tables import LineageEnd
from mergeplan.planner.plan.costs import BatchCost
from mergeplan.planner.project.lineage import Node


def catalog_view(catalog: Catalog) -> rows.CatalogView:
    unused = catalog.unused_columns
    return rows.CatalogView(
        project=catalog.project,
        environment=catalog.environment,
        revision=catalog.revision,
        promoted_at=_format_moment(catalog.promoted_at),
        made_at=catalog.made_at.isoformat(),
        default_catalog=catalog.default_catalog,
        models=tuple(model_row(model) for model in catalog.models.values()),
        exposures=tuple(map(rows.CatalogExposureRow.model_validate, catalog.exposures)),
        unused_columns=None if unused is None else unused_rows(unused),
        unopened=tuple(
            rows.UnopenedRow(path=o.place.path, line=o.place.line, reason=o.reason, models=o.models)
            for o in catalog.unopened
        ),
    )


def model_row(model: CatalogModel) -> rows.CatalogModelRow:
    declared, columns = model.declared, model.columns
    return rows.CatalogModelRow(
        name=model.name,
        kind=model.kind,
        materialization=declared.materialization,
        path=declared.path,
        line=declared.line,
        owner=declared.metadata.owner,
        description=declared.metadata.description,
        tags=declared.metadata.tags,
        schedule=model.schedule,
        interval_unit=declared.cron.unit if model.schedule else "",
        start=_format_moment(declared.schedule.start),
        grain=declared.metadata.grain,
        unique_key=declared.by_key.unique_key,
        time_column=declared.by_time.time_column,
        partitioned_by=declared.storage.partitioned_by,
        format=(declared.storage.table_format or declared.storage.storage_format) if declared.kind.is_stored else "",
        freshness=freshness_limits(declared.metadata.freshness) if declared.metadata.freshness else None,
        columns=None if columns is None else tuple(_column_row(column) for column in columns),
        row_deciders=_lineage_ends(model.row_deciders),
        unfollowed=model.unfollowed,
        parents=model.parents,
        readers=model.readers,
        definition=model.source,
        query=model.rendered,
        audits=tuple(
            rows.CatalogAuditRow(name=a.name, arguments=dict(a.arguments), blocking=a.blocking, standalone=a.standalone)
            for a in model.audits
        ),
        tests=tuple(
            rows.CatalogTestRow(name=t.name, path=t.place.path, line=t.place.line, description=t.description)
            for t in model.tests
        ),
        exposures=model.exposures,
        deployed=_build_deployed_row(model.deployed) if model.deployed else None,
    )


def unused_rows(columns: Iterable[UnusedColumn]) -> tuple[rows.UnusedColumnRow, ...]:
    return tuple(
        rows.UnusedColumnRow(model=c.model, column=c.column, path=c.place.path, line=c.place.line, named_by=c.named_by)
        for c in columns
    )


def _column_row(column: CatalogColumn) -> rows.CatalogColumnRow:
    return rows.CatalogColumnRow(
        name=column.name,
        type=column.type,
        description=column.description,
        made_from=_lineage_ends(column.made_from),
        read_by=_lineage_ends(column.read_by),
        stored_type=column.stored_type,
    )


def _lineage_ends(nodes: Iterable[Node]) -> tuple[LineageEnd, ...]:
    return tuple(LineageEnd(model=node.model, column=node.column or None) for node in nodes)


def _build_deployed_row(deployed: DeployedTable) -> rows.DeployedRow:
    history = deployed.history
    batches = tuple(_batch_row(batch) for batch in history.batches) if history else ()
    return rows.DeployedRow(
        view=deployed.view,
        table=deployed.table,
        version=deployed.version,
        intervals=format_spans(deployed.held),
        missing=format_spans(deployed.missing),
        current=deployed.current,
        rows=deployed.rows,
        bytes=deployed.size.bytes if deployed.size else None,
        measured_at=_format_moment(deployed.size.measured_at) if deployed.size else None,
        rows_written=history.total.rows if history else 0,
        seconds=history.total.seconds if history else 0.0,
        batch_count=history.count if history else 0,
        written_at=_format_moment(history.written_at) if history else None,
        batches=batches,
    )


def _batch_row(batch: BatchCost) -> rows.BatchRow:
    start, at = batch.start.isoformat(), batch.at.isoformat()
    return rows.BatchRow(start=start, units=batch.units, rows=batch.rows, seconds=batch.seconds, at=at)


def _format_moment(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
