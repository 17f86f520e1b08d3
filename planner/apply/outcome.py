"""The result of applying a plan."""

from __future__ import annotations

from dataclasses import dataclass

from mergeplan.planner.apply.backfill.work import Failure, Filled
from mergeplan.planner.apply.events import Promoted
from mergeplan.planner.plan.build import Plan


@dataclass(frozen=True)
class Outcome:
    """The result of an apply; `promoted` is None after a failure or if there was nothing to promote.

    `promotion_jobs` are the Spark jobs that the promotion itself started: it reads no data, so there are none.
    """

    created: tuple[str, ...]
    filled: Filled
    promoted: Promoted | None
    promotion_jobs: int = 0
    plan: Plan | None = None  # as it was in the end: comparing tables may have skipped some of its models

    @property
    def failures(self) -> tuple[Failure, ...]:
        return self.filled.failures

    def raise_failure(self) -> None:
        """Raise the first failure as AuditFailed, QueryError or ProjectError."""
        for failure in self.failures:
            raise failure.error
