"""The columns of a table before it exists: those of a dry run of its query, as the model declares them."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlglot import exp

from mergeplan.planner.apply.backfill.layout import Layout, locate_query_errors
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.engine.struct_fields import place_fields
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.table_order import order_columns
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.named_columns import find_undeclared_column
from mergeplan.planner.parsing.sql.macro_scope import CREATING
from mergeplan.planner.plan.change import Change
from mergeplan.planner.plan.forward_only import blocker_of, is_wider, merge_columns, schema_findings
from mergeplan.planner.plan.schedule import ONCE
from mergeplan.planner.semantics.types import normalize_type
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.store import StateStore
from mergeplan.planner.tables.partitioning import check_columns
from mergeplan.planner.tables.self_reference import empty_relation, own_columns


def table_columns(layout: Layout, engine: Engine, snapshot: Snapshot) -> tuple[Column, ...]:
    """Return the columns by Spark's dry run, with declared types and comments; for a seed the declared ones."""
    model = snapshot.model
    if model.kind.is_seed:
        assert model.seed is not None
        columns = model.columns or tuple(Column(name, "string") for name in model.seed.header)
    else:
        pre_statements, _ = layout.statements_around(snapshot, CREATING, ONCE[0])
        model_engine = engine.engine_for(model.gateway)
        with locate_query_errors(model, layout), model_engine.separate_session(pre_statements, ()):
            itself = empty_relation(_own_columns(layout, model_engine, model)) if model.reads_itself else ""
            sql = layout.query(model, ONCE[0], itself)
            columns, read = model_engine.dry_run(sql) if model.sql else (model_engine.schema(sql), frozenset())
            check_contract(model, columns)
            columns = apply_declared_columns(model, columns)
            if model.sql:
                check_table_reads(model, read, sql)
    check_columns(model, columns)
    comments = dict(model.metadata.column_descriptions)
    columns_by_name = {
        c.name: Column(c.name, c.type, comments.get(c.name, "")) for c in (*columns, *model.history_columns)
    }
    return tuple(columns_by_name[name] for name in _table_order(snapshot, columns_by_name))


def _table_order(snapshot: Snapshot, columns: Mapping[str, Column]) -> tuple[str, ...]:
    """Return columns in the order by which readers were judged; if the plan did not know it, in that of the types."""
    judged = snapshot.table_columns
    if judged is not None and {*judged} == columns.keys():
        return judged
    return order_columns(snapshot.model, columns, {name: column.type for name, column in columns.items()})


def _own_columns(layout: Layout, engine: Engine, model: Model) -> tuple[Column, ...]:
    return own_columns(model, lambda query, own: engine.schema(layout.query(query, ONCE[0], own)))


def check_contract(model: Model, query_columns: tuple[Column, ...]) -> None:
    """Raise ProjectError if a model has a contract and its query returns other columns or types than declared."""
    if not model.checks.contract:
        return
    declared, returned = ({c.name: normalize_type(c.type) for c in side} for side in (model.columns, query_columns))
    for name in (*declared, *returned):
        declared_type, returned_type = declared.get(name, "no such column"), returned.get(name, "no such column")
        if declared_type != returned_type:
            message = (
                f"{model.name} breaks its contract: of `{name}` that says {declared_type}, and the query returns "
                f"{returned_type}."
            )
            raise ProjectError(message, place=model.place, hint="Make the declared columns and the query agree.")


def apply_declared_columns(model: Model, query_columns: tuple[Column, ...]) -> tuple[Column, ...]:
    if not model.columns or model.kind.is_view:
        return query_columns
    if error := find_undeclared_column(model, [column.name for column in query_columns]):
        raise error
    return model.columns


def check_table_reads(model: Model, read: frozenset[str], sql: str) -> None:
    """Raise ProjectError if Spark reads a table that the parser did not see, because plans would not know of it."""
    parsed_tables = {
        ".".join(part.name for part in table.parts).lower() for table in spark_tree(sql).find_all(exp.Table)
    }
    if unseen := sorted(read - parsed_tables):
        message = f"Spark reads `{unseen[0]}` in the query of {model.name}, which mergeplan does not."
        raise ProjectError(message, place=model.place, hint="Write the query in another way, with each table in FROM.")


def fit_query(model: Model, query: str, columns: tuple[Column, ...], engine: Engine) -> str:
    """Return the query with its table's columns if the model ignores some that come or go, and with their structs."""
    policy = model.policy
    ignores = "ignore" in (policy.on_destructive_change, policy.on_additive_change)
    if not (ignores or any("struct<" in column.type for column in columns)):
        return query
    names = {column.name for column in model.history_columns}
    columns = tuple(column for column in columns if column.name not in names)
    query_columns = engine.schema(query)
    placed = place_fields(query, query_columns, columns, ignores=policy.on_destructive_change == "ignore")
    return add_missing_columns(placed, query_columns, columns) if ignores else placed


def compare_returned_columns(model: Model, query: str, names: Collection[str], engine: Engine) -> Model:
    """Return a model that compares all columns to find versions with those that its query returns.

    Its table may have more (`names`), which it ignores. They are NULL in new rows, and that is no change of a row.
    """
    history = model.history
    if not history or history.updated_at or history.columns or model.policy.on_destructive_change != "ignore":
        return model
    returned = tuple(column.name for column in engine.schema(query) if column.name in names)
    return replace(model, history=replace(history, columns=returned))


def add_missing_columns(query: str, query_columns: tuple[Column, ...], columns: tuple[Column, ...]) -> str:
    """Return the query with all columns of its table: NULL for those that it does not return."""
    if {c.name for c in query_columns} == {c.name for c in columns}:
        return query
    names = {column.name for column in query_columns}
    values = ("" if c.name in names else f"CAST(NULL AS {c.type}) AS " for c in columns)
    selected_columns = (value + quote_column(c.name) for value, c in zip(values, columns, strict=True))
    return f"SELECT {', '.join(selected_columns)} FROM (\n{query.rstrip().rstrip(';')}\n)"


def columns_that_go_on(
    store: StateStore, snapshot: Snapshot, change: Change | None, query_columns: tuple[Column, ...]
) -> tuple[Column, ...]:
    """Return the columns of a table that keeps another one's rows, will do so, or is a copy of one that did.

    Raise ProjectError at the model's file if a column goes, comes or changes its type in a way that the model does not
    allow.
    """
    model, forward = snapshot.model, change.forward if change else None
    if change is None or change.old is None:
        return query_columns
    if change.rule == "layout-changed" and snapshot.is_mixed:
        policies = model.policy.on_destructive_change, model.policy.on_additive_change
    elif forward and forward.rows:
        policies = forward.destructive, forward.additive
    else:
        return query_columns
    old = store.tables.get(change.old.table)
    old_columns = old.columns if old else ()
    columns = merge_columns(old_columns, query_columns, *policies)
    for finding in schema_findings(_column_names(old_columns), _column_names(columns), *policies):
        if finding.policy == "error":
            blocker = blocker_of(model, finding)
            raise ProjectError(blocker.message, place=blocker.place)
    for column in columns:
        for was in store.tables.types_of(change.old.table, column.name):
            if not is_wider(was, column.type):
                raise _build_type_error(model, column.name, was, column.type)
    return columns


def _build_type_error(model: Model, column: str, was: str, now: str) -> ProjectError:
    return ProjectError(
        f"{model.name}: the rows that a forward-only change keeps hold `{column}` as {was}, and Spark cannot read that "
        f"as {now}.",
        place=model.place,
        hint="Give the column another name, or rebuild the table: categorize the change as breaking.",
    )


def _column_names(columns: tuple[Column, ...]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)
