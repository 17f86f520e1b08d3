"""The settings of INCREMENTAL_BY_TIME_RANGE."""

from __future__ import annotations

from dataclasses import dataclass

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.property import Facet, declare

TIMED = Kind.INCREMENTAL_BY_TIME_RANGE


@dataclass(frozen=True)
class TimeRange:
    time_column: str = ""
    time_format: str = ""  # Spark datetime pattern when the time column is text, e.g. yyyy-MM-dd; '' otherwise
    partition_by_time_column: bool = declare(
        True, Facet.LAYOUT, "`false` partitions a time-range table by a hidden column", TIMED, pinned=True
    )
