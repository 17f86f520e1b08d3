"""The results of audits and unit tests, read from the journals: they are there as long as their jobs are kept."""

import threading
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from mergeplan.planner.api.jobs.job import JobKind, JobRecord
from mergeplan.planner.api.jobs.journal import parse_line
from mergeplan.planner.api.jobs.store import JobStore
from mergeplan.planner.contract.base import Data
from mergeplan.planner.contract.lines import AuditLine, TestLine
from mergeplan.planner.data_field import describe

CheckSort = Literal["audit", "test"]
MARKS = {b'"event":"audit"', b'"event":"test"'}
CHECKING = frozenset(
    {JobKind.AUDIT, JobKind.TEST, JobKind.PLAN, JobKind.APPLY, JobKind.RUN, JobKind.RESTATEMENT}
)  # the jobs in which audits or unit tests run


class CheckResult(Data):
    """One look of an audit at a table, or one run of a unit test."""

    sort: CheckSort = Field(description="`audit` or `test`")
    name: str = Field(description="the audit or the test")
    model: str = describe("", 'the model, `""` of a test and of a standalone audit')
    environment: str = describe("", "whose tables were looked at")
    ok: bool = Field(description="it found nothing wrong")
    blocking: bool = describe(True, "what it finds stops a plan")
    count: int = describe(0, "how many rows an audit found")
    unchanged: bool = describe(False, "a test that did not run: nothing changed since it passed")
    message: str = describe("", "of a test that failed: how the rows differ")
    path: str = describe("", "the file that names it")
    line: int = describe(0, "its line")
    job: str = Field(description="the job in which it ran")
    at: str = Field(description="when that job ended")


class CheckHistory:
    """The results of a store's jobs; a job that has ended is read once."""

    def __init__(self, jobs: JobStore) -> None:
        self._jobs, self._lock = jobs, threading.Lock()
        self._results: dict[str, tuple[CheckResult, ...]] = {}

    def list(self, sort: CheckSort) -> tuple[CheckResult, ...]:
        """Return every stored result, the newest job first."""
        records = [record for record in self._jobs.list(CHECKING) if record.status.is_final]
        with self._lock:
            self._results = {
                record.id: self._results[record.id]
                if record.id in self._results
                else tuple(read_results(self._jobs, record))
                for record in records
            }
            return tuple(result for results in self._results.values() for result in results if result.sort == sort)


def read_results(jobs: JobStore, record: JobRecord) -> Iterator[CheckResult]:
    at, job = record.ended_at or record.created_at, record.id
    for text in jobs.journal(record.id).lines():
        if not any(mark in text for mark in MARKS):
            continue
        match parse_line(text):
            case AuditLine() as line:
                fields = {
                    name: getattr(line, name) for name in ("name", "model", "ok", "blocking", "count", "path", "line")
                }
                yield CheckResult(sort="audit", environment=record.environment, job=job, at=at, **fields)
            case TestLine() as line:
                fields = {name: getattr(line, name) for name in ("name", "ok", "unchanged", "message", "path", "line")}
                yield CheckResult(sort="test", job=job, at=at, **fields)
