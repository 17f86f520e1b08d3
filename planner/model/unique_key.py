"""The settings of kinds that merge rows by a key: INCREMENTAL_BY_UNIQUE_KEY, and those with history."""

from __future__ import annotations

from dataclasses import dataclass

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.property import Facet, declare

KEYED = Kind.INCREMENTAL_BY_UNIQUE_KEY


@dataclass(frozen=True)
class UniqueKey:
    unique_key: tuple[str, ...] = ()  # columns and expressions over them, in Spark SQL
    when_matched: str = ""  # WHEN MATCHED ... of a MERGE, in Spark SQL over `source` and `target`
    merge_filter: str = ""  # a condition over `source` and `target`, in Spark SQL
    null_safe_key: bool = declare(False, Facet.ROWS, "rows whose key is NULL have the same key", KEYED)
    delete_insert: bool = declare(False, Facet.ROWS, "a key may have several rows", KEYED)
