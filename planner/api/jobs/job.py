"""A job: the request, its sender, and how far it has come."""

import re
import secrets
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from mergeplan.planner.api.access import Scope
from mergeplan.planner.contract.base import Data, Maybe
from mergeplan.planner.contract.lines import ErrorLine
from mergeplan.planner.contract.plan import PlanView
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.data_field import describe

JOB_ID = re.compile(r"[0-9]{14}-[0-9a-f]{8}")


class JobKind(StrEnum):
    """What a job does."""

    PLAN = "plan"
    RESTATEMENT = "restatement"
    APPLY = "apply"
    RUN = "run"
    ROLLBACK = "rollback"
    INVALIDATE = "invalidate"
    AUDIT = "audit"
    TEST = "test"
    TABLE_DIFF = "table_diff"
    DATA_DIFF = "data_diff"
    PHYSICAL_PLAN = "physical_plan"
    EVALUATION = "evaluation"

    @property
    def is_plan(self) -> bool:
        """True for what leaves a plan that can be applied."""
        return self in (JobKind.PLAN, JobKind.RESTATEMENT)

    @property
    def scope(self) -> Scope:
        """What is needed to start it, and to cancel it."""
        changes = {JobKind.APPLY, JobKind.RUN, JobKind.ROLLBACK, JobKind.INVALIDATE, JobKind.EVALUATION}
        return Scope.APPLY if self in changes else Scope.PLAN

    @property
    def readers(self) -> Scope:
        """What is needed to read its answer: an evaluation has rows as they are."""
        return Scope.APPLY if self is JobKind.EVALUATION else Scope.READ


class JobStatus(StrEnum):
    """How far a job has come."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def is_final(self) -> bool:
        """True when nothing will follow."""
        return self not in (JobStatus.WAITING, JobStatus.RUNNING)


class JobRow(Data):
    """A job, without what it came to."""

    id: str = Field(description="the job, and of a plan the resource below `/plans`")
    kind: JobKind = Field(description="what it does")
    status: JobStatus = Field(
        description="`done`: it came to its end, and `result` says what of; `refused`: not allowed as things are; "
        "`interrupted`: its process ended without a result"
    )
    environment: str = describe("", 'the environment that it is about, or `""`')
    plan_id: str = describe("", "of an apply: the plan; of a plan: its id, once it is made")
    who: str = describe("", "the sender: by the scope of the token, or `local`")
    created_at: str = Field(description="when the request came")
    started_at: str | None = describe(None, "when its process began, or null")
    ended_at: str | None = describe(None, "when it ended, or null")
    exit_code: int | None = describe(None, "of its process; null where the server did not see it")
    cancelled: bool = describe(False, "a client has cancelled it")
    request: dict[str, Any] = describe({}, "the request's body, without defaults")


class JobRecord(JobRow):
    """A job as its file has it: with the process that does it."""

    arguments: tuple[str, ...] = Field(description="of `mergeplan`")
    pid: int = 0
    birth: str = ""  # when the process began, in the system's words: pids are used again


class JobView(JobRow):
    """A job, and what it came to."""

    events: int = describe(0, "how many JSON lines there are so far: ids of its event stream")
    plan: Maybe[PlanView] = describe(None, "the plan, of a job that makes or applies one")
    result: Maybe[ResultLine] = describe(None, "the last of its [JSON lines](json.md)")
    errors: tuple[ErrorLine, ...] = describe((), "its lines `error`")


class JobPage(Data):
    """Some of the jobs, the newest first."""

    total: int = Field(description="how many there are")
    limit: int = Field(description="how many of them a page has at most")
    offset: int = Field(description="how many come before this page")
    jobs: tuple[JobRow, ...] = Field(description="the jobs")


def new_job_id() -> str:
    """Return an id that sorts by time and cannot be guessed."""
    return f"{datetime.now(UTC):%Y%m%d%H%M%S}-{secrets.token_hex(4)}"
