"""Edits of clauses that look as if they said the same and do not: what must never be taken for equal."""

from __future__ import annotations

from sqlglot import exp

from .trees import Edited, add_where, conjoin, conjuncts, kind_of, parse, set_where

SIDES = (("", ""), ("LEFT", ""), ("RIGHT", ""), ("FULL", ""), ("LEFT", "SEMI"), ("LEFT", "ANTI"))
COMPARED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.NullSafeEQ)


def filter_moved_inside(e: Edited) -> bool:
    """A part of WHERE moves into the derived table or CTE that is read, or out of it."""
    select = e.pick(s for s in e.selects("from_") if isinstance(s.args["from_"].this, (exp.Subquery, exp.Table)))
    if select is None:
        return False
    source = select.args["from_"].this
    inner = source.this if isinstance(source, exp.Subquery) else _cte(e, source.name)
    if not isinstance(inner, exp.Select):
        return False
    outside, inside = select.args.get("where"), inner.args.get("where")
    giver, taker = (select, inner) if outside and (not inside or e.rng.random() < 0.5) else (inner, select)
    if not giver.args.get("where"):
        return False
    parts = conjuncts(giver.args["where"].this)
    moved = e.rng.choice(parts)
    set_where(giver, [part for part in parts if part is not moved])
    moved = moved.copy()
    for column in moved.find_all(exp.Column):
        column.set("table", None)
    add_where(taker, moved)
    return True


def _cte(e: Edited, name: str) -> exp.Expr | None:
    return next((cte.this for cte in e.tree.find_all(exp.CTE) if cte.alias == name), None)


def having_or_where(e: Edited) -> bool:
    select = e.pick(s for s in e.selects("group") if s.args.get("having") or s.args.get("where"))
    if select is None:
        return False
    one, two = ("having", "where") if select.args.get("having") else ("where", "having")
    part = select.args[one].this.copy()
    select.set(one, None)
    if two == "where":
        add_where(select, part)
    else:
        select.set("having", exp.Having(this=part))
    return True


def set_operator(e: Edited) -> bool:
    node = e.any(exp.Union, exp.Except, exp.Intersect)
    if node is None:
        return False
    if e.rng.random() < 0.5:
        node.set("distinct", not node.args.get("distinct"))
        return True
    if e.rng.random() < 0.4:
        left, right = node.this.copy(), node.expression.copy()
        node.set("this", right)
        node.set("expression", left)
        return True
    kind = e.rng.choice((exp.Union, exp.Except, exp.Intersect))
    node.replace(
        kind(
            this=node.this.copy(),
            expression=node.expression.copy(),
            distinct=node.args.get("distinct"),
            with_=node.args.get("with_"),
        )
    )
    return True


def distinct_or_not(e: Edited) -> bool:
    select = e.pick([*e.selects("distinct"), *e.selects()])
    if select is None or select.args.get("group"):
        return False
    select.set("distinct", None if select.args.get("distinct") else exp.Distinct())
    return True


def join_kind(e: Edited) -> bool:
    join = e.pick(j for j in e.tree.find_all(exp.Join) if j.args.get("on") or j.args.get("using"))
    if join is None:
        return False
    side, kind = e.rng.choice(SIDES)
    join.set("side", side)
    join.set("kind", kind)
    return True


def move_on_or_where(e: Edited) -> bool:
    """A part of any join's ON moves to WHERE, or a part of WHERE to ON."""
    join = e.pick(j for j in e.tree.find_all(exp.Join) if j.args.get("on"))
    if join is None or not isinstance(join.parent, exp.Select):
        return False
    select, parts = join.parent, conjuncts(join.args["on"])
    where = select.args.get("where")
    if where and e.rng.random() < 0.5:
        moved = e.rng.choice(conjuncts(where.this))
        set_where(select, [part for part in conjuncts(where.this) if part is not moved])
        join.set("on", conjoin([*parts, moved]))
        return True
    moved = e.rng.choice(parts)
    join.set("on", conjoin([part for part in parts if part is not moved]))
    add_where(select, moved)
    return True


def joins_reordered(e: Edited) -> bool:
    select = e.pick(e.selects("joins"))
    if select is None:
        return False
    joins = select.args["joins"]
    if len(joins) > 1:
        select.set("joins", [*joins[1:], joins[0]])
        return True
    first, second = select.args["from_"].this.copy(), joins[0].this.copy()
    select.args["from_"].set("this", second)
    joins[0].set("this", first)
    return True


def capture_name(e: Edited) -> bool:
    """An output takes the name of a column that its query reads, or two outputs exchange their names."""
    pair = e.pick(e.outputs())
    if pair is None:
        return False
    select, output = pair
    others = [o for s, o in e.outputs() if s is select and o is not output]
    if others and e.rng.random() < 0.5:
        other = e.rng.choice(others)
        one, two = output.alias_or_name, other.alias_or_name
        output.replace(exp.alias_(output.unalias().copy(), two))
        other.replace(exp.alias_(other.unalias().copy(), one))
        return True
    column = e.pick(c for c in select.find_all(exp.Column) if c.name not in select.named_selects)
    if column is None:
        return False
    output.replace(exp.alias_(output.unalias().copy(), column.name))
    return True


def grouping_changed(e: Edited) -> bool:
    """ROLLUP, CUBE and plain keys for one another, keys in another order, a key less."""
    select = e.pick(e.selects("group"))
    if select is None:
        return False
    group = select.args["group"]
    nested = [n for grouping in ("rollup", "cube", "grouping_sets") for n in group.args.get(grouping) or []]
    keys = [k.copy() for k in (nested[0].expressions if nested else group.expressions)]
    if not keys:
        return False
    e.rng.shuffle(keys)
    text = ", ".join(key.sql("spark") for key in keys)
    by = e.rng.choice((f"ROLLUP ({text})", f"CUBE ({text})", text, f"GROUPING SETS (({text}), ())"))
    select.set("group", parse(f"SELECT 1 FROM t GROUP BY {by}").args["group"].copy())
    return True


def subquery_merged(e: Edited) -> bool:
    """A derived table gives way to the table that it reads, whatever else it did."""
    subquery = e.pick(
        s
        for s in e.tree.find_all(exp.Subquery)
        if isinstance(s.this, exp.Select)
        and s.this.args.get("from_")
        and isinstance(s.this.args["from_"].this, exp.Table)
    )
    if subquery is None:
        return False
    table = subquery.this.args["from_"].this.copy()
    table.set("alias", exp.TableAlias(this=exp.to_identifier(subquery.alias or "merged")))
    subquery.replace(table)
    return True


def limit_changed(e: Edited) -> bool:
    select = e.pick(e.selects("limit"))
    if select is None:
        return False
    order = select.args.get("order")
    if order and e.rng.random() < 0.6:
        one = e.rng.choice(order.expressions)
        one.set("desc", not one.args.get("desc"))
    else:
        select.set(
            "limit", None if e.rng.random() < 0.3 else exp.Limit(expression=exp.Literal.number(e.rng.randrange(4)))
        )
    return True


def shadow_name(e: Edited) -> bool:
    """A CTE takes the name of a table or of another CTE, or a table is read in its place."""
    cte = e.any(exp.CTE)
    if cte is None:
        return False
    names = [n.split(".")[1] for n in e.columns] + [c.alias for c in e.tree.find_all(exp.CTE)]
    if e.rng.random() < 0.5:
        old, new = cte.alias, e.rng.choice(names)
        cte.args["alias"].set("this", exp.to_identifier(new))
        for table in e.tree.find_all(exp.Table):
            if table.name == old and not table.db:
                table.set("alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(old)))
                table.set("this", exp.to_identifier(new))
        return True
    place = e.pick(t for t in e.tables() if t.name == cte.alias)
    if place is None:
        return False
    place.set("alias", place.args.get("alias") or exp.TableAlias(this=exp.to_identifier(place.name)))
    other = e.rng.choice(list(e.columns))
    place.set("this", exp.to_identifier(other.split(".")[1]))
    place.set("db", exp.to_identifier("s"))
    return True


def table_exchanged(e: Edited) -> bool:
    """Two tables of a query exchange their places; their aliases stay."""
    tables = e.tables()
    if len(tables) < 2:
        return False
    one, two = e.rng.sample(tables, 2)
    for table in (one, two):
        table.set("alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name)))
    first, second = (one.this.copy(), one.args.get("db")), (two.this.copy(), two.args.get("db"))
    for table, (this, db) in ((one, second), (two, first)):
        table.set("this", this)
        table.set("db", db.copy() if db else None)
    return True


def no_longer_kind(e: Edited) -> bool:
    """A join loses its condition's last part."""
    join = e.pick(j for j in e.tree.find_all(exp.Join) if kind_of(j) in ("INNER", "LEFT", "FULL"))
    parts = conjuncts(join.args["on"]) if join else []
    if join is None or len(parts) < 2:
        return False
    join.set("on", conjoin(parts[:-1]))
    return True


EDITS = (
    filter_moved_inside, having_or_where, set_operator, distinct_or_not, join_kind, move_on_or_where, joins_reordered,
    capture_name, grouping_changed, subquery_merged, limit_changed, shadow_name, table_exchanged, no_longer_kind,
)  # fmt: skip
