"""What a use case reports while it runs: the events of applying a plan, and those of what stands around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mergeplan.planner.apply.events import Event

if TYPE_CHECKING:  # a verb that neither plans nor lints imports nothing that does
    from mergeplan.planner.checks.linter import Violation
    from mergeplan.planner.checks.unit_test_result import TestResult
    from mergeplan.planner.plan.build import Plan
    from mergeplan.planner.plan.costs import Estimate


@dataclass(frozen=True)
class SparkStarting(Event):
    """A Spark of our own is started, which takes seconds; or the warm one, `again`, when no other run uses it."""

    again: bool = False


@dataclass(frozen=True)
class SparkStarted(Event):
    """It runs."""

    seconds: float


@dataclass(frozen=True)
class TestsStarted(Event):
    """Unit tests are about to run on Spark."""

    __test__ = False  # pytest must not collect it

    total: int


@dataclass(frozen=True)
class Linted(Event):
    """Rules that models break and that stop nothing."""

    violations: tuple[Violation, ...]


@dataclass(frozen=True)
class Tested(Event):
    """The unit tests have run."""

    results: tuple[TestResult, ...]
    seconds: float


@dataclass(frozen=True)
class Due(Event):
    """What a run is about to compute."""

    plan: Plan
    estimates: Mapping[str, Estimate]


@dataclass(frozen=True)
class Revised(Event):
    """The plan as it was in the end: comparing tables made some of its computations needless."""

    plan: Plan
    estimates: Mapping[str, Estimate]


@dataclass(frozen=True)
class Warned(Event):
    """A problem outside the plan that stops nothing."""

    message: str


@dataclass(frozen=True)
class StateUnknown(Event):
    """The state cannot be read, so that it is not known whether a promotion is unfinished."""

    reason: str
