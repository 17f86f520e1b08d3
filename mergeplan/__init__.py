"""mergeplan from Python: open a project, plan, apply; see docs/python-api.md.

>>> with mergeplan.open("shop") as session:
...     plan = session.plan("dev")
...     plan.apply()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

# Each name is imported when it is first asked for: `python -m mergeplan --help` comes this way and needs none.
HOMES = {
    "planner.errors": (
        "AuditFailed", "Cancelled", "CatalogBusy", "LeaseHeld", "MergeplanError", "PlanMoved", "ProjectError",
        "ProjectErrors", "QueryError", "Refused", "RequestError", "SparkAway", "TooCostly",
    ),
    "planner.session.options": (
        "AuditOptions", "DataDiffOptions", "PlanOptions", "RunOptions", "TableDiffOptions", "TestOptions",
    ),
    "planner.session.results": ("Difference", "LineageView", "SessionPlan"),
    "planner.session.session": ("Session",),
    "planner.session.opening": ("open",),
}  # fmt: skip

if TYPE_CHECKING:
    from planner.errors import AuditFailed as AuditFailed
    from planner.errors import Cancelled as Cancelled
    from planner.errors import CatalogBusy as CatalogBusy
    from planner.errors import LeaseHeld as LeaseHeld
    from planner.errors import MergeplanError as MergeplanError
    from planner.errors import PlanMoved as PlanMoved
    from planner.errors import ProjectError as ProjectError
    from planner.errors import ProjectErrors as ProjectErrors
    from planner.errors import QueryError as QueryError
    from planner.errors import Refused as Refused
    from planner.errors import RequestError as RequestError
    from planner.errors import SparkAway as SparkAway
    from planner.errors import TooCostly as TooCostly
    from planner.session.opening import open as open
    from planner.session.options import AuditOptions as AuditOptions
    from planner.session.options import DataDiffOptions as DataDiffOptions
    from planner.session.options import PlanOptions as PlanOptions
    from planner.session.options import RunOptions as RunOptions
    from planner.session.options import TableDiffOptions as TableDiffOptions
    from planner.session.options import TestOptions as TestOptions
    from planner.session.results import Difference as Difference
    from planner.session.results import LineageView as LineageView
    from planner.session.results import SessionPlan as SessionPlan
    from planner.session.session import Session as Session
else:
    __all__ = sorted(name for names in HOMES.values() for name in names)

    def __getattr__(name: str) -> object:
        """A name from where it is defined."""
        from importlib import import_module

        for home, names in HOMES.items():
            if name in names:
                return getattr(import_module(home), name)
        raise AttributeError(f"module 'mergeplan' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
