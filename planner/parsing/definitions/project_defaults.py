"""The defaults of a project for all its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from planner.model.kind import Kind
from planner.model.model import AuditCall
from planner.parsing.definitions.body import Around, Macros, StatementTokens
from planner.parsing.definitions.properties import Property
from planner.parsing.macros.expand import MacroScope
from planner.parsing.sql.macro_scope import Lookup, no_columns
from planner.parsing.sql.user_macros import NoMacros, UserMacros, Variable


@dataclass(frozen=True)
class Defaults:
    """The defaults of the project for every file, and the time at which it is loaded."""

    now: datetime
    dialect: str = "spark"
    kind: Kind = Kind.VIEW
    start: datetime | None = None
    start_moves: bool = False  # written as `2 days ago`
    start_text: str = ""  # its text, if it moves
    cron: str = "@daily"
    owner: str = ""
    audits: tuple[AuditCall, ...] = ()
    variables: Mapping[str, Variable] = field(default_factory=dict)
    gateway: str = ""
    macros: UserMacros = field(default_factory=NoMacros)  # the project's own
    jinja: Macros = ()
    on_destructive_change: str = ""
    on_additive_change: str = ""
    properties: tuple[Property, ...] = ()  # defaults of each block
    before_all: tuple[StatementTokens, ...] = ()  # statements that run when a plan is applied
    after_all: tuple[StatementTokens, ...] = ()
    around: Around = field(default_factory=Around)  # statements around every model's query
    columns: Lookup = no_columns  # of the tables that macros name
    gateways: Mapping[str, Mapping[str, Variable]] = field(default_factory=dict)  # all of them, with their variables
    apart: Mapping[str, str] = field(default_factory=dict)  # gateways that models must not name, and why
    given: Mapping[str, Variable] = field(default_factory=dict)  # variables that override those of every gateway

    @property
    def scope(self) -> MacroScope:
        return MacroScope(self.variables, self.gateway, macros=self.macros, columns=self.columns)
