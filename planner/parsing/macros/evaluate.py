"""Conditions and expressions that are known while a file is loaded: `@IF(1 < 2, ...)`, `@EVAL(5 + 1)`."""

import operator
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

Value = str | int | float | bool | Decimal | None


class Unknowable(Exception):
    """A part of an expression whose value is not known while a file is loaded; the message names it."""


_ARITHMETIC: dict[type[exp.Expr], Callable[[Any, Any], Value]] = {
    exp.Add: lambda a, b: operator.add(a, b),
    exp.Sub: lambda a, b: operator.sub(a, b),
    exp.Mul: lambda a, b: operator.mul(a, b),
    exp.Div: lambda a, b: None if b == 0 else operator.truediv(a, b),
    exp.IntDiv: lambda a, b: None if b == 0 else operator.floordiv(a, b),
    exp.Mod: lambda a, b: None if b == 0 else operator.mod(a, b),
    exp.DPipe: lambda a, b: f"{a}{b}",
}
_COMPARISONS: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: operator.lt(a, b),
    exp.LTE: lambda a, b: operator.le(a, b),
    exp.GT: lambda a, b: operator.gt(a, b),
    exp.GTE: lambda a, b: operator.ge(a, b),
}
_OF_ONE: dict[type[exp.Expr], Callable[[Any], Value]] = {
    exp.Upper: lambda a: str(a).upper(),
    exp.Lower: lambda a: str(a).lower(),
    exp.Trim: lambda a: str(a).strip(),
    exp.Length: lambda a: len(str(a)),
    exp.Abs: lambda a: abs(a),
    exp.Neg: lambda a: -a,
}


def value_of(tree: exp.Expr) -> Value:
    """Return the value of a SQL expression of literals, None for NULL; raise Unknowable for any other."""
    match tree:
        case exp.Paren():
            return value_of(tree.this)
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(tree.this)
        case exp.Literal():
            return str(tree.this) if tree.is_string else _parse_number(str(tree.this))
        case exp.And() | exp.Or():
            first, decisive = value_of(tree.this), isinstance(tree, exp.Or)
            if first is not None and bool(first) is decisive:
                return decisive
            second = value_of(tree.expression)
            if second is not None and bool(second) is decisive:
                return decisive
            return None if first is None or second is None else not decisive
        case exp.Not():
            inner = value_of(tree.this)
            return None if inner is None else not inner
        case exp.Is():
            return value_of(tree.this) is value_of(tree.expression)
        case exp.In() | exp.Between() | exp.Like() | exp.ILike():
            return _test_membership(tree)
        case exp.If() | exp.Case() | exp.Coalesce() | exp.Concat():
            return _choose_value(tree)
    return _compute_value(tree)


def _compute_value(tree: exp.Expr) -> Value:
    kind = type(tree)
    try:
        if kind in _OF_ONE:
            inner = value_of(tree.this)
            return None if inner is None else _OF_ONE[kind](inner)
        if kind in _ARITHMETIC or kind in _COMPARISONS:
            first, second = value_of(tree.this), value_of(tree.expression)
            if first is None or second is None:
                return None
            if kind in _COMPARISONS:
                return _COMPARISONS[kind](*_align_types(first, second))
            return _ARITHMETIC[kind](first, second)
    except (TypeError, OverflowError, ArithmeticError) as error:
        raise Unknowable(f"`{tree.sql()}` ({error})") from None
    raise Unknowable(f"`{tree.sql()}`")


def _parse_number(text: str) -> Value:
    try:
        return int(text) if re.fullmatch(r"\d+", text) else Decimal(text)
    except InvalidOperation:
        raise Unknowable(f"`{text}`") from None


def _align_types(left: Value, right: Value) -> tuple[Value, Value]:
    """Return two values that can be compared; a string compared with a number is converted to one, as in Spark."""
    if isinstance(left, str) != isinstance(right, str) and not isinstance(left, bool) and not isinstance(right, bool):
        try:
            return Decimal(str(left)), Decimal(str(right))
        except InvalidOperation:
            return str(left), str(right)
    return left, right


def _test_membership(tree: exp.Expr) -> Value:
    value = value_of(tree.this)
    if value is None:
        return None
    if isinstance(tree, exp.Between):
        low, high = value_of(tree.args["low"]), value_of(tree.args["high"])
        return value_of(exp.and_(_build_comparison(exp.GTE, value, low), _build_comparison(exp.LTE, value, high)))
    if isinstance(tree, exp.In):
        if not tree.expressions:
            raise Unknowable(f"`{tree.sql()}`")
        matches = [value_of(_build_comparison(exp.EQ, value, value_of(option))) for option in tree.expressions]
        return True if True in matches else None if None in matches else False
    pattern = value_of(tree.expression)
    if pattern is None:
        return None
    return _is_like(str(value), str(pattern), re.IGNORECASE if isinstance(tree, exp.ILike) else 0)


def _is_like(text: str, pattern: str, flags: int) -> bool:
    """Return True if the text fits a pattern of LIKE; the text between two `%` is searched only once."""
    pieces = ["".join("." if letter == "_" else re.escape(letter) for letter in part) for part in pattern.split("%")]
    first, *tail = (re.compile(piece, flags | re.DOTALL) for piece in pieces)
    if not tail:
        return first.fullmatch(text) is not None
    match, last = first.match(text), tail.pop()
    for piece in tail:
        match = match and piece.search(text, match.end())
    length = len(pattern.rpartition("%")[2])
    return (
        match is not None and len(text) - length >= match.end() and last.fullmatch(text, len(text) - length) is not None
    )


def _build_comparison(kind: type[exp.Binary], left: Value, right: Value) -> exp.Expr:
    return kind(this=exp.convert(left), expression=exp.convert(right))


def _choose_value(tree: exp.Expr) -> Value:
    if isinstance(tree, exp.Coalesce):
        values = (value_of(argument) for argument in (tree.this, *tree.expressions))
        return next((value for value in values if value is not None), None)
    if isinstance(tree, exp.Concat):
        parts = [value_of(argument) for argument in tree.expressions]
        return None if None in parts else "".join(str(part) for part in parts)
    branches = tree.args["ifs"] if isinstance(tree, exp.Case) else [tree]
    for branch in branches:
        condition = branch.this
        if isinstance(tree, exp.Case) and tree.this:
            condition = exp.EQ(this=tree.this.copy(), expression=condition.copy())
        if value_of(condition):
            return value_of(branch.args["true"])
    otherwise = tree.args.get("default") if isinstance(tree, exp.Case) else tree.args.get("false")
    return value_of(otherwise) if otherwise else None
