"""Unit tests with the table after a load: the batch is written as in production, into a scratch table."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from mergeplan.planner.apply.backfill.table_columns import add_missing_columns, apply_declared_columns, check_contract
from mergeplan.planner.apply.backfill.write_batch import Batch, write_batch
from mergeplan.planner.apply.physical_tables import build_table
from mergeplan.planner.checks.load_of_test import TestLoad
from mergeplan.planner.checks.unit_test_result import TestResult
from mergeplan.planner.checks.unit_tests import check_tests, model_rows
from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import ProjectError, QueryError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from mergeplan.planner.naming import parts_of, qualify_table, quote_column
from mergeplan.planner.parsing.definitions.unit_tests import UnitTest
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.project.loader import Project
from mergeplan.planner.tables.merge.dbt_snapshot import fill_versions
from mergeplan.planner.tables.partitioning import check_columns
from mergeplan.planner.tables.self_reference import empty_relation, own_columns

SCHEMA = "mergeplan_unit_tests"
LONG_AGO = datetime(1900, 1, 1, tzinfo=UTC)  # since when a table holds the rows of `this`
LEFTOVER = 86_400  # seconds after which a scratch table is that of a process that ended
_SCRATCH = re.compile(r"t(\d+)_[0-9a-f]{12}")


def run_unit_tests(engine: Engine, project: Project, tests: Sequence[UnitTest]) -> tuple[TestResult, ...]:
    for catalog in sorted({parts_of(test.model)[0] for test in tests if test.table is not None}):
        with suppress(QueryError):  # another user's table: it stays
            # tables of processes that were killed
            schema = f"{catalog}.{SCHEMA}" if catalog else SCHEMA
            for name in engine.catalog.objects(schema):
                match = _SCRATCH.fullmatch(name)
                if match and time.time() - int(match[1]) > LEFTOVER:
                    engine.tables.drop(f"{schema}.{name}")
    try:
        return check_tests(engine, project, tests, partial(load_table, engine, project))
    finally:
        project.code.close()  # a call of a macro in Python starts it


def compute_outputs(engine: Engine, project: Project, test: UnitTest) -> dict[str, Rows]:
    return model_rows(engine, project, test, partial(load_table, engine, project))


@contextmanager
def load_table(engine: Engine, project: Project, load: TestLoad) -> Iterator[str]:
    """Yield a query for the rows of the table after the load; the table exists within the context."""
    model, test = load.model, load.test
    columns = _table_columns(engine, load)
    catalog = parts_of(model.name)[0]
    name = qualify_table(catalog, SCHEMA, f"t{int(time.time())}_{uuid4().hex[:12]}")
    table = build_table(model, name, columns)
    _check_interval(table, load)
    try:
        engine.tables.create(table)
        if load.previous_rows is not None:
            _write_previous_rows(engine, table, load)
        loaded_time = () if test.this is None else (Interval(LONG_AGO, load.interval.start),)
        write_batch(
            Batch(
                load,
                engine,
                project.root,
                table,
                model,
                load.interval,
                loaded_time,
                untouched=load.previous_rows is None,
            )
        )
        yield f"SELECT {', '.join(quote_column(column.name) for column in columns)} FROM {name}"
    finally:
        with suppress(QueryError):  # a later run drops what stays
            engine.tables.drop(name)


def _table_columns(engine: Engine, load: TestLoad) -> tuple[Column, ...]:
    """Return the columns of the model's table, as `table_columns` does for a real one."""
    model = load.model
    empty_rows = ""
    if model.reads_itself:
        empty_rows = empty_relation(own_columns(model, lambda query, rows: engine.schema(load.render(query, rows))))
    columns = engine.schema(load.render(model, empty_rows))
    check_contract(model, columns)
    columns = apply_declared_columns(model, columns)
    check_columns(model, columns)
    if untyped := next((column.name for column in columns if "void" in column.type), ""):
        message = f"The type of `{untyped}` in the table of {model.name} is not known."
        hint = "Give an input a row with a value for it, or its type under `columns`."
        raise ProjectError(message, place=load.test.place, hint=hint)
    return (*columns, *model.history_columns)


def _check_interval(table: Table, load: TestLoad) -> None:
    if table.partitioning is None:
        return
    try:
        table.partitioning.bounds(load.interval)
    except ValueError:
        message = f"The test's time does not begin and end with a unit of {load.model.name} ({load.model.cron.unit})."
        hint = "Give whole units as `vars: {start: ..., end: ...}`."
        raise ProjectError(message, place=load.test.place, hint=hint) from None


def _write_previous_rows(engine: Engine, table: Table, load: TestLoad) -> None:
    """Fill the new table with the rows of `this`, as a copy of another table would be written."""
    assert load.previous_rows is not None and load.test.this is not None
    sql = load.previous_rows(table.columns)
    columns, names = engine.schema(sql), [column.name for column in table.columns]
    for column in columns:
        if column.name not in names:
            place, hint = replace(load.test.place, line=load.test.this.line), did_you_mean(column.name, names)
            message = f"The table of {load.model.name} has no column `{column.name}`."
            raise ProjectError(message, place=place, hint=hint)
    rows = add_missing_columns(sql, columns, table.columns)
    if load.model.history is not None:
        rows = fill_versions(rows, table.columns, load.model.by_key.unique_key, load.model.history)
    if table.partitioning is not None or (table.listed and table.parts):
        engine.tables.replace_partitions(table, rows, others=True)
    else:
        engine.tables.replace(table, rows)
