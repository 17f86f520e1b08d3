"""test: the project's unit tests, all or some, for a person, for a program, or for a CI system as JUnit's XML."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click

from mergeplan.planner.checks.unit_test_result import TestResult
from mergeplan.planner.cli.click_options import options_from
from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.output import output_of, output_option
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.result import ResultLine, TestCounts
from mergeplan.planner.session.options import TestOptions
from mergeplan.planner.session.use_cases.unit_tests import run_tests


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "-k", "patterns", multiple=True, metavar="TEXT", help="Only tests whose name contains this, or matches it."
)
@click.option("-v", "--verbose", is_flag=True, help="Each test by its name, and every row that differs.")
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Also write JUnit's XML to this file.")
@output_option
@workspace
def test(verbose: bool, junit: Path | None, root: Path, gateway: str | None, output: str, **option_values: Any) -> int:
    """Run the project's unit tests, all or those of the given NAMES: tests, models, files, FILE::TEST, also as globs.

    \b
    mergeplan test
    mergeplan test shop.orders tests/test_full_model.yaml::test_example
    mergeplan test 'tests/test_*' -k orders --junit report.xml
    """
    out = output_of(output)
    with open_workspace(root, gateway) as work:
        report = run_tests(work, options_from(TestOptions, option_values))
    results, seconds = report.results, report.seconds
    if isinstance(out, Terminal):
        out.tests(results, seconds, verbose=verbose)
    else:
        out.tests(results, seconds)
    if junit is not None:
        junit.write_text(junit_xml(results, seconds), "utf-8")
    if isinstance(out, JsonLines):
        failed = len(report.failed)
        counts = TestCounts(passed=len(results) - failed, failed=failed)
        out.result(ResultLine(ok=report.ok, tests=counts))
    return 0 if report.ok else 1


def junit_xml(results: Sequence[TestResult], seconds: float) -> str:
    """Return the results as JUnit's XML: a failure is differing rows, an error a test that could not be run."""
    errors = sum(result.error is not None for result in results)
    failures = sum(not result.ok for result in results) - errors
    counts = {"tests": len(results), "failures": failures, "errors": errors, "time": f"{seconds:.3f}"}
    suite = ElementTree.Element(
        "testsuite", {"name": "mergeplan", **{key: str(count) for key, count in counts.items()}}
    )
    for result in results:
        test = result.test
        place = {"classname": test.model, "name": test.name, "file": test.path, "line": str(test.line)}
        case = ElementTree.SubElement(suite, "testcase", place)
        if not result.ok:
            kind = "failure" if result.error is None else "error"
            detail = ElementTree.SubElement(case, kind, {"message": result.message.partition("\n")[0]})
            detail.text = result.message
    ElementTree.indent(suite)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suite, "unicode")}\n'
