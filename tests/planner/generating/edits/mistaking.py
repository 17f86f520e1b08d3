"""Edits of expressions that look as if they said the same and do not."""

from __future__ import annotations

from sqlglot import exp

from .trees import Edited, add_where, parse

SIDES = (("", ""), ("LEFT", ""), ("RIGHT", ""), ("FULL", ""), ("LEFT", "SEMI"), ("LEFT", "ANTI"))
COMPARED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.NullSafeEQ)


def swap_operands(e: Edited) -> bool:
    """The operands of what has a left and a right, whether it minds or not."""
    node = e.any(exp.Sub, exp.Div, exp.Mod, exp.DPipe, exp.GT, exp.LT, exp.LTE, exp.Add, exp.NullSafeEQ)
    if node is None:
        return False
    left, right = node.this.copy(), node.expression.copy()
    node.set("this", right)
    node.set("expression", left)
    return True


def compare_otherwise(e: Edited) -> bool:
    node = e.any(*COMPARED)
    if node is None:
        return False
    node.replace(e.rng.choice(COMPARED)(this=node.this.copy(), expression=node.expression.copy()))
    return True


def not_in_as_not_exists(e: Edited) -> bool:
    node = e.pick(n for n in e.tree.find_all(exp.In) if n.args.get("query"))
    if node is None:
        return False
    inner = node.args["query"].this.copy()
    add_where(inner, exp.EQ(this=inner.expressions[0].unalias().copy(), expression=node.this.copy()))
    inner.set("expressions", [exp.Literal.number(1)])
    node.replace(exp.Exists(this=inner))
    return True


def count_otherwise(e: Edited) -> bool:
    node = e.any(exp.Count)
    column = e.pick(c for c in e.tree.find_all(exp.Column) if node and c.parent_select is node.parent_select)
    if node is None or column is None:
        return False
    text = column.sql("spark")
    node.replace(parse(e.rng.choice((f"COUNT({text})", f"COUNT(DISTINCT {text})", "COUNT(*)"))))
    return True


def case_shuffled(e: Edited) -> bool:
    node = e.any(exp.Case, exp.If)
    if isinstance(node, exp.Case) and len(node.args["ifs"]) > 1:
        node.set("ifs", node.args["ifs"][::-1])
    elif isinstance(node, exp.Case) and node.args.get("default"):
        node.set("default", None)
    elif isinstance(node, exp.If) and node.args.get("false") and not isinstance(node.parent, exp.Case):
        true, false = node.args["true"].copy(), node.args["false"].copy()
        node.set("true", false)
        node.set("false", true)
    else:
        return False
    return True


def lambda_changed(e: Edited) -> bool:
    """A lambda's body, or its parameter's name: that of a column, at times."""
    node = e.any(exp.Lambda)
    if node is None:
        return False
    if e.rng.random() < 0.5:
        node.set(
            "this",
            parse("e IS NOT NULL") if isinstance(node.this, exp.Predicate) else exp.Paren(this=node.this.copy()),
        )
        return True
    column = e.pick(e.tree.find_all(exp.Column))
    if column is None:
        return False
    for name in [n for n in node.find_all(exp.Identifier) if n.name == "e"]:
        name.replace(exp.to_identifier(column.name))
    return True


def other_column(e: Edited) -> bool:
    """A column is read in place of another one, or with another table's name, or with none."""
    columns = list(e.tree.find_all(exp.Column))
    column = e.pick(columns)
    if column is None:
        return False
    kept = column.name if isinstance(column.parent, exp.Select) else ""
    other = e.rng.choice(columns)
    way = e.rng.random()
    if way < 0.3:
        replacement = other.copy()
    elif way < 0.6:
        replacement = exp.column(column.name)
    else:
        tables = [t.alias_or_name for t in e.tree.find_all(exp.Table, exp.Subquery) if t.alias_or_name]
        replacement = exp.column(column.name, table=e.rng.choice(tables)) if tables else other.copy()
    column.replace(exp.alias_(replacement, kept) if kept and kept != replacement.name else replacement)
    return True


def window_changed(e: Edited) -> bool:
    window = e.any(exp.Window)
    if window is None:
        return False
    spec, order = window.args.get("spec"), window.args.get("order")
    way = e.rng.randrange(4)
    if way == 0 and spec:
        window.set("spec", None)
    elif way == 1 and order and isinstance(window.this, exp.AggFunc):
        frame = e.rng.choice(("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                              "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                              "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"))  # fmt: skip
        window.set("spec", parse(f"SUM(x) OVER (ORDER BY y {frame})").args["spec"].copy())
    elif way == 2 and window.args.get("partition_by"):
        window.set("partition_by", window.args["partition_by"][1:] or None)
    elif order:
        one = e.rng.choice(order.expressions)
        one.set("desc", not one.args.get("desc"))
        one.set("nulls_first", e.rng.random() < 0.5)
    else:
        return False
    return True


def literal_changed(e: Edited) -> bool:
    node = e.any(exp.Literal)
    if node is None:
        return False
    if node.is_string:
        node.replace(exp.Literal.string(e.rng.choice((node.this.upper(), node.this.lower(), f"{node.this} "))))
    else:
        node.replace(parse(e.rng.choice((f"{node.this}0", "1", "2", f"{int(float(node.this))}.0"))))
    return True


def connect_otherwise(e: Edited) -> bool:
    """AND and OR for one another, a part left out, a NOT taken inside wrongly, NULL taken for FALSE."""
    node = e.any(exp.And, exp.Or, exp.Not, exp.EQ, exp.In)
    match node:
        case exp.And() | exp.Or() if e.rng.random() < 0.5:
            other = exp.Or if isinstance(node, exp.And) else exp.And
            node.replace(exp.Paren(this=other(this=node.this.copy(), expression=node.expression.copy())))
        case exp.And() | exp.Or():
            node.replace(e.rng.choice((node.this, node.expression)).copy())
        case exp.Not():
            node.replace(
                exp.Paren(this=exp.EQ(this=exp.Paren(this=node.this.copy()), expression=exp.false()))
                if e.rng.random() < 0.5
                else exp.Paren(this=parse(f"COALESCE({node.this.sql('spark')}, TRUE) = FALSE"))
            )
        case None:
            return False
        case _:
            node.replace(exp.Coalesce(this=node.copy(), expressions=[exp.false()]))
    return True


def function_changed(e: Edited) -> bool:
    """Arguments in another order, or a function for its neighbour."""
    node = e.any(
        exp.Coalesce, exp.Greatest, exp.Concat, exp.Sum, exp.Max, exp.Min, exp.Explode, exp.Lateral, exp.Filter
    )
    match node:
        case exp.Coalesce() | exp.Greatest() | exp.Concat():
            parts = [p.copy() for p in ([node.this] if node.this else []) + node.expressions]
            parts = parts[::-1]
            node.set("expressions", parts[1:] if node.this else parts)
            if node.this:
                node.set("this", parts[0])
        case exp.Sum() | exp.Max() | exp.Min():
            kind = e.rng.choice((exp.Max, exp.Min, exp.Sum))
            node.replace(kind(this=node.this.copy()))
        case exp.Lateral():
            node.set("outer", not node.args.get("outer"))
        case exp.Filter():
            node.replace(node.this.copy())
        case _:
            return False
    return True


EDITS = (
    swap_operands, compare_otherwise, not_in_as_not_exists, count_otherwise, case_shuffled, lambda_changed,
    other_column, other_column, window_changed, literal_changed, connect_otherwise, function_changed,
)  # fmt: skip
