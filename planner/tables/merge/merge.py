"""The merge for each kind of model."""

from datetime import datetime

from mergeplan.planner.engine.protocol import MergeInto
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.parsing.macros.expand import dates
from mergeplan.planner.tables.merge.dbt_snapshot import dbt_versions
from mergeplan.planner.tables.merge.delete_insert import delete_insert, delete_insert_into
from mergeplan.planner.tables.merge.relations import MergeBatch
from mergeplan.planner.tables.merge.scd_type_2 import find_double_versions, versions, versions_into
from mergeplan.planner.tables.merge.unique_key import upsert_into, upsert_query


def merge_query(
    model: Model, query: str, base: str, columns: tuple[Column, ...], interval: Interval, execution: datetime
) -> str:
    """Return the SELECT of the content of a table with these columns after a batch.

    `query` is the model's for the interval. `base` names what the table held before, '' for nothing. `execution` is the
    moment of the run, in UTC.
    """
    batch = _build_batch(model, query, base, columns)
    if model.history and model.history.dbt:
        return dbt_versions(batch, model.history, model.history.dbt, execution)
    if model.history:
        return versions(batch, model.history, execution)
    if model.by_key.delete_insert:
        return delete_insert(batch)
    return upsert_query(batch, model.by_key.when_matched, model.by_key.merge_filter, dates(interval, execution))


def merge_statement(
    model: Model, query: str, base: str, columns: tuple[Column, ...], interval: Interval, execution: datetime
) -> MergeInto | None:
    """Return the effect of a batch on `base` as one statement, or None if only the SELECT can express it."""
    if model.reads_itself or (model.history and model.history.dbt):
        return None
    batch = _build_batch(model, query, base, columns)
    if model.history:
        return versions_into(batch, model.history, execution)
    if model.by_key.delete_insert:
        return delete_insert_into(batch)
    return upsert_into(batch, model.by_key.when_matched, model.by_key.merge_filter, dates(interval, execution))


def unusual_rows_query(model: Model, base: str, columns: tuple[Column, ...]) -> str:
    """Return the SELECT of a row of `base` for which `merge_statement` is not enough, or '' if none can exist."""
    if model.history is None or model.history.dbt:
        return ""
    return find_double_versions(_build_batch(model, "", base, columns), model.history)


def _build_batch(model: Model, query: str, base: str, columns: tuple[Column, ...]) -> MergeBatch:
    history_names = {column.name for column in model.history_columns}
    query_columns = tuple(column for column in columns if column.name not in history_names)
    return MergeBatch(model.name, query, base, query_columns, model.by_key.unique_key, model.by_key.null_safe_key)
