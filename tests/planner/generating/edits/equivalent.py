"""Edits of clauses that leave a query's meaning as it is; none may make a planner see wrongly."""

from __future__ import annotations

from sqlglot import exp

from .trees import Edited, add_where, clashing, conjoin, conjuncts, is_plain, kind_of, parse, set_where

FLIPPED = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}
NEGATED = {exp.GT: exp.LTE, exp.LTE: exp.GT, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.EQ: exp.NEQ, exp.NEQ: exp.EQ}


def rename_alias(e: Edited) -> bool:
    """`t AS a` becomes `t AS b`, everywhere."""
    sources = [t for t in e.tree.find_all(exp.Table, exp.Subquery) if t.alias]
    names = [t.alias for t in sources]
    named = {c.alias for c in e.tree.find_all(exp.CTE)}
    target = e.pick(t for t in sources if names.count(t.alias) == 1 and t.alias not in named)
    if target is None:
        return False
    old, new = target.alias, f"r{e.rng.randrange(90)}"
    if clashing(e, new):
        return False
    target.args["alias"].set("this", exp.to_identifier(new))
    for column in e.tree.find_all(exp.Column):
        if column.table == old:
            column.set("table", exp.to_identifier(new))
    return True


def rename_cte(e: Edited) -> bool:
    ctes = list(e.tree.find_all(exp.CTE))
    names = [c.alias for c in ctes]
    cte = e.pick(c for c in ctes if names.count(c.alias) == 1)
    new = f"n{e.rng.randrange(90)}"
    if cte is None or clashing(e, new):
        return False
    old = cte.alias
    for table in e.tree.find_all(exp.Table):
        if table.name == old and not table.db:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(old)))
            table.set("this", exp.to_identifier(new))
    cte.args["alias"].set("this", exp.to_identifier(new))
    return True


def add_unused_cte(e: Edited) -> bool:
    table = e.pick(e.columns)
    if not isinstance(e.tree, exp.Query) or table is None:
        return False
    name = e.rng.choice(("spare", table.split(".")[1]))
    if clashing(e, name):
        return False
    e.tree.with_(name, parse(f"SELECT * FROM {table}"), copy=False)
    return True


def wrap_table(e: Edited) -> bool:
    """A table becomes a subquery that passes it through."""
    table = e.pick(t for t in e.tables() if not t.args.get("pivots"))
    if table is None:
        return False
    columns = e.columns.get(f"{table.db}.{table.name}") if table.db else None
    listed = ", ".join(columns) if columns and e.rng.random() < 0.5 else "*"
    bare = table.copy()
    bare.set("alias", None)
    bare.set("joins", None)
    inner = parse(f"SELECT {listed} FROM {bare.sql('spark')}")
    wrapped = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name)))
    table.replace(wrapped)
    return True


def table_as_cte(e: Edited) -> bool:
    """A table is read through a CTE."""
    table = e.pick(t for t in e.tables() if t.db)
    if table is None or not isinstance(e.tree, exp.Query) or clashing(e, "passed"):
        return False
    inner = parse(f"SELECT * FROM {table.db}.{table.name}")
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
    table.set("this", exp.to_identifier("passed"))
    table.set("db", None)
    with_ = e.tree.args.get("with_")
    cte = exp.CTE(this=inner, alias=exp.TableAlias(this=exp.to_identifier("passed")))
    if with_:
        with_.set("expressions", [cte, *with_.expressions])
    else:
        e.tree.set("with_", exp.With(expressions=[cte]))
    return True


def join_otherwise(e: Edited) -> bool:
    """INNER JOIN ... ON as a comma or cross join with WHERE; `JOIN` as `INNER JOIN`."""
    join = e.pick(j for j in e.tree.find_all(exp.Join) if kind_of(j) in ("INNER", "COMMA", "CROSS"))
    if join is None or not isinstance(join.parent, exp.Select):
        return False
    if kind_of(join) != "INNER":
        join.set("kind", "CROSS" if kind_of(join) == "COMMA" else "INNER")
        return True
    if e.rng.random() < 0.4:
        join.set("kind", None if join.kind else "INNER")
        return True
    if any(j.side for j in join.parent.args["joins"]):
        return False
    add_where(join.parent, join.args["on"])
    join.set("on", None)
    join.set("kind", "CROSS")
    return True


def move_on_to_where(e: Edited) -> bool:
    """A part of an INNER join's ON moves to WHERE, or all of WHERE to it."""
    select = e.pick(
        s
        for s in e.selects("joins")
        if all(kind_of(j) == "INNER" for j in s.args["joins"]) and not s.args.get("laterals")
    )
    if select is None:
        return False
    join = e.rng.choice(select.args["joins"])
    parts, where = conjuncts(join.args["on"]), select.args.get("where")
    if where and e.rng.random() < 0.5 and join is select.args["joins"][-1]:
        join.set("on", conjoin([*parts, *conjuncts(where.this)]))
        select.set("where", None)
        return True
    moved = e.rng.choice(parts)
    join.set("on", conjoin([part for part in parts if part is not moved]))
    add_where(select, moved)
    return True


def swap_sides(e: Edited) -> bool:
    """`a JOIN b` becomes `b JOIN a`; LEFT and RIGHT change places with the tables."""
    select = e.pick(
        s
        for s in e.selects("joins")
        if len(s.args["joins"]) == 1
        and kind_of(s.args["joins"][0]) in ("INNER", "LEFT", "RIGHT", "FULL", "COMMA", "CROSS")
        and not any(output.is_star for output in s.expressions)
    )
    if select is None:
        return False
    (join,) = select.args["joins"]
    first, second = select.args["from_"].this.copy(), join.this.copy()
    select.args["from_"].set("this", second)
    join.set("this", first)
    join.set("side", {"LEFT": "RIGHT", "RIGHT": "LEFT"}.get(join.side, join.side))
    return True


def true_added(e: Edited) -> bool:
    select = e.pick(e.selects("from_"))
    if select is None:
        return False
    add_where(select, parse(e.rng.choice(("TRUE", "1 = 1", "NOT FALSE", "2 > 1"))))
    return True


def ordinals(e: Edited) -> bool:
    """GROUP BY names become ordinals."""
    select = e.pick(s for s in e.selects("group") if s.args["group"].expressions)
    if select is None:
        return False
    group = select.args["group"]
    texts = [output.unalias().sql("spark") for output in select.expressions]
    keys = [key.sql("spark") for key in group.expressions]
    if any(text not in texts for text in keys):
        return False
    group.set("expressions", [exp.Literal.number(texts.index(text) + 1) for text in keys])
    return True


def distinct_as_group(e: Edited) -> bool:
    select = e.pick(s for s in e.selects("distinct") if is_plain(s) or not s.args.get("group"))
    if select is None or any(output.is_star for output in select.expressions):
        return False
    keys = [output.unalias().copy() for output in select.expressions]
    select.set("distinct", None)
    select.set("group", exp.Group(expressions=keys))
    return True


def having_to_where(e: Edited) -> bool:
    """What HAVING says of keys moves to WHERE."""
    select = e.pick(s for s in e.selects("having") if not s.args["having"].find(exp.AggFunc))
    if select is None:
        return False
    group = select.args["group"]
    if not group.expressions or any(group.args.get(grouping) for grouping in ("rollup", "cube", "grouping_sets")):
        return False
    add_where(select, select.args["having"].this)
    select.set("having", None)
    return True


def nest_filter(e: Edited) -> bool:
    """A part of WHERE moves into a subquery around the only table."""
    select = e.pick(s for s in e.selects("where") if not s.args.get("joins") and not s.args.get("laterals"))
    if select is None or not isinstance(select.args["from_"].this, exp.Table):
        return False
    table, parts = select.args["from_"].this, conjuncts(select.args["where"].this)
    moved = e.rng.choice(parts)
    if moved.find(exp.Query):
        return False
    inner = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table.copy()))
    set_where(inner, [moved])
    select.args["from_"].set(
        "this", exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name)))
    )
    set_where(select, [part for part in parts if part is not moved])
    return True


def reorder_branches(e: Edited) -> bool:
    union = e.pick(u for u in e.tree.find_all(exp.Union, exp.Intersect) if isinstance(u.this, exp.Select))
    if union is None or [o.alias_or_name for o in union.left.selects] != [o.alias_or_name for o in union.right.selects]:
        return False
    left, right = union.this.copy(), union.expression.copy()
    union.set("this", right)
    union.set("expression", left)
    return True


def order_rows(e: Edited) -> bool:
    if not isinstance(e.tree, exp.Select) or e.tree.args.get("order") or e.tree.args.get("limit"):
        return False
    e.tree.order_by("1", copy=False)
    return True


def cte_inlined(e: Edited) -> bool:
    """A CTE becomes a derived table at each place that names it."""
    with_ = e.tree.args.get("with_") if isinstance(e.tree, exp.Query) else None
    if with_ is None or len(with_.expressions) != 1:
        return False
    (cte,) = with_.expressions
    places = [
        t for t in e.tree.find_all(exp.Table) if t.name == cte.alias and not t.db and not t.find_ancestor(exp.CTE)
    ]
    for table in places:
        alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
        table.replace(exp.Subquery(this=cte.this.copy(), alias=alias))
    e.tree.set("with_", None)
    return True


EDITS = (
    rename_alias, rename_cte, add_unused_cte, wrap_table, table_as_cte, join_otherwise, move_on_to_where, swap_sides,
    true_added, ordinals, distinct_as_group, having_to_where, nest_filter, reorder_branches, order_rows,
    cte_inlined,
)  # fmt: skip
