"""Unit tests of the table after a load: the batch is written as production writes it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.apply.unit_tests import SCHEMA, run_unit_tests
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.model.model import Column
from mergeplan.planner.project.loader import load_project
from tests.conftest import FORMAT
from tests.planner.project.test_loader import project_of

NOW = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
EXTERNAL = "- name: raw.lines\n  columns: {id: int, price: int, d: date}\n"
LINES = "SELECT id, price, d FROM raw.lines"


def messages(engine: Engine, root: Path, kind: str, test: str, query: str = LINES) -> list[str]:
    table_format = f", table_format {FORMAT}" if FORMAT else ""
    model = f"MODEL (name shop.lines, kind {kind}{table_format});\n{query}"
    files = {"external_models.yaml": EXTERNAL, "models/lines.sql": model, "tests/test.yaml": test}
    project = load_project(project_of(root, files), NOW)
    results = run_unit_tests(engine, project, project.tests)
    assert not engine.catalog.objects("mergeplan_unit_tests")
    return [result.message for result in results]


def test_rows_of_a_known_key_replace_the_old_ones(engine: Engine, tmp_path: Path) -> None:
    test = """
later:
  model: shop.lines
  this: [{id: 1, price: 1}, {id: 2, price: 2}, {price: 7}]
  inputs: {raw.lines: [{id: 2, price: 20}, {id: 3, price: 30}, {price: 8}]}
  outputs:
    partial: true
    table: [{id: 1, price: 1}, {id: 2, price: 20}, {id: 3, price: 30}, {price: 7}, {price: 8}]
    query: [{id: 2, price: 20}, {id: 3, price: 30}, {price: 8}]
wrong:
  model: shop.lines
  this: [{id: 1, price: 1, d: 2024-01-01}]
  inputs: {raw.lines: [{id: 1, price: 5, d: 2024-01-02}]}
  outputs: {table: [{id: 1, price: 1, d: 2024-01-02}]}
"""
    good, wrong = messages(engine, tmp_path, "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)", test)

    assert good == ""
    assert wrong.split("\n") == ["Output `table` differs:", "  price: expected 1, got 5 (where id=1, d=2024-01-02)"]


def test_the_conditions_of_a_merge_decide_about_late_rows(engine: Engine, tmp_path: Path) -> None:
    kind = """INCREMENTAL_BY_UNIQUE_KEY (unique_key id,
      when_matched (WHEN MATCHED AND source.d < target.d THEN UPDATE SET target.price = target.price
        WHEN MATCHED THEN UPDATE SET target.price = source.price + target.price, target.d = source.d),
      merge_filter target.id < 100)"""
    test = """
late_row:
  model: shop.lines
  this: [{id: 1, price: 1, d: 2024-01-05}, {id: 2, price: 2, d: 2024-01-05}]
  inputs: {raw.lines: [{id: 1, price: 10, d: 2024-01-04}, {id: 2, price: 20, d: 2024-01-06}]}
  outputs: {table: [{id: 1, price: 1, d: 2024-01-05}, {id: 2, price: 22, d: 2024-01-06}]}
"""
    assert messages(engine, tmp_path, kind, test) == [""]


def test_two_rows_of_one_key_fail_as_the_load_would(engine: Engine, tmp_path: Path) -> None:
    test = """
doubled:
  model: shop.lines
  this: []
  inputs: {raw.lines: [{id: 1, price: 10}, {id: 1, price: 11}]}
  outputs: {table: []}
"""
    (message,) = messages(engine, tmp_path, "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)", test)

    assert "The query of shop.lines returns more than one row for the key (id = 1)" in message


def test_a_batch_replaces_the_partitions_of_its_rows(engine: Engine, tmp_path: Path) -> None:
    test = """
replaced:
  model: shop.lines
  this: [{id: 1, price: 1, d: 2024-01-01}, {id: 2, price: 2, d: 2024-01-01}, {id: 3, price: 3, d: 2024-01-02}, {id: 4}]
  inputs: {raw.lines: [{id: 9, price: 9, d: 2024-01-01}]}
  outputs: {table: [{id: 9, price: 9, d: 2024-01-01}, {id: 3, price: 3, d: 2024-01-02}, {id: 4}]}
new:
  model: shop.lines
  inputs: {raw.lines: [{id: 9, price: 9, d: 2024-01-01}]}
  outputs: {table: [{id: 9, price: 9, d: 2024-01-01}]}
"""
    assert messages(engine, tmp_path, "INCREMENTAL_BY_PARTITION, partitioned_by (d)", test) == ["", ""]


def test_a_model_that_reads_itself_reads_the_rows_of_this(engine: Engine, tmp_path: Path) -> None:
    query = (
        "SELECT l.id, l.price + COALESCE(own.price, 0) AS price, l.d FROM raw.lines AS l LEFT JOIN shop.lines own USING"
        " (id)"
    )
    test = """
own:
  model: shop.lines
  this: [{id: 1, price: 1}]
  inputs: {raw.lines: [{id: 1, price: 10}, {id: 2, price: 20}]}
  outputs:
    query: [{id: 1, price: 11}, {id: 2, price: 20}]
    table: [{id: 1, price: 11}, {id: 2, price: 20}]
"""
    kind = "INCREMENTAL_BY_UNIQUE_KEY (unique_key id), columns (id int, price int, d date)"
    assert messages(engine, tmp_path, kind, test, query) == [""]


def test_a_day_is_replaced_and_rows_are_added(engine: Engine, tmp_path: Path) -> None:
    test = """
any:
  model: shop.lines
  vars: {start: 2024-01-02, end: 2024-01-02}
  this: [{id: 1, d: 2024-01-01}, {id: 2, d: 2024-01-02}]
  inputs: {raw.lines: [{id: 3, d: 2024-01-02}]}
  outputs: {partial: true, table: {rows: [{id: 1, d: 2024-01-01}, {id: 3, d: 2024-01-02}]}}
"""
    added = test.replace("{id: 3, d: 2024-01-02}]}}", "{id: 2, d: 2024-01-02}, {id: 3, d: 2024-01-02}]}}")

    assert messages(engine, tmp_path / "a", "INCREMENTAL_BY_TIME_RANGE (time_column d)", test) == [""]
    assert messages(engine, tmp_path / "b", "INCREMENTAL_UNMANAGED", added) == [""]


@pytest.mark.parametrize(
    ("kind", "lines", "message"),
    [
        ("VIEW", "outputs: {table: []}", "expects a table, and shop.lines is a VIEW model: nothing loads it."),
        (
            "INCREMENTAL_BY_TIME_RANGE (time_column d)",
            "outputs: {table: []}",
            "does not state the time that the load replaces",
        ),
        ("FULL", "this: [{id: 1}]\n  outputs: {query: []}", "which the query of shop.lines does not read."),
        ("FULL", "this:\n  outputs: {table: []}", "`this` lists no rows."),
        ("FULL", "inputs: {shop.lines: []}\n  outputs: {table: []}", "belong under `this`."),
        (
            "SCD_TYPE_2_BY_COLUMN (unique_key id, columns *)",
            "outputs: {table: []}",
            "does not state when shop.lines is loaded",
        ),
    ],
)
def test_a_table_that_cannot_be_tested_is_an_error_of_the_file(
    tmp_path: Path, kind: str, lines: str, message: str
) -> None:
    model = f"MODEL (name shop.lines, kind {kind});\n{LINES}"
    files = {"models/lines.sql": model, "tests/test.yaml": f"t:\n  model: shop.lines\n  {lines}\n"}
    with pytest.raises(ProjectErrors) as caught:
        load_project(project_of(tmp_path, files), NOW)

    assert message in str(caught.value)
    assert "tests/test.yaml:" in str(caught.value)


@pytest.mark.parametrize("rows", ["[{nothing: 1}]", "{query: SELECT 1 AS nothing}"])
def test_a_column_that_the_table_does_not_have_is_an_error(engine: Engine, tmp_path: Path, rows: str) -> None:
    test = f"odd:\n  model: shop.lines\n  this: {rows}\n  outputs: {{table: []}}\n"
    (message,) = messages(engine, tmp_path, "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)", test)

    assert "has no column `nothing`" in message
    assert "tests/test.yaml:3" in message


BY_COLUMN = "SCD_TYPE_2_BY_COLUMN (unique_key id, columns [price], invalidate_hard_deletes {})"
VERSIONS = """
versions:
  model: shop.lines
  vars: {{execution_time: 2024-03-01}}
  this:
  - {{id: 1, price: 1, valid_from: 1970-01-01}}
  - {{id: 2, price: 2, valid_from: 2024-01-01}}
  - {{id: 3, price: 3, valid_from: 2024-01-01, valid_to: 2024-02-01}}
  - {{price: 4, valid_from: 2024-01-01}}
  inputs: {{raw.lines: [{{id: 1, price: 10}}, {{id: 3, price: 3}}, {{price: 5}}]}}
  outputs:
    partial: true
    table:
    - {{id: 1, price: 1, valid_from: 1970-01-01, valid_to: 2024-03-01}}
    - {{id: 1, price: 10, valid_from: 2024-03-01, valid_to: null}}
    - {{id: 2, price: 2, valid_from: 2024-01-01, valid_to: {gone}}}
    - {{id: 3, price: 3, valid_from: 2024-01-01, valid_to: 2024-02-01}}
    - {{id: 3, price: 3, valid_from: 2024-03-01}}
    - {{price: 4, valid_from: 2024-01-01, valid_to: 2024-03-01}}
    - {{price: 5, valid_from: 2024-03-01}}
"""


@pytest.mark.parametrize(("invalidates", "gone"), [("true", "2024-03-01"), ("false", "null")])
def test_versions_begin_and_end_at_the_time_of_the_test(
    engine: Engine, tmp_path: Path, invalidates: str, gone: str
) -> None:
    test = VERSIONS.format(gone=gone)

    assert messages(engine, tmp_path, BY_COLUMN.format(invalidates), test) == [""]


def test_versions_by_time_ignore_a_late_row_and_a_new_table_begins_in_1970(engine: Engine, tmp_path: Path) -> None:
    test = """
later:
  model: shop.lines
  this:
  - {id: 1, price: 1, d: 2024-01-05, valid_from: 1970-01-01}
  - {id: 2, price: 2, d: 2024-01-05, valid_from: 1970-01-01}
  inputs: {raw.lines: [{id: 1, price: 9, d: 2024-01-04}, {id: 2, price: 20, d: 2024-01-06}]}
  outputs:
    table:
    - {id: 1, price: 1, d: 2024-01-05, valid_from: 1970-01-01}
    - {id: 2, price: 2, d: 2024-01-05, valid_from: 1970-01-01, valid_to: 2024-01-06}
    - {id: 2, price: 20, d: 2024-01-06, valid_from: 2024-01-06, valid_to: null}
new:
  model: shop.lines
  inputs: {raw.lines: [{id: 1, price: 9, d: 2024-01-04}]}
  outputs: {table: [{id: 1, price: 9, d: 2024-01-04, valid_from: 1970-01-01, valid_to: null}]}
"""
    assert messages(engine, tmp_path, "SCD_TYPE_2_BY_TIME (unique_key id, updated_at_name d)", test) == ["", ""]


def test_code_loads_its_table_too(engine: Engine, tmp_path: Path) -> None:
    code = (
        "from mergeplan import model\n\n@model('shop.doubled', columns={'id': 'int', 'price': 'int'},"
        " kind=dict(name='INCREMENTAL_BY_UNIQUE_KEY', unique_key=['id']), depends_on=['raw.lines'])\n"
        "def execute(context, **kwargs):\n"
        "    return context.spark.sql(f\"SELECT id, 2 * price AS price FROM {context.table('raw.lines')}\")\n"
    )
    test = """
code:
  model: shop.doubled
  this: [{id: 1, price: 1}, {id: 2, price: 2}]
  inputs: {raw.lines: [{id: 2, price: 20}]}
  outputs: {table: [{id: 1, price: 1}, {id: 2, price: 40}]}
"""
    files = {"external_models.yaml": EXTERNAL, "models/doubled.py": code, "tests/test.yaml": test}
    project = load_project(project_of(tmp_path, files), NOW)

    assert [result.message for result in run_unit_tests(engine, project, project.tests)] == [""]


def test_a_partition_that_is_computed_from_the_table_is_replaced(engine: Engine, tmp_path: Path) -> None:
    query = (
        "SELECT id, price, d FROM raw.lines UNION ALL SELECT id, price + 100 AS price, d FROM shop.lines WHERE id = 1"
    )
    kind = "INCREMENTAL_BY_PARTITION, partitioned_by (d), columns (id int, price int, d date)"
    test = """
own:
  model: shop.lines
  this: [{id: 1, price: 1, d: 2024-01-01}, {id: 2, price: 2, d: 2024-01-01}, {id: 3, price: 3, d: 2024-01-02}]
  inputs: {raw.lines: [{id: 4, price: 4, d: 2024-01-01}]}
  outputs:
    table: [{id: 1, price: 101, d: 2024-01-01}, {id: 4, price: 4, d: 2024-01-01}, {id: 3, price: 3, d: 2024-01-02}]
"""
    assert messages(engine, tmp_path, kind, test, query) == [""]


def test_code_that_reads_its_own_table_reads_the_rows_of_this(engine: Engine, tmp_path: Path) -> None:
    code = (
        "from mergeplan import model\n\n@model('shop.added', columns={'id': 'int'}, kind='INCREMENTAL_UNMANAGED',"
        " depends_on=['shop.added'])\n"
        "def execute(context, **kwargs):\n"
        "    return context.spark.sql(f\"SELECT MAX(id) + 1 AS id FROM {context.table('shop.added')}\")\n"
    )
    test = "next:\n  model: shop.added\n  this: [{id: 1}, {id: 4}]\n  outputs: {table: [{id: 1}, {id: 4}, {id: 5}]}\n"
    project = load_project(project_of(tmp_path, {"models/added.py": code, "tests/test.yaml": test}), NOW)

    assert [result.message for result in run_unit_tests(engine, project, project.tests)] == [""]


def test_a_column_without_a_type_is_named(engine: Engine, tmp_path: Path) -> None:
    test = "untyped:\n  model: shop.lines\n  inputs: {raw.other: [{id: 1}]}\n  outputs: {table: []}\n"
    (message,) = messages(engine, tmp_path, "FULL", test, "SELECT id, what FROM raw.other")

    assert "The type of `what` in the table of shop.lines is not known." in message


def test_a_table_that_a_killed_process_left_is_dropped_a_day_later(engine: Engine, tmp_path: Path) -> None:
    left, recent = f"{SCHEMA}.t{int(time.time()) - 90_000}_0123456789ab", f"{SCHEMA}.t{int(time.time())}_0123456789ab"
    for name in (left, recent):
        engine.tables.create(Table(name, (Column("id", "int"),)))
    test = "t:\n  model: shop.lines\n  inputs: {raw.lines: []}\n  outputs: {table: []}\n"
    model = f"MODEL (name shop.lines, kind FULL);\n{LINES}"
    files = {"external_models.yaml": EXTERNAL, "models/lines.sql": model, "tests/test.yaml": test}
    project = load_project(project_of(tmp_path, files), NOW)

    assert [result.message for result in run_unit_tests(engine, project, project.tests)] == [""]
    assert engine.catalog.objects(SCHEMA) == {recent.partition(".")[2]}


def test_code_has_no_ctes_to_expect(engine: Engine, tmp_path: Path) -> None:
    code = (
        "from mergeplan import model\n\n@model('shop.one', columns={'id': 'int'}, kind='FULL')\n"
        "def execute(context, **kwargs):\n    return context.spark.sql('SELECT 1 AS id')\n"
    )
    test = "ctes:\n  model: shop.one\n  outputs: {ctes: {a: []}}\n"
    project = load_project(project_of(tmp_path, {"models/one.py": code, "tests/test.yaml": test}), NOW)
    (result,) = run_unit_tests(engine, project, project.tests)

    assert "it has no CTEs to test" in result.message
