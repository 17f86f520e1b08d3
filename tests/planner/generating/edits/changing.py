"""Edits that mean to change something: columns that come, go, move or are computed otherwise, and other rows."""

from __future__ import annotations

from sqlglot import exp

from .trees import Edited, add_where, is_plain, parse

NAMES = ("id", "item", "price", "flag", "d", "name", "ok", "w", "n", "v1", "v2", "g3", "extra", "extra")


def column_added(e: Edited) -> bool:
    """A column comes to one SELECT anywhere in the query, under a name that may be in use elsewhere."""
    select = e.pick(s for s in e.selects("from_") if not isinstance(s.parent, (exp.Exists, exp.In)))
    return select is not None and _add(e, select, e.rng.choice(NAMES))


def _add(e: Edited, select: exp.Select, name: str) -> bool:
    if name in select.named_selects:
        return False
    values = ["1", "'z'", "CAST(NULL AS INT)"]
    if select.args.get("group") or any(output.find(exp.AggFunc) for output in select.expressions):
        values += ["COUNT(*)", "MAX(1)"]
    else:
        values += [output.unalias().sql("spark") for output in select.expressions if not output.find(exp.Star)]
        values += [column.sql("spark") for column in select.find_all(exp.Column)][:4]
        values += ["COUNT(*) OVER ()", "EXPLODE(ARRAY(1, 2))"] if e.rng.random() < 0.2 else []
    output = exp.alias_(parse(e.rng.choice(values)), name)
    at = e.rng.randrange(len(select.expressions) + 1)
    select.set("expressions", [*select.expressions[:at], output, *select.expressions[at:]])
    return True


def column_added_to_branches(e: Edited) -> bool:
    """A column comes to every branch of a set operation, at the end or at one and the same place."""
    union = e.pick(u for u in e.tree.find_all(exp.SetOperation) if not isinstance(u.parent, exp.SetOperation))
    if union is None:
        return False
    branches = [
        s
        for s in union.find_all(exp.Select)
        if s.find_ancestor(exp.Subquery, exp.CTE) is union.find_ancestor(exp.Subquery, exp.CTE)
    ]
    at = e.rng.choice((0, 99))
    for number, select in enumerate(branches):
        value = parse("1" if e.rng.random() < 0.7 else str(number))
        outputs = list(select.expressions)
        outputs.insert(at, exp.alias_(value, "extra"))
        select.set("expressions", outputs)
    return True


def column_altered(e: Edited) -> bool:
    pair = e.pick(e.outputs())
    if pair is None:
        return False
    _, output = pair
    text, name = output.unalias().sql("spark"), output.alias_or_name
    way = e.rng.choice(("NULLIF({0}, {0})", "COALESCE({0}, {0})", "STRING({0})", "IF(TRUE, {0}, NULL)", "({0})",
                        "MAX({0}) OVER ()"))  # fmt: skip
    output.replace(exp.alias_(parse(way.format(text)), name))
    return True


def column_removed(e: Edited) -> bool:
    pair = e.pick((s, o) for s, o in e.outputs() if len(s.expressions) > 1)
    if pair is None:
        return False
    select, output = pair
    select.set("expressions", [expression for expression in select.expressions if expression is not output])
    return True


def column_renamed(e: Edited) -> bool:
    pair = e.pick(e.outputs())
    if pair is None:
        return False
    _, output = pair
    output.replace(exp.alias_(output.unalias().copy(), e.rng.choice(NAMES)))
    return True


def columns_moved(e: Edited) -> bool:
    select = e.pick(s for s in e.selects() if len(s.expressions) > 1)
    if select is None:
        return False
    outputs = list(select.expressions)
    e.rng.shuffle(outputs)
    select.set("expressions", outputs)
    return True


def filter_rows(e: Edited) -> bool:
    select = e.pick(e.selects("from_"))
    column = e.pick(c for c in select.find_all(exp.Column)) if select else None
    if select is None or column is None:
        return False
    add_where(select, parse(f"{column.sql('spark')} IS {e.rng.choice(('', 'NOT '))}NULL"))
    return True


def unfilter_rows(e: Edited) -> bool:
    pair = e.pick((s, c) for c in ("where", "having", "qualify", "limit", "laterals", "order") for s in e.selects(c))
    if pair is None:
        return False
    select, clause = pair
    select.set(clause, None)
    return True


def join_added(e: Edited) -> bool:
    """A join that adds rows, that adds none, or that takes some away."""
    select = e.pick(s for s in e.selects("from_") if is_plain(s) or s.args.get("group"))
    column = e.pick(c for c in select.find_all(exp.Column)) if select else None
    if select is None or column is None:
        return False
    how = e.rng.choice(("LEFT JOIN", "JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN"))
    on = "" if how == "CROSS JOIN" else f" ON STRING(j9.item) = STRING({column.sql('spark')})"
    other = parse(f"SELECT 1 FROM x {how} (SELECT item FROM s.items WHERE item > 10) AS j9{on}")
    select.append("joins", other.args["joins"][0].copy())
    return True


def group_rows(e: Edited) -> bool:
    select = e.pick(s for s in e.selects("from_") if is_plain(s) and not any(o.is_star for o in s.expressions))
    if select is None:
        return False
    select.set("group", exp.Group(expressions=[output.unalias().copy() for output in select.expressions]))
    return True


def limit_rows(e: Edited) -> bool:
    if not isinstance(e.tree, exp.Select) or e.tree.args.get("limit") or e.tree.args.get("order"):
        return False
    e.tree.order_by("ALL", copy=False)
    e.tree.limit(e.rng.choice((1, 2, 3)), copy=False)
    return True


def generator_added(e: Edited) -> bool:
    select = e.pick(s for s in e.selects("from_") if is_plain(s))
    if select is None:
        return False
    text = e.rng.choice(("EXPLODE(ARRAY(1, 2)) AS gx", "EXPLODE(ARRAY(1)) AS gx", "STACK(1, 1) AS gx"))
    select.append("expressions", parse(f"SELECT {text}").expressions[0].copy())
    return True


def lateral_added(e: Edited) -> bool:
    select = e.pick(s for s in e.selects("from_") if is_plain(s))
    if select is None:
        return False
    outer = e.rng.choice(("", "OUTER "))
    made = parse(f"SELECT 1 FROM x LATERAL VIEW {outer}EXPLODE(ARRAY(1, 2)) lx AS {e.rng.choice(NAMES)}")
    select.append("laterals", made.args["laterals"][0].copy())
    return True


def stack_rows(e: Edited) -> bool:
    """The query's rows come twice, or once and again none."""
    select = e.pick(s for s in e.selects("from_") if isinstance(s.parent, (exp.CTE, exp.Subquery)))
    if select is None or select.args.get("with_"):
        return False
    other = select.copy()
    if e.rng.random() < 0.5:
        add_where(other, exp.false())
    select.replace(exp.Union(this=select.copy(), expression=other, distinct=False))
    return True


ADDING = (column_added, column_added, column_added, column_added_to_branches)
EDITS = (
    column_altered, column_removed, column_renamed, columns_moved, filter_rows, unfilter_rows, join_added, group_rows,
    limit_rows, generator_added, lateral_added, stack_rows,
)  # fmt: skip
