"""Models that read themselves: under its own name a query finds its table as it was before the batch.

It never finds rows of the batch itself, nor of an interrupted batch, so that a repeated batch gives the same rows.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from sqlglot import exp

from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import ProjectError, QueryError
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.semantics.columns import tables_of
from mergeplan.planner.tables.batch_ids import batch_condition

ROUNDS = 4  # until types that depend on each other no longer change
HINT = "Declare them in MODEL: `columns (day DATE, total BIGINT)`."
DBT_HINT = "Declare each with its `data_type` in the model's YAML, under an enforced contract."


def empty_relation(columns: Iterable[Column]) -> str:
    """Return a table of these columns without rows, as a query in brackets."""
    cells = (f"{_null_cell(column.type)} AS {quote_column(column.name)}" for column in columns)
    return f"(SELECT {', '.join(cells)} WHERE FALSE)"


def previous_rows_query(
    model: Model, table: Table, interval: Interval, held_time: Timeline, now: datetime, base: str = ""
) -> str:
    """Return what a batch reads under its model's own name, in brackets; '' for a model that does not read itself.

    `held_time` is the recorded time of the table. `base` names the relation with the earlier rows if that is not the
    table itself.
    """
    if not model.reads_itself:
        return ""
    names = ", ".join(quote_column(column.name) for column in table.columns)
    rows = f"SELECT {names} FROM {base or table.name}"
    if not held_time:
        return empty_relation(table.columns)
    if not model.kind.is_by_time:
        return f"({rows} WHERE {batch_condition(model, held_time, now)})"
    assert table.partitioning is not None
    if interval.start <= held_time[0].start:
        return empty_relation(table.columns)
    by, bounds = table.partitioning, table.partitioning.bounds(Interval(held_time[0].start, interval.start))
    first, end = (f"CAST('{text}' AS {by.type})" for text in bounds)
    column = quote_column(by.column)
    return f"({rows} WHERE {column} >= {first} AND {column} < {end})"


def own_columns(model: Model, ask: Callable[[Model, str], tuple[Column, ...]]) -> tuple[Column, ...]:
    """Return a self-reading model's columns, declared or inferred by `ask` over an own table; raise ProjectError."""
    if model.columns:
        return model.columns
    tree = spark_tree(model.sql)
    assert isinstance(tree, exp.Query)
    if tree.is_star:
        columns = _columns_of_first(model, tree, ask)
    else:
        columns = tuple(Column(name.lower(), "void") for name in tree.named_selects)
    for _ in range(ROUNDS):
        typed = ask(model, empty_relation(columns))
        if typed == columns:
            break
        columns = typed
    else:
        raise _inference_error(model, "their types grow with each batch")
    if untyped := [column.name for column in columns if "void" in column.type]:
        raise _inference_error(model, f"nothing says the type of `{untyped[0]}`")
    return columns


def _columns_of_first(
    model: Model, tree: exp.Query, ask: Callable[[Model, str], tuple[Column, ...]]
) -> tuple[Column, ...]:
    """Return the columns of a UNION's first query; raise ProjectError if it reads an own column, or its QueryError."""
    first = tree
    while isinstance(first, exp.SetOperation):
        first = first.this
    if first is not tree and not tree.args.get("with_"):
        first = first.copy()
        first.set("where", None)  # which may ask whether the table has rows, and names no column
        with suppress(*((QueryError,) if model.name in tables_of(first) else ())):
            return ask(
                replace(model, sql=first.sql("spark"), written=replace(model.written, text="", misread="")),
                empty_relation((Column("own", "int"),)),
            )
    raise _inference_error(model, "its query returns `*`")


def _inference_error(model: Model, why: str) -> ProjectError:
    message = f"{model.name} reads itself, and its columns cannot be inferred: {why}."
    return ProjectError(message, place=model.locate(model.name), hint=DBT_HINT if model.written.dbt_text else HINT)


def _null_cell(type_: str) -> str:
    return "NULL" if type_ == "void" else f"CAST(NULL AS {type_})"
