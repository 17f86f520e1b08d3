"""Which merge a model's kind asks for."""

from __future__ import annotations

from datetime import datetime

from planner.intervals import Interval
from planner.model.model import Column, Model
from planner.parsing.macros.expand import dates
from planner.tables.merge.relations import MergeBatch
from planner.tables.merge.scd_type_2 import versions
from planner.tables.merge.unique_key import upsert


def merged(
    model: Model, query: str, base: str, columns: tuple[Column, ...], interval: Interval, execution: datetime
) -> str:
    """The SELECT of what a table with these columns is to hold after a batch.

    `query` is the model's for the interval, `base` names what the table held before, '' for nothing; `execution` is
    the moment of the run, in UTC.
    """
    kept = {column.name for column in model.kept_columns}
    own = tuple(column for column in columns if column.name not in kept)
    batch = MergeBatch(model.name, query, base, own, model.unique_key)
    if model.history:
        return versions(batch, model.history, execution)
    return upsert(batch, model.when_matched, model.merge_filter, dates(interval, execution))
