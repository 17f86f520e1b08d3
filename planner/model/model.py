"""Models: the definition of one table, as data. `parsing/` reads their text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from mergeplan.planner.errors import Place
from mergeplan.planner.fingerprint import encode_text
from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.checks import Checks
from mergeplan.planner.model.incremental import ChangePolicy, TimeRange, UniqueKey
from mergeplan.planner.model.kind import Fill, Kind
from mergeplan.planner.model.locator import Locator
from mergeplan.planner.model.metadata import Metadata
from mergeplan.planner.model.property import Facet, declare, properties_of, read_setting
from mergeplan.planner.model.schedule import Schedule
from mergeplan.planner.model.statement import Statements
from mergeplan.planner.model.storage import Storage
from mergeplan.planner.serial import EMBEDDED


@dataclass(frozen=True)
class WrittenQuery:
    """The text that runs: in the person's own words, on their lines of the file."""

    text: str = ""  # '' if the text is no SQL that Spark can run: then the model's `sql` runs
    text_line: int = 0  # where the text begins in the file
    dbt_text: str = field(default="", repr=False, compare=False)  # of dbt's file, which `source` translates
    misread: str = ""  # parts of the text that the parser's tree lacks, so that no edit of them is overlooked


BATCH_KINDS = Kind.INCREMENTAL_BY_TIME_RANGE, Kind.INCREMENTAL_BY_UNIQUE_KEY


@dataclass(frozen=True)
class Batches:
    batch_size: int | None = None  # intervals per batch; None: all in one
    batch_concurrency: int | None = None
    lookback: int = declare(0, Facet.METADATA, "units that are computed again", *BATCH_KINDS, pinned=True)
    insert_overwrite: bool = declare(
        False, Facet.ROWS, "a batch takes the place of what it writes to", Kind.INCREMENTAL_UNMANAGED, pinned=True
    )


ROWS, LAYOUT, METADATA = Facet.ROWS, Facet.LAYOUT, Facet.METADATA
DAILY = Cron("@daily")
# Texts of CSV cells that are NULL, by the format of a project.
# of pandas, and so of SQLMesh, unless `keep_default_na` is false
PANDAS_NULLS = ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
                "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")  # fmt: skip
_AS_OF = re.compile(r"AS\s+OF(?![A-Z0-9_])")  # of a text in capitals: 20 times as fast as to ignore case
DBT_NULLS = ("", "null")  # of agate, and so of dbt: in any case, with spaces around them


@dataclass(frozen=True)
class Column:
    """A column: name in lower case, type as Spark writes it (`decimal(10,2)`), comment or ''."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True)
class Seed:
    """A CSV file of the project: path from the root, header, NULL texts, hashes of all rows and of each column's cells.

    The order of the rows and the layout of the file do not change the hashes.
    """

    path: str
    digest: str
    header: tuple[str, ...]
    delimiter: str = ","
    quotechar: str = '"'
    encoding: str = "utf-8"
    na_values: tuple[str, ...] = ("",)
    rows: int = 0
    cells: tuple[tuple[str, str], ...] = ()  # (column, hash)
    is_dbt: bool = False  # its cells and blank lines are read as dbt reads them


@dataclass(frozen=True)
class DbtVersions:
    """The settings of a dbt snapshot; `since` is the column with the begin of a version, '' for the run's moment."""

    since: str = ""
    scd_id: str = "dbt_scd_id"
    updated: str = "dbt_updated_at"
    is_deleted: str = ""  # the column that marks a deleted key's own version; '' if none is made
    valid_to_current: str = ""  # Spark SQL; '' for NULL


@dataclass(frozen=True)
class History:
    """The way in which a table of SCD type 2 stores the versions of a row.

    `valid_from` and `valid_to` are the columns with the begin and the end of each version, and `type` is their type as
    Spark writes it. `updated_at` is the column that says when a row changed, '' if `columns` are compared (() means
    all).
    """

    valid_from: str = "valid_from"
    valid_to: str = "valid_to"
    type: str = "timestamp"
    updated_at: str = ""
    columns: tuple[str, ...] = ()
    invalidates_deleted: bool = False  # a key that the query no longer returns is closed
    begins_when_seen: bool = False  # a new key is valid since its update or the run, not since 1970
    dbt: DbtVersions | None = None  # versions are those that `dbt snapshot` would make

    @property
    def added_columns(self) -> tuple[Column, ...]:
        """The columns that the table has besides those of the query, in their order."""
        ends = Column(self.valid_from, self.type), Column(self.valid_to, self.type)
        if self.dbt is None:
            return ends
        marks = (Column(self.dbt.is_deleted, "string"),) if self.dbt.is_deleted else ()
        return Column(self.dbt.scd_id, "string"), Column(self.dbt.updated, self.type), *ends, *marks


@dataclass(frozen=True)
class PythonCode:
    """The function that returns a model's rows.

    It has its place, a digest of all code that it reaches and of the files that this may read, and the variables that
    it may ask for, as (name, JSON). `code` is the digest without the files; `any_file` names an access because of which
    it may read any file.
    """

    path: str
    entrypoint: str
    digest: str
    variables: tuple[tuple[str, str], ...] = ()
    code: str = ""
    any_file: str = ""


@dataclass(frozen=True)
class Model:
    """One model of a project, with macros and variables already rendered and defaults already filled in.

    `sql` is the query in Spark SQL, as the parser writes it, by which the model is judged; the only macros left in it
    are dates (`@start_ds`, ...). It is '' for seeds, external models and those in Python. `source` is all of the file
    (for diffs and for finding lines). Settings that belong together are a part: a class with a file of its own.
    """

    name: str  # "schema.table", lower case
    kind: Kind
    path: str  # relative to the project's root, with forward slashes
    line: int  # of the MODEL block, 1-based
    source: str
    sql: str = ""
    written: WrittenQuery = field(default=WrittenQuery(), metadata=EMBEDDED)
    dialect: str = "spark"
    columns: tuple[Column, ...] = ()  # declared ones; () when the query decides
    open_columns: bool = False  # of an external table, which may have others besides the declared ones
    depends_on: tuple[str, ...] = ()  # every table the query or `depends_on` names, sorted; never itself
    reads_itself: bool = False  # its query reads what its table held before the batch
    cron: Cron = DAILY
    schedule: Schedule = field(default=Schedule(), metadata=EMBEDDED)
    by_time: TimeRange = field(default=TimeRange(), metadata=EMBEDDED)
    batches: Batches = field(default=Batches(), metadata=EMBEDDED)
    seed: Seed | None = None
    checks: Checks = field(default=Checks(), metadata=EMBEDDED)
    metadata: Metadata = field(default=Metadata(), metadata=EMBEDDED)
    stamp: str = declare("", ROWS, "a new value makes the model count as changed", pinned=True)
    gateway: str = ""  # that it names; '' for the project's own
    storage: Storage = field(default=Storage(), metadata=EMBEDDED)
    by_key: UniqueKey = field(default=UniqueKey(), metadata=EMBEDDED)
    history: History | None = None
    policy: ChangePolicy = field(default=ChangePolicy(), metadata=EMBEDDED)
    materialization: str = ""  # of a model of kind CUSTOM, whose `kind` is what that comes to
    virtual_properties: tuple[tuple[str, str], ...] = ()  # of its views: (key, text), sorted
    statements: Statements = field(default=Statements(), metadata=EMBEDDED)
    python: PythonCode | None = None  # what returns the rows when it is no query
    settings: tuple[tuple[str, str], ...] = ()  # of its Spark, which shape rows and are not Spark's defaults, sorted

    @property
    def is_order_dependent(self) -> bool:
        """True if each batch builds on what the table held before it."""
        return self.kind.is_order_dependent or self.reads_itself

    @property
    def appends(self) -> bool:
        """True if batches are added to what the table holds; with `insert_overwrite` they replace it."""
        return self.kind.fill is Fill.APPEND and not self.batches.insert_overwrite

    @property
    def replaces_partitions(self) -> bool:
        """True if a batch replaces partitions, so that they decide which rows stay."""
        return self.kind.fill is Fill.PARTITION or self.batches.insert_overwrite

    @property
    def overwrites(self) -> bool:
        """True if batches replace rows and are computed from them, so that none can simply be repeated."""
        return self.reads_itself and self.replaces_partitions

    @property
    def takes_back(self) -> bool:
        """True if its table can be put back to what it held before the last batch."""
        return bool(self.by_key.unique_key) or self.overwrites

    @cached_property
    def may_read_versions(self) -> bool:
        """False only if its query reads every table as it is now."""
        return _AS_OF.search(self.sql.upper()) is not None

    @property
    def schema(self) -> str:
        return self.name.split(".")[-2]

    @property
    def place(self) -> Place:
        return Place(self.path, self.line)

    def locate(self, identifier: str, *, in_block: bool = False) -> Locator:
        """Return the place of an identifier in its text, which is searched only when it is shown."""
        text = "" if self.kind.is_external else self.source  # that one is an item of a YAML file
        return Locator(self.place, text, self.dialect, identifier, in_block)

    @property
    def history_columns(self) -> tuple[Column, ...]:
        """The columns that its kind adds to those of the query: the begin and the end of a version."""
        return self.history.added_columns if self.history else ()

    def encode_properties(self, facet: Facet) -> dict[str, str]:
        """Return key -> text in hashes of the properties of a facet that are not at their defaults."""
        if facet is LAYOUT and not self.kind.is_stored:
            return {}  # it has no files
        properties = properties_of(type(self))  # type: ignore[arg-type]  # mypy takes the hash of its objects for it
        rows = [row for row in properties.values() if row.facet is facet and not row.pinned]
        values = {row.key: value for row in rows if (value := read_setting(self, row.key)) != row.default}
        return {key: key if value is True else f"{key}={encode_text(value)}" for key, value in values.items()}


PROPERTIES = properties_of(Model)


@dataclass(frozen=True)
class Audit:
    """A named query that must return no rows; `@this_model` and its parameters are macros in it."""

    name: str
    sql: str  # Spark SQL
    blocking: bool = True
    defaults: tuple[tuple[str, str], ...] = ()  # parameter -> Spark SQL
    path: str = ""
    line: int = 0
    standalone: bool = False  # it runs by itself, over the models that it reads
    skip: bool = False  # it never runs
    depends_on: tuple[str, ...] = ()  # the tables that a standalone one reads, sorted
    cron: Cron = DAILY  # when a standalone one is due in `run`
    start: datetime | None = None  # a standalone one looks at no earlier time
    owner: str = ""
    description: str = ""
    text: str = field(default="", repr=False)  # the query as it runs: see Model
    misread: str = field(default="", repr=False)

    @property
    def place(self) -> Place:
        return Place(self.path, self.line)
