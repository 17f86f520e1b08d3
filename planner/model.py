"""A model: what one table is made of, as data. How its text is read is in `parse.py`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from planner.errors import Place
from planner.intervals import Cron

DAILY = Cron("@daily")


class Kind(StrEnum):
    """How a model's table is kept."""

    SEED = "SEED"
    VIEW = "VIEW"
    FULL = "FULL"
    EMBEDDED = "EMBEDDED"
    EXTERNAL = "EXTERNAL"
    INCREMENTAL_BY_TIME_RANGE = "INCREMENTAL_BY_TIME_RANGE"

    @property
    def is_stored(self) -> bool:
        """True when rows of this kind lie in a physical table of ours."""
        return self in (Kind.SEED, Kind.FULL, Kind.INCREMENTAL_BY_TIME_RANGE)

    @property
    def has_view(self) -> bool:
        """True when an environment shows this model as a view."""
        return self.is_stored or self is Kind.VIEW


@dataclass(frozen=True)
class Column:
    """A column: name in lower case, type as Spark writes it (`decimal(10,2)`), comment or ''."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True)
class AuditCall:
    """An audit that a model asks for, with its arguments as (name, Spark SQL) pairs."""

    name: str
    arguments: tuple[tuple[str, str], ...] = ()
    blocking: bool | None = None  # None: as the audit itself says
    query: str = (
        ""  # what the project's own audit asks, so that an edit of it is an edit of the model; '' for a built-in
    )


@dataclass(frozen=True)
class Seed:
    """A CSV file of the project: path from the root, header, NULL texts; hashes of all its rows and of each column's
    cells, which the order of the rows and the layout of the file do not change."""

    path: str
    digest: str
    header: tuple[str, ...]
    delimiter: str = ","
    quotechar: str = '"'
    encoding: str = "utf-8"
    na_values: tuple[str, ...] = ("",)
    rows: int = 0
    cells: tuple[tuple[str, str], ...] = ()  # (column, hash)


@dataclass(frozen=True)
class Model:
    """One model of a project, with macros and variables already rendered and defaults already filled in.

    `sql` is the query in Spark SQL; the only macros left in it are dates (`@start_ds`, ...). It is '' for seeds and
    external models. `source` is the text as the person wrote it (for diffs and for finding lines).
    """

    name: str  # "schema.table", lower case
    kind: Kind
    path: str  # relative to the project's root, with forward slashes
    line: int  # of the MODEL block, 1-based
    source: str
    sql: str = ""
    dialect: str = "spark"
    columns: tuple[Column, ...] = ()  # declared ones; () when the query decides
    depends_on: tuple[str, ...] = ()  # every table the query or `depends_on` names, sorted
    cron: Cron = DAILY
    start: datetime | None = None  # UTC
    start_moves: bool = False  # written as `2 days ago`: it is another moment each day, and that is no edit
    start_text: str = ""  # as it is written when it moves: another text is an edit
    end: datetime | None = None  # UTC, exclusive
    time_column: str = ""
    time_format: str = ""  # Spark datetime pattern when the time column is text, e.g. yyyy-MM-dd; '' otherwise
    lookback: int = 0  # intervals
    batch_size: int | None = None  # intervals per batch; None: all in one
    batch_concurrency: int | None = None
    seed: Seed | None = None
    audits: tuple[AuditCall, ...] = ()
    description: str = ""
    column_descriptions: tuple[tuple[str, str], ...] = ()
    owner: str = ""
    tags: tuple[str, ...] = ()
    grain: tuple[str, ...] = ()
    stamp: str = ""
    storage_format: str = "parquet"
    physical_properties: tuple[tuple[str, str], ...] = ()  # how files are written: (key, text), sorted

    @property
    def schema(self) -> str:
        return self.name.split(".")[0]

    @property
    def place(self) -> Place:
        return Place(self.path, self.line)


@dataclass(frozen=True)
class Audit:
    """A named query that must return no rows; `@this_model` and its parameters stand in it as macros."""

    name: str
    sql: str  # Spark SQL
    blocking: bool = True
    defaults: tuple[tuple[str, str], ...] = ()  # parameter -> Spark SQL
    path: str = ""
    line: int = 0
    standalone: bool = False  # it runs by itself, over the models that it reads
    skip: bool = False  # it is never asked
    depends_on: tuple[str, ...] = ()  # the tables that a standalone one reads, sorted
    cron: Cron = DAILY  # when a standalone one is due in `run`
    start: datetime | None = None  # a standalone one looks at no earlier time
    owner: str = ""
    description: str = ""

    @property
    def place(self) -> Place:
        return Place(self.path, self.line)
