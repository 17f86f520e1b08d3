"""A name or a format that a project writes stays one in every SQL text: no function is called by way of it.

Only what a model's own SQL says is searched for functions that Spark may not call.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlglot import exp

from mergeplan.planner.apply.backfill.table_columns import add_missing_columns
from mergeplan.planner.checks.audits import _rows_query
from mergeplan.planner.checks.inlining import render_rows
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.engine.table import time_partitioning
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.render import no_rows
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.tables.self_reference import empty_relation
from tests.planner.shop import NOW

CONFIG = "gateways: {spark: {connection: {type: spark}}}\nmodel_defaults: {start: 2026-01-01}\n"
EVIL = "a`, reflect('java.lang.System', 'getenv', 'HOME') as `b"
COLUMNS = (Column(EVIL, "int"), Column("c", "string"))
MAKERS: dict[str, Callable[[], str]] = {
    "rows of a unit test": lambda: render_rows({EVIL: "int"}, [{EVIL: 1}]),
    "no rows of a unit test": lambda: render_rows({EVIL: "array<int>"}, []),
    "a query without rows": lambda: no_rows(COLUMNS),
    "a table that reads itself": lambda: empty_relation(COLUMNS),
    "columns that went": lambda: add_missing_columns("SELECT 1 AS c", (Column("c", "string"),), COLUMNS),
    "columns that stay": lambda: add_missing_columns("SELECT 1 AS c", COLUMNS, COLUMNS[:1]),
    "a column of time": lambda: (
        "SELECT " + time_partitioning(COLUMNS, EVIL, "", 86400, use_hidden_column=True).expression
    ),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_name_of_a_column_calls_no_function(maker: str) -> None:
    tree = spark_tree(MAKERS[maker]())

    assert [str(node.this) for node in tree.find_all(exp.Anonymous) if str(node.this).lower() == "reflect"] == []
    assert EVIL in {node.name for node in tree.find_all(exp.Identifier)}


def test_a_format_of_times_calls_no_function(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "models/a.sql").write_text(
        "MODEL (name s.a, kind INCREMENTAL_BY_TIME_RANGE (time_column (ds, 'yyyy')));\nSELECT '2026' AS ds, 1 AS x"
    )
    model = load_project(tmp_path, NOW).models["s.a"]
    model = replace_settings(model, {"time_format": "'), reflect('x', 'y'), ('"})
    interval = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))

    tree = spark_tree(_rows_query(model, "s.t", interval))

    assert "reflect" not in {str(node.this).lower() for node in tree.find_all(exp.Anonymous)}


def test_spark_reads_such_a_name_as_a_name(engine: Engine) -> None:
    assert engine.fetch(render_rows({EVIL: "int"}, [{EVIL: 1}])).rows == ((1,),)
    assert [column.name.lower() for column in engine.schema(no_rows(COLUMNS[:1]))] == [EVIL.lower()]
