"""Unit tests of macros: the text that a call becomes, and the rows of a query with it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.apply.unit_tests import run_unit_tests
from mergeplan.planner.checks.remembered_tests import TestDigests
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.project.loader import Project, load_project
from tests.planner.project.test_loader import project_of

NOW = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
PYTHON = (
    "from mergeplan import macro\n\n\n@macro()\ndef cents(evaluator, column, places=2):\n"
    "    return f'ROUND({column.sql()} / 100, {places})'\n"
)
JINJA = "{% macro euros(column, places=2) %}ROUND({{ column }} / 100, {{ places }}){% endmacro %}\n"
TESTS = """
of_text:
  macro: cents
  call: "@cents(amount, 3)"
  outputs: {text: "round(amount/100,   3)"}
of_jinja:
  macro: euros
  call: "{{ euros('amount') }}"
  outputs: {text: "ROUND(amount / 100, 2)"}
of_rows:
  macro: cents
  call: SELECT id, @cents(amount) AS euros FROM raw.orders
  inputs: {raw.orders: [{id: 1, amount: 250}, {id: 2}]}
  outputs:
    query: [{id: 1, euros: 2.5}, {id: 2}]
    text: SELECT id, ROUND(amount / 100, 2) AS euros FROM raw.orders
of_a_variable:
  macro: if
  call: "@IF(@much > 1, a, b)"
  vars: {much: 2}
  outputs: {text: a}
"""


def project(root: Path, tests: str = TESTS, python: str = PYTHON) -> Project:
    model = "MODEL (name s.m, kind FULL);\nSELECT 1 AS a"
    files = {"macros/cents.py": python, "macros/euros.sql": JINJA, "models/m.sql": model, "tests/test.yaml": tests}
    return load_project(project_of(root, files), NOW)


def test_a_call_becomes_a_text_and_rows(engine: Engine, tmp_path: Path) -> None:
    opened = project(tmp_path)
    results = run_unit_tests(engine, opened, opened.tests)

    assert {result.test.name: result.message for result in results} == dict.fromkeys(
        ("of_text", "of_jinja", "of_rows", "of_a_variable"), ""
    )


def test_another_text_is_shown_beside_the_expected_one(engine: Engine, tmp_path: Path) -> None:
    opened = project(tmp_path, TESTS.replace("100,   3", "100, 4").replace("euros: 2.5", "euros: 2"))
    messages = {result.test.name: result.message for result in run_unit_tests(engine, opened, opened.tests)}

    assert "text: expected 'round(amount/100, 4)', got 'ROUND(amount / 100, 3)'" in messages["of_text"]
    assert "euros: expected 2, got 2.5" in messages["of_rows"]
    assert messages["of_jinja"] == ""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('"@cents()"', "The macro `@cents`"),
        ("SELECT amount", "The `call` of the test `t` does not call `cents`."),
        ('"{{ cents(1) }}"', "Jinja: "),
        ('"@cents("', "tests/test.yaml:2"),
    ],
)
def test_a_wrong_call_is_an_error_of_its_test(engine: Engine, tmp_path: Path, call: str, message: str) -> None:
    opened = project(tmp_path, f"\nt:\n  macro: cents\n  call: {call}\n  outputs: {{text: x}}\n")
    (result,) = run_unit_tests(engine, opened, opened.tests)

    assert message in result.message
    assert "tests/test.yaml:2" in result.message


def test_a_query_that_is_nested_too_deeply_is_an_error_of_its_test(engine: Engine, tmp_path: Path) -> None:
    query = f"SELECT {'(' * 3000}@cents(a){')' * 3000} AS x"
    opened = project(tmp_path, f"\nt:\n  macro: cents\n  call: {query}\n  outputs: {{query: []}}\n")
    (result,) = run_unit_tests(engine, opened, opened.tests)

    assert result.message.startswith("tests/test.yaml:2")
    assert "too deep" in result.message


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("macro: cents\n  outputs: {text: x}", "does not call its macro"),
        ("macro: cents\n  call: '@cents(a)'\n  this: []\n  outputs: {text: x}", "The test of a macro has no `this`."),
        ("macro: cents\n  call: '@cents(a)'\n  outputs: {table: []}", "`table` is not a key"),
        ("model: s.m\n  call: '@cents(a)'\n  outputs: {query: []}", "`call` belongs to the test of a macro."),
        ("model: s.m\n  outputs: {text: x}", "`text` is not a key"),
        ("macro: cents\n  call: '@cents(a)'\n  outputs: {}", "has no outputs"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(ProjectErrors, match=message.replace("(", r"\(")):
        project(tmp_path, f"t:\n  {lines}\n")


def test_an_edit_of_a_macro_is_another_digest(tmp_path: Path) -> None:
    edited = PYTHON.replace("/ 100", "/ 10")
    digests = []
    for name, python in (("a", PYTHON), ("b", PYTHON), ("c", edited)):
        opened = project(tmp_path / name, python=python)
        digests.append([TestDigests(opened, Connection()).compute(test) for test in opened.tests[:3]])
        opened.code.close()

    assert None not in digests[0]
    assert digests[0] == digests[1]
    assert [old != new for old, new in zip(digests[0], digests[2], strict=True)] == [True, False, True]
