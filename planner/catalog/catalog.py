"""The catalog as data: each model with its columns, their lineage, its queries, and the table that prod shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache

from mergeplan.planner.errors import Place
from mergeplan.planner.intervals import Timeline
from mergeplan.planner.model.exposure import Exposure
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.costs import TableHistory, TableSize
from mergeplan.planner.project.lineage import Node
from mergeplan.planner.semantics.types import normalize_type

WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class CatalogColumn:
    """A column with its neighbours in the lineage.

    `made_from` are the columns whose values go into it, or whose model's rows do. `read_by` are the columns that are
    made from it, with `ROWS` for a model whose rows it decides, and `ALL` for one whose query cannot be followed.
    """

    name: str
    type: str = ""  # that follows from the project's files; '' when it is not known
    description: str = ""
    made_from: tuple[Node, ...] = ()
    read_by: tuple[Node, ...] = ()
    stored_type: str = ""  # in the table or the view of the environment, as Spark has it; '' when there is none

    @property
    def known_type(self) -> str:
        return self.type or self.stored_type

    @property
    def has_another_type(self) -> bool:
        """True when the environment has another type than the project's files."""
        return bool(self.stored_type) and normalize_type(self.known_type) != normalize_type(self.stored_type)


@dataclass(frozen=True)
class CatalogAudit:
    """An audit of a model; a standalone one is listed at each model that it reads."""

    name: str
    arguments: tuple[tuple[str, str], ...] = ()
    blocking: bool = True
    standalone: bool = False


@dataclass(frozen=True)
class CatalogTest:
    name: str
    place: Place
    description: str = ""


@dataclass(frozen=True)
class DeployedTable:
    """The table that an environment shows of a model; `current` is False if the file has been edited since."""

    view: str  # '' for a model without a view
    table: str
    version: str
    held: Timeline = ()
    missing: Timeline = ()
    current: bool = True
    history: TableHistory | None = None  # None: no batch of it is on record
    rows: int | None = None  # None: not known
    size: TableSize | None = None  # None: not measured yet


@dataclass(frozen=True)
class CatalogQuery:
    """The lineage and text of a model's query.

    `columns` is None when they are not known. `row_deciders` are the columns and the rows that decide which rows it
    has. `unfollowed` says why the query is not followed column by column, '' when it is.
    """

    columns: tuple[CatalogColumn, ...] | None = None
    row_deciders: tuple[Node, ...] = ()
    unfollowed: str = ""
    rendered: str = ""  # with dates and embedded models filled in


@dataclass(frozen=True)
class CatalogModel:
    """A model of the catalog; `find_query` follows its query, which takes long, when it is asked for."""

    declared: Model = field(repr=False)
    find_query: Callable[[], CatalogQuery] = field(default=CatalogQuery, repr=False, compare=False)
    parents: tuple[str, ...] = ()  # every table that it reads, models or not
    readers: tuple[str, ...] = ()
    audits: tuple[CatalogAudit, ...] = ()
    tests: tuple[CatalogTest, ...] = ()
    exposures: tuple[str, ...] = ()  # their names
    deployed: DeployedTable | None = None  # None: the environment does not have it

    @cached_property
    def query(self) -> CatalogQuery:
        return self.find_query()

    @property
    def columns(self) -> tuple[CatalogColumn, ...] | None:
        return self.query.columns

    @property
    def row_deciders(self) -> tuple[Node, ...]:
        return self.query.row_deciders

    @property
    def unfollowed(self) -> str:
        return self.query.unfollowed

    @property
    def rendered(self) -> str:
        return self.query.rendered

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def kind(self) -> str:
        return str(self.declared.kind)

    @property
    def source(self) -> str:
        """Its definition as it is written; '' for an external table, which is an item of a list."""
        return "" if self.declared.kind.is_external else self.declared.source.strip()

    @property
    def schedule(self) -> str:
        """Its cron with the time zone, '' for what is not scheduled."""
        cron = self.declared.cron
        return f"{cron.text} {cron.tz}".strip() if self.declared.kind.has_query else ""


@dataclass(frozen=True)
class UnusedColumn:
    """A column that nothing needs; `named_by` are the models that read it all the same, or whose query names it."""

    model: str
    column: str
    declared: Model = field(repr=False)
    named_by: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """Where its model names it first; looked for only now."""
        return Place(self.declared.path, lines_of_words(self.declared).get(self.column, self.declared.line))


@dataclass(frozen=True)
class UnopenedModel:
    """A file of which not all models are in the catalog, and why."""

    place: Place
    reason: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class Catalog:
    """The models of a project's files, parents first, beside what an environment shows of them."""

    project: str
    environment: str
    made_at: datetime
    models: Mapping[str, CatalogModel]
    revision: int = 0  # of the environment; 0: never promoted
    promoted_at: datetime | None = None
    exposures: tuple[Exposure, ...] = ()
    unopened: tuple[UnopenedModel, ...] = ()
    default_catalog: str = ""  # as Spark calls it: of names of two parts; '' where it is not known
    _find_unused: Callable[[], tuple[UnusedColumn, ...] | None] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def unused_columns(self) -> tuple[UnusedColumn, ...] | None:
        """The columns that nothing needs; None where a model cannot be opened: it may read any column."""
        return self._find_unused()

    @cached_property
    def unused_names(self) -> frozenset[tuple[str, str]]:
        return frozenset((column.model, column.column) for column in self.unused_columns or ())

    @property
    def outside_tables(self) -> tuple[str, ...]:
        """The tables that models read and no file declares, sorted."""
        read = {parent for model in self.models.values() for parent in model.parents}
        return tuple(sorted(read - self.models.keys()))


@lru_cache(maxsize=64)
def lines_of_words(model: Model) -> Mapping[str, int]:
    """Return the first line of each word of a model's query, or of its definition."""
    block, _, query = model.source.partition(";")
    lines: dict[str, int] = {}
    for text, first in ((query, block.count("\n") + 1), (block, 1)):
        for number, line in enumerate(text.split("\n"), start=first):
            for word in WORD.findall(line.partition("--")[0].lower()):
                lines.setdefault(word, number)
    return lines
