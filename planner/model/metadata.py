"""The description of a model and of its columns, and the greatest age of its table, which change no row."""

from dataclasses import dataclass

from mergeplan.planner.model.property import Facet, declare


@dataclass(frozen=True)
class Freshness:
    """The ages (seconds, 0 for no limit) from which a table is late, and how its newest moment is measured.

    `loaded_at` (Spark SQL) is the moment at which a row was loaded, over the rows for which `filter` holds; `query`
    returns the newest moment itself. Without either, the moment is the table's last write, or the end of what runs
    have filled.
    """

    warn_after: int = 0
    error_after: int = 0
    loaded_at: str = ""
    filter: str = ""
    query: str = ""

    @property
    def asks_rows(self) -> bool:
        return bool(self.loaded_at or self.query)

    @property
    def limit(self) -> int:
        """The shorter of both ages, in seconds."""
        return min(age for age in (self.warn_after, self.error_after) if age)


@dataclass(frozen=True)
class Metadata:
    description: str = ""
    column_descriptions: tuple[tuple[str, str], ...] = ()
    owner: str = declare("", Facet.METADATA, "who answers for it", pinned=True)
    tags: tuple[str, ...] = declare((), Facet.METADATA, "words by which it is selected", pinned=True)
    grain: tuple[str, ...] = ()
    freshness: Freshness | None = declare(None, Facet.METADATA, "the age from which its table is late")  # noqa: RUF009
