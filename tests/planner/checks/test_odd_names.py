"""Checks of columns with odd names: audits and their samples, unit tests, and comparisons of tables."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.apply.unit_tests import run_unit_tests
from mergeplan.planner.checks.audits import AuditContext, run_audit
from mergeplan.planner.checks.diff.data_diff import key_of
from mergeplan.planner.checks.diff.diff_query import DiffOptions
from mergeplan.planner.checks.diff.table_diff import compare_tables
from mergeplan.planner.engine.protocol import Engine, Rows, ViewText
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.project.loader import load_project
from tests.planner.project.test_loader import project_of
from tests.sampling import prove_rest

NOW = datetime(2026, 1, 8, tzinfo=UTC)
FULL = AuditContext(samples="full")
NAMES = ("a-b", "a.b", "c d", "select", "x`y", "it's")
UNIT_TEST = """
right:
  model: shop.t
  inputs:
    raw.lines:
    - {{{0}: 1, s: {{{0}: 2, order: 3}}}}
  outputs:
    query:
    - {{{0}: 1, inner: 3}}
"""


@pytest.mark.parametrize("name", prove_rest(NAMES, 2))
def test_a_unit_test_names_any_column(engine: Engine, tmp_path: Path, name: str) -> None:
    quoted, key = quote_column(name), '"' + name + '"'
    lines = f'- name: raw.lines\n  columns: {{{key}: int, s: "struct<{quoted}:int,order:int>"}}\n'
    query = f"MODEL (name shop.t, kind FULL);\nSELECT {quoted}, s.`order` AS inner FROM raw.lines"
    files = {"external_models.yaml": lines, "models/t.sql": query, "tests/test.yaml": UNIT_TEST.format(key)}
    project = load_project(project_of(tmp_path, files), NOW)

    (result,) = run_unit_tests(engine, project, project.tests)

    assert result.message == ""


@pytest.mark.parametrize("name", prove_rest(NAMES, 2))
def test_two_columns_that_differ_by_quotes_alone_are_two(engine: Engine, name: str) -> None:
    quoted = quote_column(name)
    rows = "FROM VALUES (1, NULL), (2, 5), (3, 5) AS t(i, v)"
    engine.catalog.swap_view(ViewText("audited.odd", f"SELECT i, v AS {quoted}, 1 AS a, 1 AS b, 1 AS x, 1 AS y {rows}"))
    calls = f"not_null(columns := ({quoted})), unique_values(columns := ({quoted}, i)), not_null(columns := i)"
    model, _ = parse_model(f"MODEL (name s.m, kind FULL, audits ({calls}));\nSELECT 1 AS i", "m.sql", Defaults(NOW))
    assert model is not None

    results = [run_audit(engine, model, call, "audited.odd", None, FULL) for call in model.checks.audits]

    assert [result.count for result in results] == [1, 1, 0]
    assert results[0].sample == Rows(("i", name, "a", "b", "x", "y"), ((1, None, 1, 1, 1, 1),))


@pytest.mark.parametrize("name", prove_rest(NAMES, 2))
def test_tables_are_compared_by_a_key_with_an_odd_name(engine: Engine, name: str) -> None:
    quoted, literal = quote_column(name), name.replace("'", "\\'")
    for table, moved in (("one", 7), ("two", 8)):
        value = f"NAMED_STRUCT('{literal}', IF(i = 2, {moved}, i))"
        sql = f"SELECT i AS {quoted}, {value} AS s, 1 AS a, 1 AS b, 1 AS x, 1 AS y FROM VALUES (1), (2), (3) AS t(i)"
        engine.catalog.swap_view(ViewText(f"diff.{table}", sql))

    options = DiffOptions((name,), where=f"{quoted} > 1", samples=5)
    rows = compare_tables(engine, ("a", "b"), ("diff.one", "diff.two"), options).rows

    assert rows is not None
    assert (rows.common, rows.changed, rows.only) == (2, 1, (0, 0))


def test_a_unique_key_that_is_a_name_is_the_key_of_a_comparison() -> None:
    kind = "INCREMENTAL_BY_UNIQUE_KEY (unique_key `a-b`)"
    named, _ = parse_model(f"MODEL (name s.m, kind {kind});\nSELECT 1 AS `a-b`", "m.sql", Defaults(NOW))
    computed, _ = parse_model(f"MODEL (name s.m, kind {kind.replace('`', '')});\nSELECT 1 AS a", "m.sql", Defaults(NOW))
    assert named is not None and computed is not None

    assert key_of(named, ("a-b",))[0] == ("a-b",)
    assert key_of(computed, ("a - b", "a", "b"))[0] == ()
