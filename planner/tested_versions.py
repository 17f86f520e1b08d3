"""Versions of Python, Spark, dbt, Airflow, Dagster and the table formats that the tests run."""

import re

from mergeplan.planner.name_lists import read_lists

TESTED = read_lists(__package__, "tested_versions.ini")["versions"]
_LINE = re.compile(r"\d+\.\d+")


def is_tested(name: str, version: str) -> bool:
    """Return True if a version of the same line, like 4.1, was tested."""
    return _line(version) in map(_line, TESTED[name])


def with_tested(name: str, version: str) -> str:
    """Return the version with those that were tested."""
    note = "" if is_tested(name, version) else "no test runs it; "
    return f"{version} ({note}tested: {', '.join(TESTED[name])})"


def _line(version: str) -> str:
    numbers = _LINE.match(version)
    return numbers[0] if numbers else version
