"""Render a model's query as the Spark SQL that runs: physical tables, inlined embedded queries, known dates."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from sqlglot import exp

from mergeplan.planner.errors import Place
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.statement import Statement
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.definitions.audits.audit_calls import BoundAudit
from mergeplan.planner.parsing.macros import splicing
from mergeplan.planner.parsing.macros.expand import dates, spark_tree
from mergeplan.planner.parsing.sql.names import set_name, table_key
from mergeplan.planner.parsing.sql.spark_text import spark_text

_NAMES = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`|@(\w+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CARRIED = ("joins", "laterals", "pivots", "sample")


def render_model(
    model: Model,
    tables: Mapping[str, str],
    embedded_models: Mapping[str, Model],
    interval: Interval | None,
    execution: datetime,
) -> str:
    """Return the model's query in Spark SQL over physical tables, for one interval.

    `tables` maps a name to its table, or to a whole query in brackets. A name that it lacks stays as it is. Without an
    interval the dates are those of 1970-01-01, for dry runs.
    """
    return query_of(model, tables, embedded_models, dates(interval, execution))


def query_of(
    model: Model, tables: Mapping[str, str], embedded_models: Mapping[str, Model], values: Mapping[str, exp.Expr]
) -> str:
    """Return the model's query as it runs, with `values` for each `@name`: its own text, or one made of its tree."""
    if not model.written.text:
        return spark_text(render_tree(model.sql, tables, embedded_models, values))
    return text_over(model.written.text, tables, embedded_models, values)


def text_over(
    text: str,
    tables: Mapping[str, str],
    embedded_models: Mapping[str, Model],
    values: Mapping[str, exp.Expr],
    this: str = "",
) -> str:
    """Return the text of a query as it runs; `this` is the query in brackets for `@this_model`."""
    return splicing.splice_text(text, _tables_with_embedded(text, tables, embedded_models, values), values, this)


def locate_error(
    model: Model, tables: Mapping[str, str], embedded_models: Mapping[str, Model], line: int, column: int
) -> Place | None:
    """Return the place in the file of an error at a line and column of the query rendered without interval, or None."""
    if not model.written.text or not line:
        return None
    values = dates(None, _EPOCH)
    text = model.written.text
    changes = splicing.list_splices(text, _tables_with_embedded(text, tables, embedded_models, values), values)
    lines = splicing.apply_splices(text, changes).split("\n")
    at = splicing.original_offset(
        changes, sum(len(text_line) + 1 for text_line in lines[: line - 1]) + max(column - 1, 0)
    )
    prefix = text[:at]
    return Place(model.path, model.written.text_line + prefix.count("\n"), _file_column(model, prefix) if column else 0)


def _file_column(model: Model, before: str) -> int:
    """Return the column that follows this text, or 0 if the file's line differs from it because of a macro."""
    line, column = before.count("\n"), len(before) - before.rfind("\n") - 1
    text, file = model.written.text.split("\n")[line], model.source.split("\n")
    file_line = file[model.written.text_line - 1 + line] if model.written.text_line + line <= len(file) else ""
    word = re.match(r"\w+|.", text[column:])
    return column + 1 if word and file_line.startswith(word[0], column) else 0


def _tables_with_embedded(
    text: str, tables: Mapping[str, str], embedded_models: Mapping[str, Model], values: Mapping[str, exp.Expr]
) -> Mapping[str, str]:
    read = {
        splicing.key_of(table) for table in spark_tree(text).find_all(exp.Table)
    } & embedded_models.keys() - tables.keys()
    return {
        **tables,
        **{name: f"({query_of(embedded_models[name], tables, embedded_models, values)})" for name in read},
    }


def render_audit(
    audit: BoundAudit,
    tables: Mapping[str, str],
    embedded_models: Mapping[str, Model],
    interval: Interval | None,
    execution: datetime,
    rows: str = "",
) -> str:
    """Return the SELECT of failing rows over physical tables, with an interval's dates and `rows` of the model."""
    values = dates(interval, execution)
    values |= {name: fill_values(tree.copy(), values) for name, tree in audit.arguments.items()}
    if audit.text:
        return text_over(audit.text, tables, embedded_models, values, f"({rows})" if rows else "")
    tree = render_tree(audit.sql, tables, embedded_models, values)
    if rows:
        _replace_this_model(tree, spark_tree(rows))
    return spark_text(tree)


def _replace_this_model(tree: exp.Expr, rows: exp.Expr) -> None:
    for column in tree.find_all(exp.Column):
        if column.table == "@this_model":
            column.set("table", exp.to_identifier("this_model"))
    for this_model in list(tree.find_all(exp.Table)):
        if this_model.name == "@this_model":
            alias = this_model.args.get("alias") or exp.TableAlias(this=exp.to_identifier("this_model"))
            this_model.replace(exp.Subquery(this=rows.copy(), alias=alias))


def no_rows(columns: Iterable[Column]) -> str:
    nulls = ", ".join(f"CAST(NULL AS {column.type}) AS {quote_column(column.name)}" for column in columns)
    return f"SELECT {nulls} WHERE FALSE"


def render_tree(
    sql: str, tables: Mapping[str, str], embedded_models: Mapping[str, Model], values: Mapping[str, exp.Expr]
) -> exp.Expr:
    tree = spark_tree(sql).copy()
    _replace_tables(tree, tables, embedded_models)
    return fill_values(tree, values)


def stage_statements(
    statements: Iterable[Statement],
    stage: str,
    this: str,
    values: Mapping[str, exp.Expr],
    tables: Mapping[str, str],
    embedded_models: Mapping[str, Model],
) -> tuple[str, ...]:
    """Return the statements of a stage in Spark SQL, with `this` for `@this_model` and the values of dates."""
    replacements = {name: value.sql("spark") for name, value in values.items()} | {"this_model": this}

    def text(match: re.Match[str]) -> str:
        return replacements.get(match[1].lower(), match[0]) if match[1] else match[0]

    def query(statement: Statement) -> str:
        if not statement.text:
            return spark_text(render_tree(statement.query, tables, embedded_models, values))
        return text_over(statement.text, tables, embedded_models, values)

    return tuple(
        _NAMES.sub(text, statement.head) + (f" {query(statement)}" if statement.query else "")
        for statement in statements
        if stage in statement.stages
    )


def inline_views(
    tree: exp.Expr,
    model: Model,
    tables: Mapping[str, str],
    embedded_models: Mapping[str, Model],
    values: Mapping[str, exp.Expr],
) -> exp.Expr:
    """Return a query of the model with its statements' temporary views as subqueries, so that it runs alone."""
    views: dict[str, exp.Expr] = {}
    for statement in model.statements.pre_statements:
        if statement.makes and "evaluating" in statement.stages:
            views[statement.makes] = _replace_views(
                render_tree(statement.query, tables, embedded_models, values), views
            )
    return _replace_views(tree, views)


def _replace_views(tree: exp.Expr, views: Mapping[str, exp.Expr]) -> exp.Expr:
    cte_names = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        view = views.get(table.name.lower()) if not table.db and table.name.lower() not in cte_names else None
        if view is not None:
            alias = table.args.get("alias") or exp.TableAlias(this=splicing.short_alias(table.name))
            carried = {key: table.args[key] for key in _CARRIED if table.args.get(key)}
            table.replace(exp.Subquery(this=view.copy(), alias=alias, **carried))
    return tree


def fill_values(tree: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    for identifier in list(tree.find_all(exp.Identifier)):
        value = values.get(identifier.name[1:]) if identifier.name.startswith("@") and not identifier.quoted else None
        if value is None:
            continue
        parent = identifier.parent
        alone = isinstance(parent, exp.Column) and len(parent.parts) == 1
        target = parent if alone and parent is not None else identifier
        tree = value.copy() if target is tree else tree
        target.replace(value.copy())
    return tree


def _replace_tables(tree: exp.Expr, tables: Mapping[str, str], embedded_models: Mapping[str, Model]) -> None:
    replaced = {**tables, **{name: "" for name in embedded_models if name not in tables}}
    aliases = splicing.aliases_of(tree, replaced)
    references = [(table, table_key(table), table.find_ancestor(exp.Select)) for table in tree.find_all(exp.Table)]
    for table, key, select in references:
        if replaced.get(key, key) != key:
            alias = table.alias or aliases.get(id(select), {}).get(key, table.name)
            _replace_table(table, key, alias, tables, embedded_models)
    if aliases:
        for column in list(tree.find_all(exp.Column)):
            if match := splicing.alias_of(column, aliases):
                _drop_schema(column, *match)


def _replace_table(
    table: exp.Table, key: str, alias: str, tables: Mapping[str, str], embedded_models: Mapping[str, Model]
) -> None:
    physical = tables.get(key, "")
    if key in embedded_models and key not in tables:
        inner = spark_tree(embedded_models[key].sql).copy()
        _replace_tables(inner, tables, embedded_models)
    elif physical.startswith("("):
        inner = spark_tree(physical[1:-1]).copy()
    else:
        set_name(table, physical)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=splicing.short_alias(alias)))
        return
    table_alias = table.args.get("alias") or exp.TableAlias(this=splicing.short_alias(alias))
    carried = {key: table.args[key] for key in _CARRIED if table.args.get(key)}
    table.replace(exp.Subquery(this=inner, alias=table_alias, **carried))


def _drop_schema(column: exp.Column, alias: str, part_count: int) -> None:
    column_parts = column.parts[part_count:]
    column.set("catalog", None)
    column.set("db", splicing.short_alias(alias) if len(column_parts) > 1 else None)
    column.set("table", column_parts[0].copy() if len(column_parts) > 1 else splicing.short_alias(alias))
    column.set("this", column_parts[-1])
