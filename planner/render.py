"""From a model's query to the Spark SQL that runs: physical tables for names, embedded queries inlined, dates known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlglot import exp

from planner.intervals import Interval
from planner.model import Column, Model, Statement
from planner.reading.faithful import spark_text
from planner.reading.macros import dates, spark_tree
from planner.reading.names import table_key

_NAMES = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`|@(\w+)")
# what Spark does not take as the bare alias of a table
_FROM_WORDS = frozenset(
    """anti cross except exists full inner intersect join lateral left minus natural on right semi union
    using""".split()
)
_CARRIED = ("joins", "laterals", "pivots", "sample")


def render(
    model: Model,
    tables: Mapping[str, str],
    embedded: Mapping[str, Model],
    interval: Interval | None,
    execution: datetime,
) -> str:
    """The model's query in Spark SQL over physical tables, for one interval.

    `tables` maps a name to its table, or to a whole query in brackets; a name it lacks stays as it is. Without an
    interval the dates are those of 1970-01-01, for dry runs.
    """
    return spark_text(rendered(model.sql, tables, embedded, dates(interval, execution)))


def no_rows(columns: Iterable[Column]) -> str:
    """A query that returns these columns and no row."""
    nulls = ", ".join(f"CAST(NULL AS {column.type}) AS `{column.name}`" for column in columns)
    return f"SELECT {nulls} WHERE FALSE"


def rendered(
    sql: str, tables: Mapping[str, str], embedded: Mapping[str, Model], values: Mapping[str, exp.Expr]
) -> exp.Expr:
    """A query of ours as a tree: tables replaced, and each `@name` that `values` knows replaced by its expression."""
    tree = spark_tree(sql).copy()
    _replace_tables(tree, tables, embedded)
    return fill(tree, values)


def beside(
    statements: Iterable[Statement],
    stage: str,
    this: str,
    tables: Mapping[str, str],
    embedded: Mapping[str, Model],
    interval: Interval | None,
    execution: datetime,
) -> tuple[str, ...]:
    """The statements of a stage in Spark SQL; `this` is the table (or view) that `@this_model` stands for."""
    values = dates(interval, execution)
    known = {name: value.sql("spark") for name, value in values.items()} | {"this_model": this}

    def text(match: re.Match[str]) -> str:
        return known.get(match[1].lower(), match[0]) if match[1] else match[0]

    return tuple(
        _NAMES.sub(text, each.head)
        + (f" {spark_text(rendered(each.query, tables, embedded, values))}" if each.query else "")
        for each in statements
        if stage in each.stages
    )


def with_views_inlined(
    tree: exp.Expr,
    model: Model,
    tables: Mapping[str, str],
    embedded: Mapping[str, Model],
    values: Mapping[str, exp.Expr],
) -> exp.Expr:
    """A query of the model with the temporary views of its statements as subqueries: it runs without them."""
    views: dict[str, exp.Expr] = {}
    for each in model.pre_statements:
        if each.makes and "evaluating" in each.stages:
            views[each.makes] = _inlined(rendered(each.query, tables, embedded, values), views)
    return _inlined(tree, views)


def _inlined(tree: exp.Expr, views: Mapping[str, exp.Expr]) -> exp.Expr:
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        view = views.get(table.name.lower()) if not table.db and table.name.lower() not in own else None
        if view is not None:
            alias = table.args.get("alias") or exp.TableAlias(this=_alias(table.name))
            carried = {key: table.args[key] for key in _CARRIED if table.args.get(key)}
            table.replace(exp.Subquery(this=view.copy(), alias=alias, **carried))
    return tree


def fill(tree: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """The tree with every `@name` that `values` knows replaced by its expression."""
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


def _replace_tables(tree: exp.Expr, tables: Mapping[str, str], embedded: Mapping[str, Model]) -> None:
    aliases: dict[int, dict[str, str]] = {}
    found = [(table, table_key(table), table.find_ancestor(exp.Select)) for table in tree.find_all(exp.Table)]
    short = Counter((id(select), table.name) for table, _, select in found if not table.alias)
    for table, key, select in found:
        if key not in embedded and tables.get(key, key) == key:
            continue
        alias = table.alias or table.name
        if not table.alias:
            # two tables of one FROM may have the same short name
            alias = f"{table.db}__{table.name}" if short[id(select), table.name] > 1 else table.name
            aliases.setdefault(id(select), {})[key] = alias
        _replace_table(table, key, alias, tables, embedded)
    if aliases:
        _requalify(tree, aliases)


def _replace_table(
    table: exp.Table, key: str, alias: str, tables: Mapping[str, str], embedded: Mapping[str, Model]
) -> None:
    physical = tables.get(key, "")
    if key in embedded and key not in tables:
        inner = spark_tree(embedded[key].sql).copy()
        _replace_tables(inner, tables, embedded)
    elif physical.startswith("("):
        inner = spark_tree(physical[1:-1]).copy()
    else:
        schema, name = physical.split(".")
        table.set("db", exp.to_identifier(schema))
        table.set("this", exp.to_identifier(name))
        if not table.alias:
            table.set("alias", exp.TableAlias(this=_alias(alias)))
        return
    given = table.args.get("alias") or exp.TableAlias(this=_alias(alias))
    carried = {key: table.args[key] for key in _CARRIED if table.args.get(key)}
    table.replace(exp.Subquery(this=inner, alias=given, **carried))


def _alias(name: str) -> exp.Identifier:
    """A table's short name as its alias; in backticks where Spark would read it as the next part of FROM."""
    return exp.to_identifier(name, quoted=True if name.lower() in _FROM_WORDS else None)


def _requalify(tree: exp.Expr, aliases: Mapping[int, Mapping[str, str]]) -> None:
    """`schema.table.column` becomes `alias.column`, by the nearest SELECT that reads that table without an alias."""
    for column in list(tree.find_all(exp.Column)):
        parts = [part.name.lower() for part in column.parts]
        for key, dropped in ((".".join(parts[0:2]), 2), (".".join(parts[1:3]), 3)):
            alias = _alias_of(column, key, aliases) if len(parts) > dropped else None
            if alias is not None:
                _drop_schema(column, alias, dropped)
                break


def _drop_schema(column: exp.Column, alias: str, dropped: int) -> None:
    rest = column.parts[dropped:]
    column.set("catalog", None)
    column.set("db", _alias(alias) if len(rest) > 1 else None)
    column.set("table", rest[0].copy() if len(rest) > 1 else _alias(alias))
    column.set("this", rest[-1])


def _alias_of(column: exp.Column, key: str, aliases: Mapping[int, Mapping[str, str]]) -> str | None:
    node = column.find_ancestor(exp.Select)
    while node is not None:
        if key in aliases.get(id(node), {}):
            return aliases[id(node)][key]
        node = node.find_ancestor(exp.Select)
    return None
