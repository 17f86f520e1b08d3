"""test: the project's unit tests, all or some."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from mergeplan.planner.apply.unit_tests import run_unit_tests
from mergeplan.planner.checks.unit_test_result import TestResult
from mergeplan.planner.errors import RequestError
from mergeplan.planner.parsing.definitions.unit_tests import UnitTest
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.session.options import TestOptions
from mergeplan.planner.session.workspace import Workspace


@dataclass(frozen=True)
class TestReport:
    __test__ = False  # pytest must not collect it

    results: tuple[TestResult, ...]
    seconds: float

    @property
    def failed(self) -> tuple[TestResult, ...]:
        return tuple(result for result in self.results if not result.ok)

    @property
    def ok(self) -> bool:
        return not self.failed


def run_tests(work: Workspace, options: TestOptions) -> TestReport:
    tests = select_tests(work.project.tests, options.names, options.patterns)
    started = time.monotonic()
    results = run_unit_tests(work.engine, work.project, tests) if tests else ()
    return TestReport(results, time.monotonic() - started)


def select_tests(tests: Sequence[UnitTest], names: Sequence[str], patterns: Sequence[str]) -> tuple[UnitTest, ...]:
    """Return the tests that match a name and a pattern; raise RequestError for a name or pattern that matches none."""
    for name in names:
        if not any(_matches_name(test, name) for test in tests):
            candidates = [word for test in tests for word in (test.name, test.model, test.path)]
            raise RequestError(f"`{name}` is no test.", hint=did_you_mean(name, candidates, most=12))
    matches = [test for test in tests if not names or any(_matches_name(test, name) for name in names)]
    if patterns:
        matches = [t for t in matches if any(pattern in t.name or fnmatch(t.name, pattern) for pattern in patterns)]
    if not matches and patterns:
        hint = did_you_mean(patterns[0], [test.name for test in tests], most=12)
        raise RequestError(f"`{patterns[0]}` is no test.", hint=hint)
    return tuple(matches)


def _matches_name(test: UnitTest, name: str) -> bool:
    """Return True if a word matches the test's name, model or file, or file::name; each may contain * and ?."""
    path, _, test_name = name.partition("::")
    path = path.removeprefix("./")
    if test_name:
        return fnmatch(test.path, path) and fnmatch(test.name, test_name)
    return any(fnmatch(word, path) for word in (test.name, test.model, test.path))
