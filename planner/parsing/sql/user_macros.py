"""A project's own Python macros as functions that take SQL and return SQL."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol

from mergeplan.planner.errors import Place, ProjectError

Scalar = str | int | float | bool | date | None
Variable = Scalar | tuple["Variable", ...] | Mapping[str, "Variable"]


@dataclass(frozen=True)
class MacroCall:
    """One call: arguments as SQL texts in `dialect`, and the data that the macro may look up while it runs."""

    name: str  # lower case, without the @
    arguments: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...] = ()
    dialect: str = "spark"
    model: str = ""  # the model whose query it stands in, '' in an audit
    variables: Mapping[str, Variable] = field(default_factory=dict)  # of the project, the gateway, the blueprint
    gateway: str = ""
    columns: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)  # table -> (name, type), if known
    place: Place | None = None  # of the call


class ColumnsWanted(ProjectError):
    """A macro's request for the columns of a table that no argument names; with them the call may succeed."""

    def __init__(self, error: ProjectError, table: str) -> None:
        super().__init__(error.message, place=error.located, hint=error.hint)
        self.table = table


class UserMacros(Protocol):
    @property
    def names(self) -> frozenset[str]:
        """The names of macros that can be called, in lower case."""

    @property
    def unavailable(self) -> tuple[str, ...]:
        """The files that cannot be imported: the macros that they define are unknown."""

    def call(self, call: MacroCall) -> tuple[str, ...]:
        """Return the SQL texts that replace a call, in its dialect; raise ProjectError at the macro or the call."""


class NoMacros:
    """The macros of a project that has none."""

    names: frozenset[str] = frozenset()
    unavailable: tuple[str, ...] = ()

    def call(self, call: MacroCall) -> tuple[str, ...]:
        raise KeyError(call.name)
