"""Columns that a model names, compared with those that its query returns: by the parser, or by Spark's dry run."""

from collections.abc import Collection, Mapping

from sqlglot import exp

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import ColumnName, partition_column, quote_column
from mergeplan.planner.parsing.definitions.audits.audit_calls import is_blocking
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.semantics.audited_keys import parse_columns

MERGE = "MERGE INTO t AS target USING s AS source ON TRUE "


def find_undeclared_column(model: Model, columns: Collection[str]) -> ProjectError | None:
    if not model.columns or model.kind.is_view:
        return None
    declared_columns = [column.name for column in model.columns]
    if missing := sorted(set(declared_columns).difference(columns)):
        message = f"{model.name} declares the column `{missing[0]}`, which its query does not return."
    elif undeclared := sorted(set(columns).difference(declared_columns)):
        message = f"{model.name} does not declare the column `{undeclared[0]}`, which its query returns."
    else:
        return None
    return ProjectError(message, place=model.place, hint="Make `columns` and the query agree.")


def find_unknown_column(model: Model, columns: Collection[str]) -> ProjectError | None:
    """Return an error if a property names a column that is not among these of the query."""
    for key, names in _columns_by_property(model).items():
        if unknown := sorted(names.difference(columns)):
            message = f"{model.name} has no column `{unknown[0]}`."
            hint = f"Return it from its query, or change `{key}`."
            return ProjectError(message, place=model.locate(key, in_block=True), hint=hint)
    return None


def _columns_by_property(model: Model) -> Mapping[str, frozenset[str]]:
    history, by_key = model.history, model.by_key
    partitions = ((key, partition_column(key)) for key in model.storage.partitioned_by)
    expressions = {
        "unique_key": by_key.unique_key,
        "when_matched": (f"{MERGE}{by_key.when_matched}",) if by_key.when_matched else (),
        "merge_filter": (by_key.merge_filter,) if by_key.merge_filter else (),
        "partitioned_by": [key if column is None else quote_column(column) for key, column in partitions],
    }
    since = history.dbt.since if history and history.dbt else ""
    added_names = {column.name for column in model.history_columns}
    audits = [call for call in model.checks.audits if not call.query and is_blocking(call, {})]
    arguments = {text for call in audits for name, text in call.arguments if name in ("column", "columns")}
    columns = {key: {name for sql in texts for name in _read_columns(sql)} for key, texts in expressions.items()}
    return {
        "time_column": frozenset({model.by_time.time_column} if model.kind.is_by_time else ()),
        **{key: frozenset(names - added_names) for key, names in columns.items()},
        "updated_at_name": frozenset({history.updated_at, since} - {""} if history else ()),
        "columns": frozenset(history.columns if history else ()),
        "clustered_by": frozenset(model.storage.clustered_by),
        "audits": frozenset(name for text in arguments for name in parse_columns(text)) - added_names,
    }


def _read_columns(sql: str) -> Collection[str]:
    if (name := ColumnName.parse(sql)) is not None:
        return (name,)
    return {column.name.lower() for column in spark_tree(sql).find_all(exp.Column) if not column.name.startswith("@")}
