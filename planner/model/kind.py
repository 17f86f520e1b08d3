"""The kinds of models, as a table of traits: other code asks a kind what it can do, and not which it is.

A new kind is a row here, the settings that it takes (`parsing/definitions/kinds.py`), the writer of its batches if it
fills its table in a new way (`apply/backfill/write_batch.py`), and its row in `docs/reference/kinds.md`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto


class Kept(Enum):
    """The place where the rows of a model are stored."""

    TABLE = auto()  # in a physical table of ours
    VIEW = auto()  # nowhere: its query runs when the view is read
    INLINE = auto()  # nowhere: its query is part of its readers'
    OUTSIDE = auto()  # in a table that others write


class Fill(Enum):
    """The way in which a batch is written to a table."""

    NOTHING = auto()
    FILE = auto()  # the rows of a file of the project replace all rows
    WHOLE = auto()  # the query's rows replace all rows
    TIME = auto()  # they replace those of their interval
    PARTITION = auto()  # they replace those of their partitions
    KEY = auto()  # they are merged by unique key
    APPEND = auto()  # they are added
    HISTORY = auto()  # they are merged as versions, each with the time in which it was in force


@dataclass(frozen=True)
class Traits:
    """The abilities of a kind."""

    kept: Kept
    fill: Fill = Fill.NOTHING
    may_read_itself: bool = False  # tried again, a batch finds its table as it was before it
    always_forward_only: bool = False
    keeps_history: bool = False  # the table holds rows that its query no longer returns


class Kind(StrEnum):
    """The way in which a model's table is filled and stored, by its name in a MODEL block."""

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
        """The kind's row of the table."""
        return TRAITS[self]

    @property
    def fill(self) -> Fill:
        """The way in which a batch is written to its table."""
        return self.traits.fill

    @property
    def is_stored(self) -> bool:
        """True if rows of this kind are in a physical table of ours."""
        return self.traits.kept is Kept.TABLE

    @property
    def is_view(self) -> bool:
        """True if its query runs each time that its view is read."""
        return self.traits.kept is Kept.VIEW

    @property
    def has_view(self) -> bool:
        """True if an environment shows this model as a view."""
        return self.is_stored or self.is_view

    @property
    def is_embedded(self) -> bool:
        """True if its query is part of its readers'."""
        return self.traits.kept is Kept.INLINE

    @property
    def is_external(self) -> bool:
        """True if others write its table."""
        return self.traits.kept is Kept.OUTSIDE

    @property
    def is_seed(self) -> bool:
        """True if its rows are those of a file of the project."""
        return self.fill is Fill.FILE

    @property
    def has_query(self) -> bool:
        """True if a query or code returns its rows."""
        return not self.is_seed and not self.is_external

    @property
    def is_by_time(self) -> bool:
        """True if each batch replaces the rows of its interval, whenever that is computed."""
        return self.fill is Fill.TIME

    @property
    def is_incremental(self) -> bool:
        """True if the table is filled interval by interval, each computed once."""
        return self.is_by_time or self.is_order_dependent

    @property
    def is_order_dependent(self) -> bool:
        """True if batches build on the table before them: they run in order, none is repeated without later ones."""
        return self.fill in (Fill.KEY, Fill.PARTITION, Fill.APPEND, Fill.HISTORY)

    @property
    def keeps_history(self) -> bool:
        """True if the table holds rows that its query no longer returns, which a rebuild would lose."""
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
