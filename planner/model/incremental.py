"""The settings of incremental kinds."""

from dataclasses import dataclass

from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.property import Facet, declare

TIMED = Kind.INCREMENTAL_BY_TIME_RANGE
KEYED = Kind.INCREMENTAL_BY_UNIQUE_KEY


@dataclass(frozen=True)
class ChangePolicy:
    """The way in which an edit of an incremental model, and a request to compute it again, reach its table."""

    forward_only: bool = False
    disable_restatement: bool = False
    on_destructive_change: str = "error"  # of a forward-only change: error, warn, allow or ignore
    on_additive_change: str = "allow"
    auto_restatement_cron: Cron | None = None
    auto_restatement_intervals: int | None = None  # how many units a restatement reaches back; None: all


@dataclass(frozen=True)
class TimeRange:
    time_column: str = ""
    time_format: str = ""  # Spark datetime pattern when the time column is text, e.g. yyyy-MM-dd; '' otherwise
    partition_by_time_column: bool = declare(
        True, Facet.LAYOUT, "`false` partitions a time-range table by a hidden column", TIMED, pinned=True
    )


@dataclass(frozen=True)
class UniqueKey:
    """The settings of kinds that merge rows by a key: INCREMENTAL_BY_UNIQUE_KEY, and those with history."""

    unique_key: tuple[str, ...] = ()  # columns and expressions over them, in Spark SQL
    when_matched: str = ""  # WHEN MATCHED ... of a MERGE, in Spark SQL over `source` and `target`
    merge_filter: str = ""  # a condition over `source` and `target`, in Spark SQL
    null_safe_key: bool = declare(False, Facet.ROWS, "rows whose key is NULL have the same key", KEYED)
    delete_insert: bool = declare(False, Facet.ROWS, "a key may have several rows", KEYED)
