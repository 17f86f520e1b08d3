"""mergeplan from Python: open a project, plan, apply; see docs/reference/python-api.md.

with mergeplan.open("shop") as session:
    plan = session.plan("dev")
    plan.apply()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

# Each name is imported when it is first asked for: `python -m mergeplan --help` comes this way and needs none.
HOMES = {
    "mergeplan.planner.errors": (
        "AuditFailed", "Cancelled", "CatalogBusy", "LeaseHeld", "MergeplanError", "PlanMoved", "ProjectError",
        "ProjectErrors", "QueryError", "Refused", "RequestError", "SparkUnavailable", "TooCostly",
    ),
    "mergeplan.planner.session.options": (
        "AuditOptions", "DataDiffOptions", "PlanOptions", "RunOptions", "TableDiffOptions", "TestOptions",
    ),
    "mergeplan.planner.session.results": ("Difference", "LineageView", "SessionPlan"),
    "mergeplan.planner.session.session": ("Session",),
    "mergeplan.planner.session.opening": ("open",),
    "mergeplan.planner.session.scheduling.schedule": ("read_schedule",),
}  # fmt: skip

if TYPE_CHECKING:
    from mergeplan.planner.errors import AuditFailed as AuditFailed
    from mergeplan.planner.errors import Cancelled as Cancelled
    from mergeplan.planner.errors import CatalogBusy as CatalogBusy
    from mergeplan.planner.errors import LeaseHeld as LeaseHeld
    from mergeplan.planner.errors import MergeplanError as MergeplanError
    from mergeplan.planner.errors import PlanMoved as PlanMoved
    from mergeplan.planner.errors import ProjectError as ProjectError
    from mergeplan.planner.errors import ProjectErrors as ProjectErrors
    from mergeplan.planner.errors import QueryError as QueryError
    from mergeplan.planner.errors import Refused as Refused
    from mergeplan.planner.errors import RequestError as RequestError
    from mergeplan.planner.errors import SparkUnavailable as SparkUnavailable
    from mergeplan.planner.errors import TooCostly as TooCostly
    from mergeplan.planner.session.opening import open as open
    from mergeplan.planner.session.options import AuditOptions as AuditOptions
    from mergeplan.planner.session.options import DataDiffOptions as DataDiffOptions
    from mergeplan.planner.session.options import PlanOptions as PlanOptions
    from mergeplan.planner.session.options import RunOptions as RunOptions
    from mergeplan.planner.session.options import TableDiffOptions as TableDiffOptions
    from mergeplan.planner.session.options import TestOptions as TestOptions
    from mergeplan.planner.session.results import Difference as Difference
    from mergeplan.planner.session.results import LineageView as LineageView
    from mergeplan.planner.session.results import SessionPlan as SessionPlan
    from mergeplan.planner.session.scheduling.schedule import read_schedule as read_schedule
    from mergeplan.planner.session.session import Session as Session
else:
    __all__ = sorted(name for names in HOMES.values() for name in names)

    def __getattr__(name: str) -> object:
        """Import a name from the module that defines it."""
        from mergeplan.lazy_names import import_name

        return import_name(__name__, HOMES, name)

    def __dir__() -> list[str]:
        return __all__
