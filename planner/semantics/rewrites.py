"""Ways to write one value: each function builds a value in the one form that all its spellings share.

Each rewriting is exact in Spark for every row for which neither side fails: three-valued logic, NaN (Spark orders it
above all numbers, equal to itself), ANSI mode. Whether a failing expression fails is not kept: Spark itself evaluates
the parts of a query in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from planner.semantics.algebra import Block, Part, Ref, Relation, Term, Value
from planner.semantics.sources import Group
from planner.semantics.types import PLAIN, spelled, type_of

TRUE, FALSE, NULL = Term("TRUE"), Term("FALSE"), Term("NULL")
_OPPOSITE = {"LT": ("LTE", True), "LTE": ("LT", True), "EQ": ("NEQ", False), "NEQ": ("EQ", False)}
_INT_MAX = 2**31 - 1
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "Add": lambda one, two: one + two,
    "Sub": lambda one, two: one - two,
    "Mul": lambda one, two: one * two,
}
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "EQ": lambda one, two: one == two,
    "NEQ": lambda one, two: one != two,
    "LT": lambda one, two: one < two,
    "LTE": lambda one, two: one <= two,
    "NullSafeEQ": lambda one, two: one == two,
}


def conjunction(values: Iterable[Value]) -> Value:
    """AND of all: nested ones are one, TRUE has no say, FALSE decides."""
    found = [value for value in conjuncts(values) if not _is(value, "TRUE")]
    if any(_is(value, "FALSE") for value in found):
        return FALSE
    alone = len(found) == 1 and type_of(found[0]) == "boolean"  # of a text, AND makes a boolean
    return TRUE if not found else found[0] if alone else Term("and", tuple(found))


def conjuncts(values: Iterable[Value]) -> list[Value]:
    """The operands of nested ANDs, one after another."""
    found: list[Value] = []
    for value in values:
        found += conjuncts(_values(value)) if _is(value, "and") else [value]
    return found


def filters(value: Value) -> list[Value]:
    """The predicates that a condition is made of, where only the rows count for which all of them are true."""
    return [_sought(each) for each in conjuncts([conjunction([value])]) if each is not TRUE]


def _sought(value: Value) -> Value:
    """`x IN (SELECT y ...)` as a filter: there is a row of which y = x; where there is none, NULLs do not matter."""
    if isinstance(value, Term) and value.op in ("EQ", "NEQ", "NullSafeEQ"):
        return _said_of(value)
    if not _is(value, "in query"):
        return value
    assert isinstance(value, Term)
    this, query = value.parts
    assert isinstance(this, (Term, Ref))
    assert isinstance(query, Relation)
    if len(query.columns) != 1 or _is(this, "Tuple"):
        return value
    (column,) = query.columns.values()
    return found(query.block.kept([comparison("EQ", column, this)]))


def _said_of(value: Term) -> Value:
    """`b = TRUE` as a filter is `b`, and `b = FALSE` is `NOT b`: NULL leaves the row out either way."""
    for told, other in (_values(value), _values(value)[::-1]):
        if told in (TRUE, FALSE) and other not in (TRUE, FALSE):
            same = (told is TRUE) is (value.op != "NEQ")
            return other if same else negation(other) if value.op != "NullSafeEQ" else value
    return value


def membership(this: Value, listed: Sequence[Value]) -> Value:
    """IN over literals of one type is OR over equalities where the other side is of a plain type; with decimals, or
    literals of several types, IN compares in a type of its own."""
    ops = {each.op if isinstance(each, Term) else "" for each in listed}
    if ops in ({"int"}, {"text"}) and type_of(this) in PLAIN:
        return disjunction([comparison("EQ", this, each) for each in listed])
    return Term("in", (this, Term("any of", tuple(listed))))


def disjunction(values: Sequence[Value]) -> Value:
    """OR of all: nested ones are one, FALSE has no say, TRUE decides."""
    found: list[Value] = []
    for value in values:
        found += _values(value) if _is(value, "or") else [] if _is(value, "FALSE") else [value]
    if any(_is(value, "TRUE") for value in found):
        return TRUE
    alone = len(found) == 1 and type_of(found[0]) == "boolean"
    return FALSE if not found else found[0] if alone else Term("or", tuple(found))


def negation(value: Value) -> Value:
    """NOT, taken as far inside as it goes: by De Morgan, and by the opposite comparison."""
    if not isinstance(value, Term):
        return Term("not", (value,))
    match value.op:
        case "TRUE":
            return FALSE
        case "FALSE":
            return TRUE
        case "not" if type_of(value.parts[0]) == "boolean":
            return _values(value)[0]
        case "and":
            return disjunction([negation(each) for each in _values(value)])
        case "or":
            return conjunction([negation(each) for each in _values(value)])
        case "EQ" | "NEQ" | "LT" | "LTE":
            op, turned = _OPPOSITE[value.op]
            one, two = _values(value)
            return Term(op, (two, one) if turned else (one, two))
    return Term("not", (value,))


def comparison(op: str, one: Value, two: Value) -> Value:
    """`a > b` is `b < a`; of two whole numbers the answer is known."""
    if op in ("GT", "GTE"):
        return comparison({"GT": "LT", "GTE": "LTE"}[op], two, one)
    if (numbers := _numbers(one, two)) and op in _COMPARED:
        return TRUE if _COMPARED[op](*numbers) else FALSE
    return Term(op, (one, two))


def arithmetic(op: str, one: Value, two: Value) -> Value:
    """Small whole numbers are computed: their sum, difference and product are INT too."""
    if numbers := _numbers(one, two):
        result = _ARITHMETIC[op](*numbers)
        if abs(result) <= _INT_MAX:
            return distant(number(result))
    return Term(op, (one, two))


def distant(value: Value) -> Value:
    """A literal that does not stand where it is used: of the same value, and to be told from one that does."""
    return Term("constant", (value,)) if isinstance(value, Term) and value.op in ("int", "number", "text") else value


def output(value: Value) -> Value:
    """A value as a column: there a literal is what it is, wherever it comes from."""
    if isinstance(value, Term) and value.op == "constant":
        (inner,) = _values(value)
        return inner
    return value


def number(value: int) -> Term:
    """A whole number as Spark's INT."""
    return Term("int", (str(value),))


def choice(cases: Sequence[tuple[Value, Value]], otherwise: Value) -> Value:
    """CASE, IF, NULLIF, NVL2: conditions and answers in order; without ELSE the answer is NULL."""
    flat = [part for case in cases for part in case]
    return Term("case", (*flat, otherwise))


def cast(value: Value, type_: str, *, safe: bool) -> Value:
    """A cast to the type that the value has is none; so is one to the type that it was just cast to."""
    # what is declared of a table's column is somebody's word, and no reason to leave a cast out
    computed = value.inner if isinstance(value, Ref) else value
    if isinstance(computed, Term) and type_of(computed) == spelled(type_):
        return distant(value)
    return Term("try cast" if safe else "cast", (value, type_))


def concatenation(parts: Sequence[Value]) -> Value:
    """`||` and CONCAT of texts, nested or not, are one; arrays of several types are widened pair by pair."""
    nested: list[Value] = []
    for part in parts:
        nested += _values(part) if _is(part, "concat") else [part]
    if not any(_is(each, "text") for each in nested):
        return Term("concat", tuple(parts))
    flat: list[Value] = []
    for each in nested:
        if flat and _is(flat[-1], "text") and _is(each, "text"):
            flat[-1] = Term("text", (text_of(flat[-1]) + text_of(each),))
        else:
            flat.append(each)
    return flat[0] if len(flat) == 1 else Term("concat", tuple(flat))


def text_of(value: Value) -> str:
    """What a text literal says."""
    assert isinstance(value, Term)
    return str(value.parts[0])


def found(block: Block) -> Value:
    """EXISTS: of groups it is enough that there is a row for one, so that DISTINCT has no say."""
    while len(block.sources) == 1 and not block.steps and isinstance(block.sources[0], Group):
        group = block.sources[0]
        early = [ungrouped(group, each) for each in block.where]
        if group.sets or not group.keys or None in early:
            break
        block = group.block.kept([each for each in early if each])
    return Term("exists", (block,))


def ungrouped(group: Group, predicate: Value) -> Value | None:
    """An equality of a key with something outside, said of the rows before they are grouped; None for anything else."""
    if not isinstance(predicate, Term) or predicate.op != "EQ":
        return None
    sides = [part.inner if isinstance(part, Ref) and part.source is group else part for part in predicate.parts]
    keys = [side for side, part in zip(sides, predicate.parts, strict=True) if side is not part]
    if len(keys) != 1 or not any(keys[0] is key for key in group.keys):
        return None
    one, two = sides
    assert isinstance(one, (Term, Ref))
    assert isinstance(two, (Term, Ref))
    return (
        None
        if any(not isinstance(s, str) and group in s.free for s in sides if s is not keys[0])
        else comparison("EQ", one, two)
    )


def _values(value: Value) -> list[Value]:
    assert isinstance(value, Term)
    return [part for part in value.parts if isinstance(part, (Term, Ref))]


def _is(value: Part, op: str) -> bool:
    return isinstance(value, Term) and value.op == op


def _numbers(*values: Value) -> tuple[int, int] | None:
    plain = [output(value) for value in values]
    found = [int(str(v.parts[0])) for v in plain if isinstance(v, Term) and v.op == "int"]
    return (found[0], found[1]) if len(found) == 2 else None
