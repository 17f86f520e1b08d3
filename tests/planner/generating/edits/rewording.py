"""Edits of expressions that leave their meaning as it is."""

from __future__ import annotations

from sqlglot import exp

from .trees import Edited, add_where, parse

FLIPPED = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}
NEGATED = {exp.GT: exp.LTE, exp.LTE: exp.GT, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.EQ: exp.NEQ, exp.NEQ: exp.EQ}


def swap_operands(e: Edited) -> bool:
    node = e.any(exp.Add, exp.Mul, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.And, exp.Or)
    if node is None:
        return False
    left, right = node.this.copy(), node.expression.copy()
    node.set("this", right)
    node.set("expression", left)
    return True


def mirror_comparison(e: Edited) -> bool:
    """`a > b` becomes `b < a`."""
    node = e.any(*FLIPPED)
    if node is None:
        return False
    node.replace(FLIPPED[type(node)](this=node.expression.copy(), expression=node.this.copy()))
    return True


def negate_comparison(e: Edited) -> bool:
    """`a > b` becomes `NOT a <= b`."""
    node = e.any(*NEGATED)
    if node is None:
        return False
    other = NEGATED[type(node)](this=node.this.copy(), expression=node.expression.copy())
    node.replace(exp.Paren(this=exp.Not(this=exp.Paren(this=other))))
    return True


def de_morgan(e: Edited) -> bool:
    node = e.any(exp.And, exp.Or)
    if node is None:
        return False
    other = exp.Or if isinstance(node, exp.And) else exp.And
    sides = [exp.Paren(this=exp.Not(this=exp.Paren(this=side.copy()))) for side in (node.this, node.expression)]
    node.replace(exp.Paren(this=exp.Not(this=exp.Paren(this=other(this=sides[0], expression=sides[1])))))
    return True


def expand_between(e: Edited) -> bool:
    node = e.any(exp.Between)
    if node is None:
        return False
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
    high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
    node.replace(exp.Paren(this=exp.And(this=low, expression=high)))
    return True


def spell_in(e: Edited) -> bool:
    """IN as an OR of equalities, or with its list in another order."""
    node = e.pick(n for n in e.tree.find_all(exp.In) if n.expressions)
    if node is None:
        return False
    options = [expression.copy() for expression in node.expressions]
    e.rng.shuffle(options)
    if e.rng.random() < 0.5:
        node.set("expressions", options)
        return True
    equal = [exp.EQ(this=node.this.copy(), expression=option) for option in options]
    node.replace(exp.Paren(this=exp.or_(*equal, copy=False)) if len(equal) > 1 else exp.Paren(this=equal[0]))
    return True


def case_or_if(e: Edited) -> bool:
    node = e.pick(
        n for n in e.tree.find_all(exp.Case, exp.If) if not isinstance(n.parent, exp.Case) and not n.args.get("this_")
    )
    if isinstance(node, exp.If):
        branch = exp.If(this=node.this.copy(), true=node.args["true"].copy())
        node.replace(exp.Case(ifs=[branch], default=node.args.get("false")))
        return True
    if not isinstance(node, exp.Case) or node.this or len(node.args["ifs"]) != 1:
        return False
    (branch,) = node.args["ifs"]
    false = node.args.get("default") or exp.null()
    node.replace(exp.If(this=branch.this.copy(), true=branch.args["true"].copy(), false=false.copy()))
    return True


def respell(e: Edited) -> bool:
    """One expression in other words."""
    node = e.any(exp.Count, exp.Not, exp.Coalesce, exp.Is, exp.Paren, exp.Literal, exp.Filter, exp.If, exp.Concat)
    match node:
        case exp.Count() if isinstance(node.this, exp.Star):
            node.replace(parse("COUNT(1)"))
        case exp.Not():
            node.replace(exp.Paren(this=exp.Not(this=exp.Paren(this=exp.Not(this=exp.Paren(this=node.copy()))))))
        case exp.Filter() if isinstance(node.this, exp.Sum):
            condition, what = node.expression.this.copy(), node.this.this.copy()
            if isinstance(what, exp.Distinct):
                return False
            node.replace(exp.Sum(this=exp.Case(ifs=[exp.If(this=condition, true=what)])))
        case exp.Literal() if node.is_int and isinstance(node.parent, (exp.Add, exp.GT, exp.EQ, exp.Coalesce)):
            node.replace(parse(f"({int(node.this) - 1} + 1)"))
        case exp.Coalesce() if len(node.expressions) == 1:
            node.replace(parse(f"NVL({node.this.sql('spark')}, {node.expressions[0].sql('spark')})"))
        case exp.Expr() if not isinstance(node, (exp.Literal, exp.Count)):
            node.replace(exp.Paren(this=node.copy()))
        case _:
            return False
    return True


def turn_in_to_exists(e: Edited) -> bool:
    """`x IN (SELECT y ...)` in a WHERE becomes EXISTS."""
    node = e.pick(
        n for n in e.tree.find_all(exp.In) if n.args.get("query") and isinstance(n.parent, (exp.Where, exp.And))
    )
    if node is None:
        return False
    inner = node.args["query"].this.copy()
    add_where(inner, exp.EQ(this=inner.expressions[0].unalias().copy(), expression=node.this.copy()))
    inner.set("expressions", [exp.Literal.number(1)])
    node.replace(exp.Exists(this=inner))
    return True


EDITS = (
    swap_operands, mirror_comparison, negate_comparison, de_morgan, expand_between, spell_in, case_or_if, respell,
    turn_in_to_exists,
)  # fmt: skip
