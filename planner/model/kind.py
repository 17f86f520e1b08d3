"""The kinds of models, as a table of traits: the rest of the program asks a kind what it can do, and not which it is.

A new kind is a row here, the settings that it takes (`parsing/definitions/kinds.py`), the writer of its batches where
it fills its table in a new way (`apply/backfill/write_batch.py`), and its row in `docs/reference/kinds.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto


class Kept(Enum):
    """Where the rows of a model lie."""

    TABLE = auto()  # in a physical table of ours
    VIEW = auto()  # nowhere: its query runs when the view is read
    INLINE = auto()  # nowhere: its query stands inside those that read it
    OUTSIDE = auto()  # in a table that others write


class Fill(Enum):
    """How a batch comes into a table."""

    NOTHING = auto()
    FILE = auto()  # the rows of a file of the project take the place of all
    WHOLE = auto()  # the query's rows take the place of all
    TIME = auto()  # they take the place of those of their interval
    PARTITION = auto()  # they take the place of those of their partitions
    KEY = auto()  # they are merged by unique key
    APPEND = auto()  # they are added
    HISTORY = auto()  # they are merged as versions, each with the time in which it was in force


@dataclass(frozen=True)
class Traits:
    """What a kind can do."""

    kept: Kept
    fill: Fill = Fill.NOTHING
    may_read_itself: bool = False  # tried again, a batch finds its table as it was before it
    always_forward_only: bool = False
    keeps_history: bool = False  # the table holds what its query would not return any more


class Kind(StrEnum):
    """How a model's table is kept, by the name that a MODEL block gives it."""

    SEED = "SEED"
    VIEW = "VIEW"
    FULL = "FULL"
    EMBEDDED = "EMBEDDED"
    EXTERNAL = "EXTERNAL"
    INCREMENTAL_BY_TIME_RANGE = "INCREMENTAL_BY_TIME_RANGE"
    INCREMENTAL_BY_UNIQUE_KEY = "INCREMENTAL_BY_UNIQUE_KEY"
    INCREMENTAL_BY_PARTITION = "INCREMENTAL_BY_PARTITION"
    INCREMENTAL_UNMANAGED = "INCREMENTAL_UNMANAGED"
    SCD_TYPE_2_BY_TIME = "SCD_TYPE_2_BY_TIME"
    SCD_TYPE_2_BY_COLUMN = "SCD_TYPE_2_BY_COLUMN"

    @property
    def traits(self) -> Traits:
        """Its row of the table."""
        return TRAITS[self]

    @property
    def fill(self) -> Fill:
        """How a batch comes into its table."""
        return self.traits.fill

    @property
    def is_stored(self) -> bool:
        """True when rows of this kind lie in a physical table of ours."""
        return self.traits.kept is Kept.TABLE

    @property
    def is_view(self) -> bool:
        """True when its query runs each time that its view is read."""
        return self.traits.kept is Kept.VIEW

    @property
    def has_view(self) -> bool:
        """True when an environment shows this model as a view."""
        return self.is_stored or self.is_view

    @property
    def is_embedded(self) -> bool:
        """True when its query stands inside those that read it."""
        return self.traits.kept is Kept.INLINE

    @property
    def is_external(self) -> bool:
        """True when others write its table."""
        return self.traits.kept is Kept.OUTSIDE

    @property
    def is_seed(self) -> bool:
        """True when its rows are those of a file of the project."""
        return self.fill is Fill.FILE

    @property
    def has_query(self) -> bool:
        """True when its rows come of a query, or of code."""
        return not self.is_seed and not self.is_external

    @property
    def is_by_time(self) -> bool:
        """True when each batch takes the place of the rows of its interval, whenever that is computed."""
        return self.fill is Fill.TIME

    @property
    def is_incremental(self) -> bool:
        """True when the table is filled interval by interval, each computed once."""
        return self.is_by_time or self.is_order_dependent

    @property
    def is_order_dependent(self) -> bool:
        """True when each batch builds on what the table held before it: batches run strictly in order of time, one at
        a time, and none is computed again without those after it."""
        return self.fill in (Fill.KEY, Fill.PARTITION, Fill.APPEND, Fill.HISTORY)

    @property
    def keeps_history(self) -> bool:
        """True when the table holds what its query would not return any more: to build it anew loses that."""
        return self.traits.keeps_history


TRAITS: Mapping[Kind, Traits] = {
    Kind.SEED: Traits(Kept.TABLE, Fill.FILE),
    Kind.VIEW: Traits(Kept.VIEW),
    Kind.FULL: Traits(Kept.TABLE, Fill.WHOLE),
    Kind.EMBEDDED: Traits(Kept.INLINE),
    Kind.EXTERNAL: Traits(Kept.OUTSIDE),
    Kind.INCREMENTAL_BY_TIME_RANGE: Traits(Kept.TABLE, Fill.TIME, may_read_itself=True),
    Kind.INCREMENTAL_BY_UNIQUE_KEY: Traits(Kept.TABLE, Fill.KEY, may_read_itself=True),
    Kind.INCREMENTAL_BY_PARTITION: Traits(Kept.TABLE, Fill.PARTITION, may_read_itself=True, always_forward_only=True),
    Kind.INCREMENTAL_UNMANAGED: Traits(Kept.TABLE, Fill.APPEND, may_read_itself=True, keeps_history=True),
    Kind.SCD_TYPE_2_BY_TIME: Traits(Kept.TABLE, Fill.HISTORY, keeps_history=True),
    Kind.SCD_TYPE_2_BY_COLUMN: Traits(Kept.TABLE, Fill.HISTORY, keeps_history=True),
}
