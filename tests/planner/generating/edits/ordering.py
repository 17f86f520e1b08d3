"""Edits of what decides in which order rows come: none of them is the same query to who takes rows by it."""

from __future__ import annotations

from sqlglot import exp

from .trees import Edited, parse

SORTS = ("order", "sort", "cluster", "distribute")


def _inner(e: Edited) -> list[exp.Select]:
    return [select for select in e.selects("from_") if isinstance(select.parent, (exp.Subquery, exp.CTE))]


def order_turned(e: Edited) -> bool:
    """ASC becomes DESC and back, below another query."""
    sorting = (o for o in e.tree.find_all(exp.Ordered) if not isinstance(o.parent, (exp.Distribute, exp.Cluster)))
    one = e.pick(o for o in sorting if o.find_ancestor(exp.Subquery, exp.CTE))
    if one is None or isinstance(one.find_ancestor(exp.Window, exp.Select), exp.Window):
        return False
    one.set("desc", not one.args.get("desc"))
    one.set("nulls_first", not one.args.get("desc"))
    return True


def order_dropped(e: Edited) -> bool:
    pair = e.pick((s, key) for s in _inner(e) for key in SORTS if s.args.get(key) and not s.args.get("limit"))
    if pair is None:
        return False
    select, key = pair
    select.set(key, None)
    return True


def order_comes(e: Edited) -> bool:
    """A subquery sorts, by an output of its own."""
    select = e.pick(s for s in _inner(e) if not any(s.args.get(key) for key in (*SORTS, "limit", "offset")))
    names = [name for name in select.named_selects if name and name != "*"] if select else []
    if select is None or not names:
        return False
    how = e.rng.choice(("ORDER BY {} DESC", "SORT BY {}", "CLUSTER BY {}", "DISTRIBUTE BY {}"))
    told = parse(f"SELECT 1 FROM x {how.format(e.rng.choice(names))}")
    for key in SORTS:
        if told.args.get(key):
            select.set(key, told.args[key].copy())
    return True


def order_of_another(e: Edited) -> bool:
    """What is sorted by is another output."""
    select = e.pick(s for s in _inner(e) if s.args.get("order") and len(s.named_selects) > 1)
    if select is None:
        return False
    one = e.rng.choice(select.args["order"].expressions)
    one.set("this", exp.column(e.rng.choice(select.named_selects)))
    return True


def branches_turned(e: Edited) -> bool:
    """The branches of a UNION ALL of equal names change places, wherever it stands."""
    union = e.pick(u for u in e.tree.find_all(exp.Union) if u.left.named_selects == u.right.named_selects)
    if union is None:
        return False
    left, right = union.this.copy(), union.expression.copy()
    union.set("this", right)
    union.set("expression", left)
    return True


EDITS = (order_turned, order_dropped, order_comes, order_of_another, branches_turned)
