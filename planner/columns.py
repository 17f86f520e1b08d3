"""Which columns of which parent a query reads, and whether in making its rows or only in computing an output.

A `Shape` is what a query means as far as we can prove it. Where we cannot, `known` is False, and whoever asks must
assume that everything matters: a wrong "it reads nothing of that" would leave wrong rows in prod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope

from planner.functions import is_stranger, is_volatile, multiplies_rows
from planner.stretches import folds, looking_further

Schemas = Mapping[str, tuple[str, ...] | None]  # table -> its columns, None when they are not known
# Clauses that decide which rows there are by looking at the outputs: with them, outputs are never apart from rows.
_ENTANGLED = ("distinct", "limit", "offset", "kind", "into", "operation_modifiers", "hint")


@dataclass(frozen=True)
class Reads:
    """What a query reads of one parent: `rows` in FROM, WHERE and the like; `outputs` in computing a column."""

    rows: frozenset[str] = frozenset()
    outputs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    every: bool = False  # it cannot be told, or a `*` reads all of it


@dataclass(frozen=True)
class Shape:
    """A query in canonical form: equal `text`s over the same parents return the same rows.

    `outputs` (column -> canonical expression) is None where columns cannot be told apart from rows (DISTINCT, set
    operations, LIMIT...). `plain` are outputs that keep rows as they are; `volatile` those that may come out
    differently when computed again; `unresolved` a column that certainly exists in no parent.
    """

    known: bool
    text: str
    columns: tuple[str, ...] | None
    outputs: Mapping[str, str] | None = None
    frame: Mapping[str, str] = field(default_factory=dict)  # clause -> canonical text
    plain: frozenset[str] = frozenset()
    volatile: frozenset[str] = frozenset()
    volatile_rows: bool = True
    reads: Mapping[str, Reads] = field(default_factory=dict)
    unresolved: str | None = None


def shape_of(sql: str, parents: Schemas, time_column: str = "") -> Shape:
    """The shape of a Spark query over these parents; parents it names that are not given count as not known.

    With a time column it fills a table by stretches of time.
    """
    return _shape(sql, tuple(sorted(parents.items())), time_column)


@lru_cache(maxsize=8192)
def _shape(sql: str, parents: tuple[tuple[str, tuple[str, ...] | None], ...], time_column: str) -> Shape:
    tree = _without_dates(sqlglot.parse_one(sql, dialect="spark"))
    names = tables_of(tree)
    schemas = {name: columns for name, columns in parents if name in names}
    schemas |= {name: None for name in names if name not in schemas}
    if any(columns is None for columns in schemas.values()) or _captures(tree, schemas):
        return _unknown(sql, tree, names)
    try:
        qualified = qualify(tree.copy(), dialect="spark", schema=_nested(schemas), identify=True)
    except SqlglotError:
        return _unknown(sql, tree, names, _unresolved(tree, schemas))
    return _known(sql, qualified, names, time_column)


def tables_of(tree: exp.Expr) -> frozenset[str]:
    """The tables (`schema.table`, lower case) a query names; its own CTEs are not among them."""
    return frozenset(
        f"{table.db}.{table.name}".lower() for table in tree.find_all(exp.Table) if table.db and table.name
    )


def _without_dates(tree: exp.Expr) -> exp.Expr:
    """Dates that a run fills in (`@start_ds`, read as columns) as parameters: they are no column of anybody."""
    for column in list(tree.find_all(exp.Column)):
        if column.name.startswith("@"):
            column.replace(exp.Parameter(this=exp.var(column.name[1:].lower())))
    return tree


def _known(sql: str, tree: exp.Expr, names: frozenset[str], time_column: str) -> Shape:
    apart = tree if isinstance(tree, exp.Select) and _outputs_apart(tree) else None
    outputs = tree.selects if isinstance(tree, exp.Query) and not tree.is_star else []
    columns = tuple(output.alias_or_name for output in outputs)
    if not columns or len(set(columns)) < len(columns) or any(map(_named_by_spark, outputs)):
        return replace(_unknown(sql, tree, names), columns=None)
    projections = {e.alias_or_name: e for e in apart.selects} if apart else {}
    inside = {id(node): name for name, e in projections.items() for node in e.walk()}
    unsure = [id(node) for node in tree.walk() if _makes_rows_unsure(node)]
    if time_column and isinstance(tree, exp.Query):
        unsure += map(id, looking_further(tree, time_column))
    return Shape(
        known=True,
        text=_canonical(tree),
        columns=columns,
        outputs={name: _canonical(e.unalias()) for name, e in projections.items()} if apart else None,
        frame=_frame(apart) if apart else {},
        plain=frozenset(name for name, e in projections.items() if _keeps_rows(e)),
        volatile=frozenset(inside[node] for node in unsure if node in inside),
        volatile_rows=any(node not in inside for node in unsure),
        reads=_reads(tree, names, inside),
    )


def _named_by_spark(output: exp.Expr) -> bool:
    """True for `explode` and its like without an alias: Spark names what comes out, and there may be several."""
    return multiplies_rows(output.unalias()) and output.alias.startswith("_col_")


def _unknown(sql: str, tree: exp.Expr, names: frozenset[str], unresolved: str | None = None) -> Shape:
    columns = None
    if isinstance(tree, exp.Query) and not tree.is_star:
        selects = tree.selects
        if all(e.alias_or_name for e in selects):
            columns = tuple(e.alias_or_name.lower() for e in selects)
    reads = {name: Reads(every=True) for name in names}
    return Shape(False, sql, columns, reads=reads, unresolved=unresolved)


def _nested(schemas: Schemas) -> dict[str, object]:
    nested: dict[str, dict[str, dict[str, str]]] = {}
    for name, columns in schemas.items():
        schema, table = name.split(".")
        nested.setdefault(schema, {})[table] = dict.fromkeys(columns or (), "string")
    return dict(nested)


def _outputs_apart(select: exp.Select) -> bool:
    """True when each output is computed for rows that the other clauses alone decide."""
    if any(select.args.get(clause) for clause in _ENTANGLED):
        return False
    group = select.args.get("group")
    if group and (group.args.get("all") or any(map(_is_ordinal, group.find_all(exp.Literal)))):
        return False
    return all(isinstance(e, exp.Alias) for e in select.selects)


def _is_ordinal(literal: exp.Literal) -> bool:
    """True for a number that names an output: `GROUP BY 1`, `GROUP BY CUBE(1)`."""
    return isinstance(literal.parent, (exp.Group, exp.Cube, exp.Rollup, exp.GroupingSets, exp.Tuple, exp.Paren))


def _keeps_rows(projection: exp.Expr) -> bool:
    return not any(
        multiplies_rows(node)
        or is_stranger(node)
        or isinstance(node, exp.Query)
        or (isinstance(node, exp.Star) and not _counts_all(node))
        for node in projection.walk()
    )


def _counts_all(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) and isinstance(node.parent, exp.Count)


def _makes_rows_unsure(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Limit, exp.Offset, exp.Fetch)) or is_volatile(node)


def _frame(select: exp.Select) -> dict[str, str]:
    """Each clause but the outputs, canonically; an ORDER BY without LIMIT decides nothing about the rows."""
    frame = {
        clause: "; ".join(_canonical(e) for e in (value if isinstance(value, list) else [value]))
        for clause, value in select.args.items()
        if value and clause not in ("expressions", "order") and (isinstance(value, (list, exp.Expr)))
    }
    one_row = not select.args.get("group") and any(map(folds, select.selects))
    return frame | {"aggregation": "one row" if one_row else ""}


def _reads(tree: exp.Expr, names: frozenset[str], inside: Mapping[int, str]) -> dict[str, Reads]:
    owned = list(_owned_columns(tree))
    strays = {id(column) for column in tree.find_all(exp.Column)} - {id(column) for _, column in owned}
    every = bool(strays or tree.find(exp.Pivot)) or any(not _counts_all(star) for star in tree.find_all(exp.Star))
    rows: dict[str, set[str]] = {name: set() for name in names}
    outputs: dict[str, dict[str, set[str]]] = {name: {} for name in names}
    for table, column in owned:
        if not table:
            continue
        output = inside.get(id(column))
        if output is None:
            rows[table].add(column.name)
        else:
            outputs[table].setdefault(output, set()).add(column.name)
    return {
        name: Reads(frozenset(rows[name]), {o: frozenset(read) for o, read in outputs[name].items()}, every)
        for name in names
    }


def _owned_columns(tree: exp.Expr) -> Iterator[tuple[str, exp.Column]]:
    """(table, column) for each reference whose source is known, in every scope; '' for a source that is no table."""
    for scope in traverse_scope(tree):
        for column in scope.columns:
            source = scope.sources.get(column.table)
            if isinstance(source, exp.Table) and source.db:
                yield f"{source.db}.{source.name}".lower(), column
            elif source is not None:
                yield "", column


def _captures(tree: exp.Expr, schemas: Schemas) -> bool:
    """True when an alias bears the name of a column of some source and HAVING or QUALIFY uses it bare: Spark's and
    sqlglot's rules for which of the two is meant differ there, so the query is left alone."""
    derived = (
        name.lower()
        for query in tree.find_all(exp.Query)
        if query is not tree
        for name in (query.named_selects if isinstance(query, (exp.Select, exp.SetOperation)) else ())
    )
    source_columns = {name for columns in schemas.values() for name in columns or ()} | set(derived)
    for select in tree.find_all(exp.Select):
        renamed = {
            e.alias.lower()
            for e in select.selects
            if isinstance(e, exp.Alias)
            and not (isinstance(e.this, exp.Column) and e.this.name.lower() == e.alias.lower())
        }
        risky = renamed & source_columns
        filters = [select.args[clause] for clause in ("having", "qualify") if select.args.get(clause)]
        if risky and any(risky & _bare_names(clause) for clause in filters):
            return True
    return False


def _bare_names(clause: exp.Expr) -> set[str]:
    return {column.name.lower() for column in clause.find_all(exp.Column) if not column.table}


def _unresolved(tree: exp.Expr, schemas: Schemas) -> str | None:
    """A column that surely exists nowhere: no parent has it, and nothing in the query could bring it forth."""
    if any(multiplies_rows(node) or isinstance(node, (exp.Lateral, exp.Lambda, exp.Pivot)) for node in tree.walk()):
        return None
    have = {name for columns in schemas.values() for name in columns or ()} | {"_metadata"}
    have |= {e.alias.lower() for e in tree.find_all(exp.Alias, exp.TableAlias) if e.alias}
    have |= {c.name.lower() for alias in tree.find_all(exp.TableAlias) for c in alias.columns}
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Identifier) and column.name.lower() not in have and not _may_be_field(column):
            return str(column.name)
    return None


def _may_be_field(column: exp.Column) -> bool:
    """`a.b` may be the field `b` of a struct column `a`."""
    return bool(column.table) and column.table.lower() not in _source_names(column.root())


def _source_names(tree: exp.Expr) -> set[str]:
    return {table.alias_or_name.lower() for table in tree.find_all(exp.Table, exp.Subquery, exp.CTE)}


def _canonical(node: exp.Expr) -> str:
    """A text that two trees share only when they are the same but for parentheses and the order of AND and OR."""
    tree = exp.Paren(this=node.copy())  # a root that no replacement below can lose
    for paren in list(tree.find_all(exp.Paren)):
        if paren is not tree:
            paren.replace(paren.this)
    for part in tree.walk():
        part.comments = None
    if not any(map(is_volatile, tree.walk())):
        _order_operands(tree)
    return repr(tree.this)


def _order_operands(tree: exp.Expr) -> None:
    """Sort what AND and OR join, innermost first: in three-valued logic their order does not matter."""
    for connector in reversed(list(tree.find_all(exp.And, exp.Or))):
        if isinstance(connector.parent, type(connector)):
            continue
        first, *others = sorted((operand.copy() for operand in connector.flatten()), key=repr)
        for operand in others:
            first = type(connector)(this=first, expression=operand)
        connector.replace(first)
