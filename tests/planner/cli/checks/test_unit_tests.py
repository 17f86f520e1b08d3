"""mergeplan test and create_test: which tests run, how a failure looks, and a test written from rows."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from mergeplan.planner.checks.unit_test_result import TestResult
from mergeplan.planner.cli.checks.unit_tests import junit_xml
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.parsing.definitions.unit_tests import UnitTest
from mergeplan.planner.project.scaffold import Wishes, write_project
from tests.planner.cli.conftest import CommandLine
from tests.planner.shop import ALONE

FULL = "sqlmesh_example.full_model"
TESTS = tuple(
    UnitTest(name, model, path, 1, {}, None, {})
    for name, model, path in (
        ("test_a", "shop.a", "tests/test_a.yaml"),
        ("test_b", "shop.b", "tests/test_a.yaml"),
        ("other", "shop.b", "tests/other.yaml"),
    )
)
TOTAL = """MODEL (name shop.total, kind FULL);
WITH dear AS (SELECT * FROM shop.lines WHERE price > 1) SELECT day, SUM(price) AS total FROM dear GROUP BY day"""
WRONG = """
test_total:
  model: shop.total
  description: what a day brings
  inputs: {shop.lines: [{day: 2026-01-01, price: 5}]}
  outputs: {query: [{day: 2026-01-01, total: 6}, {day: 2026-01-02, total: 6}]}
"""


def test_junit_tells_failures_from_errors() -> None:
    results = (TestResult(TESTS[0]), TestResult(TESTS[1], error=MergeplanError("no <way>")))

    suite = ElementTree.fromstring(junit_xml(results, 1.5))  # noqa: S314  # our own text

    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("time")) == (
        "2",
        "0",
        "1",
        "1.500",
    )
    assert [(case.get("name"), len(case)) for case in suite] == [("test_a", 0), ("test_b", 1)]
    assert suite[1][0].get("message") == "no <way>"


def test_a_failed_test_is_shown_as_a_table_and_a_written_one_passes(shop: Callable[..., CommandLine]) -> None:
    mergeplan = shop(**ALONE | {"total": TOTAL})
    mergeplan.write("external_models.yaml", "- name: shop.lines\n  columns: {day: date, price: 'decimal(10,2)'}\n")
    mergeplan.write("tests/test_total.yaml", WRONG)

    failed = mergeplan("test", "-v", "--junit", "report.xml")
    rows = "SELECT DATE'2026-01-01' AS day, CAST(p AS DECIMAL(10, 2)) AS price FROM VALUES (1.5), (2.0), (0.5) AS t(p)"
    kept = mergeplan("create_test", "shop.total", "-q", "shop.lines", rows)
    arguments = ("--include-ctes", "--overwrite", "--var", "start", "2026-01-01")
    written = mergeplan("create-test", "shop.total", "-q", "shop.lines", rows, *arguments)
    passed = mergeplan("test", "tests/test_total.yaml::test_total")

    assert failed.code == 1
    assert "FAIL tests/test_total.yaml::test_total\n" in failed.out
    lines = [line.replace("│", "").split() for line in failed.out.splitlines() if "│" in line]
    assert lines == [["expected", "2026-01-01", "6"], ["actual", "2026-01-01", "5.00"], ["missing", "2026-01-02", "6"]]
    assert 'failures="1"' in (mergeplan.root / "report.xml").read_text()
    assert (kept.code, kept.err.splitlines()[0]) == (
        1,
        "Error: `test_total.yaml` exists already: nothing was written. Give `--overwrite` or `--path`.",
    )
    assert (written.code, passed.code) == (0, 0)
    text = (mergeplan.root / "tests/test_total.yaml").read_text()
    assert "  outputs:\n    ctes:\n      dear:\n      - day: 2026-01-01\n        price: '1.50'\n" in text
    assert "    query:\n    - day: 2026-01-01\n      total: '3.50'\n  vars:\n    start: 2026-01-01\n" in text


def test_a_test_of_a_table_is_written_and_passes(shop: Callable[..., CommandLine]) -> None:
    kept = "MODEL (name shop.kept, kind SCD_TYPE_2_BY_COLUMN (unique_key day, columns *));\nSELECT * FROM shop.lines"
    mergeplan = shop(**ALONE | {"kept": kept})
    mergeplan.write("external_models.yaml", "- name: shop.lines\n  columns: {day: date, price: 'decimal(10,2)'}\n")
    lines = "SELECT DATE'2026-01-01' AS day, CAST(2 AS DECIMAL(10, 2)) AS price"
    this = "SELECT DATE'2026-01-01' AS day, 1.00 AS price, TIMESTAMP'2026-01-01' AS valid_from"

    timeless = mergeplan("create_test", "shop.kept", "-q", "shop.lines", lines, "--this", this)
    times = ("--var", "execution_time", "2026-02-01")
    written = mergeplan("create_test", "shop.kept", "-q", "shop.lines", lines, "--this", this, *times)
    passed = mergeplan("test", "shop.kept")

    assert (timeless.code, "does not state when shop.kept is loaded" in timeless.err) == (1, True)
    assert (written.code, passed.code) == (0, 0)
    text = (mergeplan.root / "tests/test_kept.yaml").read_text()
    assert "      valid_to: '2026-02-01 00:00:00'\n" in text
    assert "      valid_from: '2026-02-01 00:00:00'\n      valid_to: null\n" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("shop.nothing", "There is no model `shop.nothing`."),
        (f"{FULL} --path ../x.yaml", "`../x.yaml` is no YAML file in tests/."),
        ("sqlmesh_example.full_model --path x.sql", "`x.sql` is no YAML file in tests/."),
        ("sqlmesh_example.full_model", "`test_full_model.yaml` exists already: nothing was written."),
        (
            "sqlmesh_example.full_model -n test_example_full_model --path b.yaml",
            "is already defined at tests/test_full",
        ),
        (
            "sqlmesh_example.full_model --path b.yaml -q raw.x select",
            "sqlmesh_example.full_model does not read `raw.x`.",
        ),
    ],
)
def test_a_test_that_cannot_be_written_is_told(arguments: str, told: str, offline: CommandLine) -> None:
    write_project(offline.root, Wishes())
    before = sorted(offline.root.rglob("*"))

    ran = offline("create_test", *arguments.split())

    assert (ran.code, ran.out) == (1, "")
    assert told in ran.err
    assert [path for path in sorted(offline.root.rglob("*")) if ".mergeplan" not in path.parts] == before
