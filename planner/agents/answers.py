"""A job as an agent reads it: paged, without unmasked rows of tables."""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from mergeplan.planner.api.jobs.job import JobKind, JobView
from mergeplan.planner.api.jobs.results import CheckResult
from mergeplan.planner.contract.lines import ErrorLine

Json = dict[str, Any]
T = TypeVar("T")
MOST = 200  # of a list in one answer
# Jobs that read rows: Spark's message about a failed query may quote values.
READS_ROWS = frozenset({JobKind.APPLY, JobKind.AUDIT, JobKind.DATA_DIFF, JobKind.PHYSICAL_PLAN})
OURS = frozenset(
    """ProjectError RuleBroken RequestError Refused TooCostly AuditFailed PlanMoved LeaseHeld CatalogBusy Cancelled
    UsageError""".split()
)  # kinds of errors whose sentences are mergeplan's own
HIDDEN = "The query failed on Spark. Its message may quote rows, and is not shown to agents."
HINT = "A person finds it in the job's folder below `.mergeplan/agents`. `make_plan` checks queries without rows."


def page_rows(rows: Sequence[T], limit: int, offset: int) -> Sequence[T]:
    """Return a part of a list: at most MOST rows, at least one."""
    start = max(offset, 0)
    return rows[start : start + max(1, min(limit, MOST))]


def dump_row(row: BaseModel) -> Json:
    return row.model_dump(mode="json", by_alias=True)


def job_answer(view: JobView, checks: Sequence[CheckResult], limit: int, offset: int) -> Json:
    data = dump_row(view)
    data["errors"] = [dump_row(hide_rows(error, view.kind)) for error in view.errors]
    data["checks"] = [dump_row(check) for check in checks]
    if view.result is not None:
        data["result"].pop("plan", None)  # it is in `plan`
        for audit in data["result"].get("audits") or ():
            audit.pop("sample", None)  # the project may have these rows shown as they are
    totals: dict[str, int] = {}
    _cut_lists(data, "", limit, offset, totals)
    return {**data, "totals": totals}


def _cut_lists(data: Json, path: str, limit: int, offset: int, totals: dict[str, int]) -> None:
    for name, value in data.items():
        if isinstance(value, dict):
            _cut_lists(value, f"{path}{name}.", limit, offset, totals)
        elif isinstance(value, list):
            totals[f"{path}{name}"] = len(value)
            data[name] = page_rows(value, limit, offset)


def hide_rows(error: ErrorLine, kind: JobKind) -> ErrorLine:
    """Return the error without Spark's message if that may quote values of rows."""
    if kind not in READS_ROWS or error.kind in OURS:
        return error
    return error.model_copy(update={"message": HIDDEN, "hint": HINT})
