"""The defaults of a project for all its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.parsing.definitions.body import Around, Macros, StatementTokens
from mergeplan.planner.parsing.definitions.materializations.classes import NONE, Materializations
from mergeplan.planner.parsing.definitions.properties import Property
from mergeplan.planner.parsing.sql.dates import end_instant, is_relative, parse_instant
from mergeplan.planner.parsing.sql.macro_scope import ColumnTypes, Lookup, MacroScope, no_columns
from mergeplan.planner.parsing.sql.user_macros import MacroCall, NoMacros, UserMacros, Variable


@dataclass
class Noted:
    """The facts that the reading of one file used and that are in neither the file nor the defaults.

    `dates` are those that move with the clock: (text, whether it is an end, the resolved moment).
    """

    columns: dict[str, ColumnTypes | None] = field(default_factory=dict)
    dates: list[tuple[str, bool, str]] = field(default_factory=list)
    called: bool = False  # a macro of the project's own
    materializations: bool = False  # those of the project


@dataclass(frozen=True)
class Defaults:
    """The defaults of the project for every file, and the time at which it is loaded."""

    now: datetime
    dialect: str = "spark"
    catalog: str = SESSION_CATALOG  # of names without one
    infer_names: bool = False  # a model without a name is called after its path
    kind: Kind = Kind.VIEW
    start: datetime | None = None
    start_moves: bool = False  # written as `2 days ago`
    start_text: str = ""  # its text, if it moves
    cron: str = "@daily"
    owner: str = ""
    batch_concurrency: int | None = None  # of models by time range
    audits: tuple[AuditCall, ...] = ()
    variables: Mapping[str, Variable] = field(default_factory=dict)
    gateway: str = ""
    macros: UserMacros = field(default_factory=NoMacros)  # the project's own
    jinja: Macros = ()
    materializations: Materializations = NONE  # the project's own, of models of kind CUSTOM
    on_destructive_change: str = ""
    on_additive_change: str = ""
    properties: tuple[Property, ...] = ()  # defaults of each block
    before_all: tuple[StatementTokens, ...] = ()  # statements that run when a plan is applied
    after_all: tuple[StatementTokens, ...] = ()
    around: Around = field(default_factory=Around)  # statements around every model's query
    columns: Lookup = no_columns  # of the tables that macros name
    gateways: Mapping[str, Mapping[str, Variable]] = field(default_factory=dict)  # all of them, with their variables
    apart: Mapping[str, str] = field(default_factory=dict)  # gateways that models must not name, and why
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)  # functions that the operator adds, by gateway
    overrides: Mapping[str, Variable] = field(default_factory=dict)  # variables that override those of every gateway
    noted: Noted = field(default_factory=Noted, compare=False)

    @property
    def scope(self) -> MacroScope:
        return MacroScope(self.variables, self.gateway, macros=self.macros, columns=self.columns)

    @property
    def functions(self) -> frozenset[str]:
        """The functions besides Spark's own that SQL on the gateway may call."""
        return self.allowed.get(self.gateway, frozenset())

    def resolve_date(self, text: str, *, end: bool = False) -> datetime:
        """Return the moment that a text names, relative to now; raise ValueError if it names none."""
        moment = end_instant(text, self.now) if end else parse_instant(text, self.now)
        if is_relative(text):
            self.noted.dates.append((text, end, moment.isoformat()))
        return moment

    def custom(self) -> Materializations:
        self.noted.materializations = True
        return self.materializations

    def noting(self) -> Defaults:
        """Return these defaults with an empty record of what the reading of a file uses."""
        noted = Noted()

        def columns(table: str) -> ColumnTypes | None:
            noted.columns[table] = self.columns(table)
            return noted.columns[table]

        return replace(self, noted=noted, columns=columns, macros=_NotedMacros(self.macros, noted))


@dataclass(frozen=True)
class _NotedMacros:
    """The project's macros, and a note once one is called."""

    macros: UserMacros
    noted: Noted

    @property
    def names(self) -> frozenset[str]:
        return self.macros.names

    @property
    def unavailable(self) -> tuple[str, ...]:
        return self.macros.unavailable

    def call(self, call: MacroCall) -> tuple[str, ...]:
        self.noted.called = True
        return self.macros.call(call)
