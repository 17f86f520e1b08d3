"""test: the project's unit tests, all or some, told to a person, to a program, or to a CI system as JUnit's XML."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from xml.etree import ElementTree

import click

from planner.checks.unit_tests import TestResult, run_unit_tests
from planner.cli.json_lines import JsonLines
from planner.cli.plan import output_option
from planner.cli.terminal import Terminal
from planner.cli.workspace import opened, workspace
from planner.contract.result import ResultLine, TestCounts
from planner.errors import RequestError
from planner.parsing.definitions.unit_tests import UnitTest
from planner.parsing.sql.tokens import did_you_mean


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "-k", "patterns", multiple=True, metavar="TEXT", help="Only tests whose name contains this, or matches it."
)
@click.option("-v", "--verbose", is_flag=True, help="Each test by its name, and every row that differs.")
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Also write JUnit's XML to this file.")
@output_option
@workspace
def test(
    names: tuple[str, ...],
    patterns: tuple[str, ...],
    verbose: bool,
    junit: Path | None,
    root: Path,
    gateway: str | None,
    output: str,
) -> int:
    """Run the project's unit tests, all or those of the given NAMES: tests, models, files, FILE::TEST, also as globs.

    \b
    mergeplan test
    mergeplan test shop.orders tests/test_full_model.yaml::test_example
    mergeplan test 'tests/test_*' -k orders --junit report.xml
    """
    out = JsonLines() if output == "json" else Terminal()
    with opened(root, gateway) as work:
        tests = chosen(work.project.tests, names, patterns)
        started = time.monotonic()
        results = run_unit_tests(work.engine, work.project, tests) if tests else ()
        seconds = time.monotonic() - started
    if isinstance(out, Terminal):
        out.tests(results, seconds, verbose=verbose)
    else:
        out.tests(results, seconds)
    if junit is not None:
        junit.write_text(junit_xml(results, seconds), "utf-8")
    failed = sum(not result.ok for result in results)
    if isinstance(out, JsonLines):
        counts = TestCounts(passed=len(results) - failed, failed=failed)
        out.result(ResultLine(ok=not failed, tests=counts))
    return 1 if failed else 0


def chosen(tests: Sequence[UnitTest], names: Sequence[str], patterns: Sequence[str]) -> tuple[UnitTest, ...]:
    """The tests that one of the names means, and one of the patterns; RequestError for a word that means none."""
    for name in names:
        if not any(_named(test, name) for test in tests):
            known = [word for test in tests for word in (test.name, test.model, test.path)]
            raise RequestError(f"`{name}` is no test.", hint=did_you_mean(name, known, most=12))
    found = [test for test in tests if not names or any(_named(test, name) for name in names)]
    found = [test for test in found if not patterns or any(_like(test, pattern) for pattern in patterns)]
    if not found and patterns:
        hint = did_you_mean(patterns[0], [test.name for test in tests], most=12)
        raise RequestError(f"`{patterns[0]}` is no test.", hint=hint)
    return tuple(found)


def junit_xml(results: Sequence[TestResult], seconds: float) -> str:
    """The results as JUnit's XML: a failure is rows that differ, an error a test that could not be run."""
    errors = sum(result.error is not None for result in results)
    failures = sum(not result.ok for result in results) - errors
    counts = {"tests": len(results), "failures": failures, "errors": errors, "time": f"{seconds:.3f}"}
    suite = ElementTree.Element("testsuite", {"name": "mergeplan", **{key: str(each) for key, each in counts.items()}})
    for result in results:
        test = result.test
        place = {"classname": test.model, "name": test.name, "file": test.path, "line": str(test.line)}
        case = ElementTree.SubElement(suite, "testcase", place)
        if not result.ok:
            kind = "failure" if result.error is None else "error"
            told = ElementTree.SubElement(case, kind, {"message": result.message.partition("\n")[0]})
            told.text = result.message
    ElementTree.indent(suite)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suite, "unicode")}\n'


def _named(test: UnitTest, name: str) -> bool:
    """Whether a word means the test: its name, its model, its file, or file::name; each may hold * and ?."""
    path, _, own = name.partition("::")
    path = path.removeprefix("./")
    if own:
        return fnmatch(test.path, path) and fnmatch(test.name, own)
    return any(fnmatch(word, path) for word in (test.name, test.model, test.path))


def _like(test: UnitTest, pattern: str) -> bool:
    return pattern in test.name or fnmatch(test.name, pattern)
