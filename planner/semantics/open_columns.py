"""Queries over tables that may have undeclared columns: find those that mean only declared ones.

One column represents all undeclared ones. A query whose rows and outputs do not need it has the same meaning with any
columns of the table. A query that takes columns by their position, or names a possible undeclared column, cannot be
followed.
"""

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from mergeplan.planner.semantics.keywords import is_keyword
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.traits import means_unnamed

MORE = "mergeplan columns that are not declared"


def add_open_columns(tree: exp.Expr, parents: Mapping[str, Parent]) -> dict[str, Parent] | None:
    """Return a query's parents with the columns it names of open tables, and one for the rest; None if ambiguous."""
    opened = {name: parent for name, parent in parents.items() if parent.is_open}
    if not opened:
        return dict(parents)
    declared = {column for parent in opened.values() for column in parent.columns or ()}
    if _takes_by_place(tree) or _may_capture(tree, declared):
        return None
    named = _find_undeclared_names(tree, parents, opened)
    if named is None:
        return None
    open_parents = {
        name: replace(parent, columns=(*(parent.columns or ()), *sorted(named.get(name, ())), MORE))
        for name, parent in opened.items()
    }
    return {**parents, **open_parents}


def _takes_by_place(tree: exp.Expr) -> bool:
    """Return True for a query that may mean columns in another way than by a plain star in SELECT."""
    stars = [star for star in tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    if any(not _is_plain(star) for star in stars) or (stars and tree.find(exp.SetOperation)):
        return True
    tables = {table.alias_or_name.lower() for table in tree.find_all(exp.Table, exp.Subquery, exp.CTE)}
    return any(
        not isinstance(node, exp.Star)
        and not (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
        and means_unnamed(node, tables)
        for node in tree.walk()
    )


def _is_plain(star: exp.Star) -> bool:
    node = star.parent if isinstance(star.parent, exp.Column) else star
    narrowed = any(star.args.get(key) for key in ("except_", "replace", "rename"))
    return not narrowed and isinstance(node.parent, exp.Select) and node.arg_key == "expressions"


def _may_capture(tree: exp.Expr, declared: set[str]) -> bool:
    """Return True if a bare name may be an undeclared column, or else an alias, an outer column or a function."""
    for column in tree.find_all(exp.Column):
        name, select = column.name.lower(), column.find_ancestor(exp.Select)
        if column.table or name in declared or not isinstance(column.this, exp.Identifier) or select is None:
            continue
        if is_keyword(column) or _is_in_expression(select):
            return True
        aliases = (output for output in select.expressions if isinstance(output, exp.Alias))
        if any(output.alias.lower() == name and output.this is not column for output in aliases):
            return True
    return False


def _is_in_expression(select: exp.Expr) -> bool:
    """Return True for a query in an expression, where names may refer to the outer query."""
    node: exp.Expr | None = select
    while node is not None:
        parent = node.parent
        if isinstance(node, exp.Subquery) and not isinstance(parent, exp.From | exp.Join | exp.CTE | exp.Subquery):
            return parent is not None and not isinstance(parent, exp.SetOperation)
        if isinstance(node, exp.Query) and isinstance(parent, exp.Exists | exp.In):
            return True
        node = parent
    return False


def _find_undeclared_names(
    tree: exp.Expr, parents: Mapping[str, Parent], opened: Mapping[str, Parent]
) -> dict[str, set[str]] | None:
    """Return undeclared columns that a query names, by open table; None if several tables may have one."""
    places: dict[str, set[str]] = {}
    for table in tree.find_all(exp.Table):
        name = f"{table.db}.{table.name}".lower() if table.db else table.name.lower()
        places.setdefault(table.alias_or_name.lower(), set()).add(name)
    outputs = {output.alias.lower() for output in tree.find_all(exp.Alias, exp.TableAlias) if output.alias}
    elsewhere = {column for parent in parents.values() for column in parent.columns or ()} | outputs
    elsewhere |= {column.name.lower() for alias in tree.find_all(exp.TableAlias) for column in alias.columns}
    named: dict[str, set[str]] = {}
    for column in tree.find_all(exp.Column):
        name, alias = column.name.lower(), column.table.lower()
        if not isinstance(column.this, exp.Identifier) or (not alias and name in elsewhere):
            continue
        tables = places.get(alias, set()) if alias else {*opened}
        if not tables & opened.keys():
            continue  # of a closed table or a subquery, or a field of a struct
        if len(tables) > 1:
            return None
        (table_name,) = tables
        if name not in (opened[table_name].columns or ()):
            named.setdefault(table_name, set()).add(name)
    return named
