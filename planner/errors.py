"""The tree of errors; every error names the thing, its place, and what to do.

MergeplanError                exit code 1
├── ProjectError              a file of the project is wrong: file and line
├── RequestError              the request is wrong: an argument, a name, a date
│   └── SparkUnavailable      Spark did not start or does not answer: the same request may succeed later
│       └── SparkLost         Spark ended or stopped answering during the request
├── QueryError                Spark refused a query: the model's file and line
├── Refused                   exit code 4: not allowed now, with the reason
│   ├── AuditFailed           a blocking audit found rows
│   ├── PlanMoved             what the plan was built on is no longer so
│   ├── LeaseHeld             another process is changing this environment
│   └── CatalogBusy           another process holds the embedded catalog
└── Cancelled                 exit code 130: the person or a newer push ended the run
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Located(Protocol):
    """An object with a place in the project: a place itself, or one that is searched when it is shown."""

    @property
    def place(self) -> Place: ...


@dataclass(frozen=True)
class Place:
    """A position in the project: a path relative to its root, 1-based line and column (0 = unknown)."""

    path: str
    line: int = 0
    column: int = 0

    @property
    def place(self) -> Place:
        return self

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


class MergeplanError(Exception):
    """An expected failure: `message` is one sentence for a person, `hint` is what to do about it."""

    exit_code = 1
    retry = False  # True: the same request may succeed later

    def __init__(self, message: str, *, place: Located | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.located = place
        self.hint = hint

    @property
    def place(self) -> Place | None:
        """The place of the error; searched only when it is read."""
        return self.located.place if self.located else None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.message}" + (f" {self.hint}" if self.hint else "")


class ProjectError(MergeplanError):
    """A file of the project is wrong."""


class RuleBroken(ProjectError):
    """A model breaks a rule of the project's linter."""


class CatalogUnknown(ProjectError):
    """A name in a catalog that the gateway does not have; `rest` other names of the project are in it too."""

    def __init__(
        self, name: str, catalog: str, gateway: str, *, place: Located | None, hint: str, rest: int = 0
    ) -> None:
        verb = f" and {rest} more are" if rest else " is"
        message = f"`{name}`{verb} in the catalog `{catalog}`, which the gateway `{gateway}` does not have."
        super().__init__(message, place=place, hint=hint)
        self.name, self.catalog, self.gateway = name, catalog, gateway


class ProjectErrors(ProjectError):
    """Several files of the project are wrong; all are reported at once."""

    def __init__(self, errors: tuple[ProjectError, ...]) -> None:
        first = errors[0]
        super().__init__(first.message, place=first.located, hint=first.hint)
        self.errors = errors

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


class RequestError(MergeplanError):
    """The request itself is wrong: an argument, a name, a date."""


class SparkUnavailable(RequestError):
    """Spark did not start, or does not respond."""

    retry = True


class SparkLost(SparkUnavailable):
    """Spark ended, ran out of memory or stopped answering while it worked on the request, which may be the reason."""


class QueryError(MergeplanError):
    """Spark rejected a query, or a query failed while it ran.

    `condition` is Spark's error class; `position` is the line and column in the query, 1-based, 0 when not known.
    """

    def __init__(
        self,
        message: str,
        *,
        place: Located | None = None,
        hint: str = "",
        condition: str | None = None,
        position: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(message, place=place, hint=hint)
        self.condition = condition
        self.line, self.column = position


class Refused(MergeplanError):
    """This is not allowed now."""

    exit_code = 4


class TooCostly(Refused):
    """The computation would cost more than the request allows."""


class AuditFailed(Refused):
    """A blocking audit found rows; `model` is '' for a standalone audit."""

    def __init__(
        self, message: str, *, place: Located | None = None, hint: str = "", audit: str = "", model: str = ""
    ) -> None:
        super().__init__(message, place=place, hint=hint)
        self.audit = audit
        self.model = model


class PlanMoved(Refused):
    """The state on which the plan is based has changed."""

    retry = True


class LeaseHeld(Refused):
    """Another process is changing this environment."""

    retry = True


class CatalogBusy(Refused):
    """Another process holds the embedded catalog."""

    retry = True


class Cancelled(MergeplanError):
    """The run was cancelled from outside."""

    exit_code = 130
