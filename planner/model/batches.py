"""The batches in which an incremental model is computed."""

from __future__ import annotations

from dataclasses import dataclass

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.property import Facet, declare

KINDS = Kind.INCREMENTAL_BY_TIME_RANGE, Kind.INCREMENTAL_BY_UNIQUE_KEY


@dataclass(frozen=True)
class Batches:
    batch_size: int | None = None  # intervals per batch; None: all in one
    batch_concurrency: int | None = None
    lookback: int = declare(0, Facet.METADATA, "units that are computed again", *KINDS, pinned=True)
    insert_overwrite: bool = declare(
        False, Facet.ROWS, "a batch takes the place of what it writes to", Kind.INCREMENTAL_UNMANAGED, pinned=True
    )
