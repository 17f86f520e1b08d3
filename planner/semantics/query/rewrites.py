"""Normal forms of values: each function builds a value in the one form that all its spellings share.

Each rewriting is exact in Spark for every row for which neither side fails: in three-valued logic, for NaN (which is
equal to itself and greater than all numbers) and in ANSI mode. Whether an expression fails is not preserved, because
Spark itself evaluates the parts of a query in any order.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from mergeplan.planner.semantics.query.algebra import Block, Part, Ref, Relation, Term, Value
from mergeplan.planner.semantics.query.sources import Group
from mergeplan.planner.semantics.result_types import PLAIN
from mergeplan.planner.semantics.types import is_padded, normalize_type, type_of

TRUE, FALSE, NULL = Term("TRUE"), Term("FALSE"), Term("NULL")
# `NOT a < b` is `b <= a` even for NaN, because Spark orders all values; True: the operands change places.
_OPPOSITE = {"LT": ("LTE", True), "LTE": ("LT", True), "EQ": ("NEQ", False), "NEQ": ("EQ", False)}
# Beyond it, Spark raises an overflow in ANSI mode and wraps around without, so nothing is computed here.
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


def build_conjunction(values: Iterable[Value]) -> Value:
    """Return the AND of all: nested ANDs are flattened, TRUE is dropped, FALSE decides."""
    operands = [value for value in flatten_conjuncts(values) if not _is_operation(value, "TRUE")]
    if any(_is_operation(value, "FALSE") for value in operands):
        return FALSE
    alone = len(operands) == 1 and type_of(operands[0]) == "boolean"  # AND casts a string to boolean, so it must stay
    return TRUE if not operands else operands[0] if alone else Term("and", tuple(operands))


def flatten_conjuncts(values: Iterable[Value]) -> list[Value]:
    parts = (flatten_conjuncts(_value_parts(value)) if _is_operation(value, "and") else [value] for value in values)
    return list(chain.from_iterable(parts))


def filter_predicates(value: Value) -> list[Value]:
    """Return the predicates of a filter condition: only rows for which all are true count, so NULL is FALSE."""
    return [
        _as_filter(predicate) for predicate in flatten_conjuncts([build_conjunction([value])]) if predicate is not TRUE
    ]


def _as_filter(value: Value) -> Value:
    """Return `x IN (SELECT y ...)` as EXISTS with y = x: in a filter, NULL and FALSE both exclude the row."""
    if isinstance(value, Term) and value.op in ("EQ", "NEQ", "NullSafeEQ"):
        # `b` for `b = TRUE`, and `NOT b` for `b = FALSE`: in a filter, NULL excludes the row either way
        for truth, operand in (_value_parts(value), _value_parts(value)[::-1]):
            if truth in (TRUE, FALSE) and operand not in (TRUE, FALSE):
                is_positive = (truth is TRUE) is (value.op != "NEQ")
                return operand if is_positive else build_negation(operand) if value.op != "NullSafeEQ" else value
        return value
    if not _is_operation(value, "in query"):
        return value
    assert isinstance(value, Term)
    this, query = value.parts
    assert isinstance(this, (Term, Ref))
    assert isinstance(query, Relation)
    # tuples are compared field by field, with NULL rules of their own
    if len(query.columns) != 1 or _is_operation(this, "Tuple"):
        return value
    (column,) = query.columns.values()
    if is_padded(this) or is_padded(column):  # a text in a subquery gets no spaces
        return value
    return build_exists(query.block.add_predicates([build_comparison("EQ", column, this)]))


def build_membership(this: Value, listed: Sequence[Value]) -> Value:
    """Return IN over literals of one type as OR of equalities, if the other side has a plain type.

    With decimals, or literals of several types, IN compares in a common type of all.
    """
    ops = {literal.op if isinstance(literal, Term) else "" for literal in listed}
    if ops in ({"int"}, {"text"}) and type_of(this) in PLAIN:
        return build_disjunction([build_comparison("EQ", this, literal) for literal in listed])
    return Term("in", (this, Term("any of", tuple(listed))))


def build_disjunction(values: Sequence[Value]) -> Value:
    """Return the OR of all: nested ORs are flattened, FALSE is dropped, TRUE decides."""
    operands: list[Value] = []
    for value in values:
        operands += (
            _value_parts(value) if _is_operation(value, "or") else [] if _is_operation(value, "FALSE") else [value]
        )
    if any(_is_operation(value, "TRUE") for value in operands):
        return TRUE
    alone = len(operands) == 1 and type_of(operands[0]) == "boolean"  # OR casts a string to boolean too
    return FALSE if not operands else operands[0] if alone else Term("or", tuple(operands))


def build_negation(value: Value) -> Value:
    """Return NOT, pushed inside as far as possible: by De Morgan, and by the opposite comparison."""
    if not isinstance(value, Term):
        return Term("not", (value,))
    match value.op:
        case "TRUE":
            return FALSE
        case "FALSE":
            return TRUE
        # `NOT NOT x` casts a string to boolean, so only booleans lose the pair
        case "not" if type_of(value.parts[0]) == "boolean":
            return _value_parts(value)[0]
        case "and":
            return build_disjunction([build_negation(operand) for operand in _value_parts(value)])
        case "or":
            return build_conjunction([build_negation(operand) for operand in _value_parts(value)])
        case "EQ" | "NEQ" | "LT" | "LTE":
            op, turned = _OPPOSITE[value.op]
            one, two = _value_parts(value)  # NULL stays NULL on both sides, so that this is exact in three-valued logic
            return Term(op, (two, one) if turned else (one, two))
    return Term("not", (value,))


def build_comparison(op: str, one: Value, two: Value) -> Value:
    """Return `b < a` for `a > b`, and the result of a comparison of two whole numbers."""
    if op in ("GT", "GTE"):
        return build_comparison({"GT": "LT", "GTE": "LTE"}[op], two, one)
    if (numbers := _read_int_pair(one, two)) and op in _COMPARED:
        return TRUE if _COMPARED[op](*numbers) else FALSE
    return Term(op, (one, two))


def build_range(this: Value, low: Value, high: Value) -> Value:
    """Return BETWEEN as two comparisons, unless Spark pads their texts with spaces, and those of BETWEEN not.

    A column of an unknown type counts as no CHAR here: a time is filtered so, and two comparisons show which rows.
    """
    if any(is_padded(value, unknown=False) for value in (this, low, high)):
        return Term("between", (this, low, high))
    return build_conjunction([build_comparison("LTE", low, this), build_comparison("LTE", this, high)])


def build_nullif(this: Value, other: Value) -> Value:
    if is_padded(this) or is_padded(other):
        return Term("nullif", (this, other))
    return build_case([(build_comparison("EQ", this, other), NULL)], this)


def build_arithmetic(op: str, one: Value, two: Value) -> Value:
    """Return the result of an operation on small whole numbers: sum, difference and product are INT too."""
    if numbers := _read_int_pair(one, two):
        result = _ARITHMETIC[op](*numbers)
        if abs(result) <= _INT_MAX:
            return as_constant(int_term(result))
    return Term(op, (one, two))


def as_constant(value: Value) -> Value:
    """Return a literal as a constant that comes from elsewhere than where it is used.

    Next to a decimal, Spark gives a literal 3 the type DECIMAL(1, 0), but 3 from a column or a computation DECIMAL(10,
    0), so the two are different values.
    """
    return Term("constant", (value,)) if isinstance(value, Term) and value.op in ("int", "number", "text") else value


def output_value(value: Value) -> Value:
    """Return a value as an output column, where the origin of a literal does not matter."""
    if isinstance(value, Term) and value.op == "constant":
        (inner,) = _value_parts(value)
        return inner
    return value


def int_term(value: int) -> Term:
    return Term("int", (str(value),))


def build_case(cases: Sequence[tuple[Value, Value]], otherwise: Value) -> Value:
    """Return CASE, IF, NULLIF and NVL2 as conditions and results in order; without ELSE the result is NULL."""
    flat = [part for case in cases for part in case]
    return Term("case", (*flat, otherwise))


def build_cast(value: Value, type_: str, *, safe: bool) -> Value:
    """Return a cast; drop one to the type that the value already has."""
    # The declared type of a table's column may be wrong, so a cast of a column always stays; a computed type is
    # certain.
    computed = value.inner if isinstance(value, Ref) else value
    if isinstance(computed, Term) and type_of(computed) == normalize_type(type_):
        return as_constant(value)
    return Term("try cast" if safe else "cast", (value, type_))


def build_concatenation(parts: Sequence[Value]) -> Value:
    """Return `||` and CONCAT of strings, nested or not, as one operation."""
    nested: list[Value] = []
    for part in parts:
        nested += _value_parts(part) if _is_operation(part, "concat") else [part]
    # Without a string literal they may be arrays, whose types are widened pair by pair: there the nesting matters.
    if not any(_is_operation(operand, "text") for operand in nested):
        return Term("concat", tuple(parts))
    flat: list[Value] = []
    for operand in nested:
        # Only neighbours: a value between two literals keeps them apart.
        if flat and _is_operation(flat[-1], "text") and _is_operation(operand, "text"):
            flat[-1] = Term("text", (text_of(flat[-1]) + text_of(operand),))
        else:
            flat.append(operand)
    return flat[0] if len(flat) == 1 else Term("concat", tuple(flat))


def text_of(value: Value) -> str:
    assert isinstance(value, Term)
    return str(value.parts[0])


def build_exists(block: Block) -> Value:
    """Return EXISTS: a group exists if one of its rows does, so GROUP BY and DISTINCT are removed."""
    while len(block.sources) == 1 and not block.steps and isinstance(block.sources[0], Group):
        group = block.sources[0]
        # Without keys there is one group even of no rows, and HAVING on an aggregate needs the groups.
        early = [ungroup_predicate(group, predicate) for predicate in block.where]
        if group.sets or not group.keys or None in early:
            break
        block = group.block.add_predicates([predicate for predicate in early if predicate])
    return Term("exists", (block,))


def ungroup_predicate(group: Group, predicate: Value) -> Value | None:
    """Return an equality of a key with an outer value over the ungrouped rows, or None for any other predicate."""
    if not isinstance(predicate, Term) or predicate.op != "EQ":
        return None
    sides = [part.inner if isinstance(part, Ref) and part.source is group else part for part in predicate.parts]
    keys = [side for side, part in zip(sides, predicate.parts, strict=True) if side is not part]
    if len(keys) != 1 or not any(keys[0] is key for key in group.keys):
        return None
    one, two = sides
    assert isinstance(one, (Term, Ref))
    assert isinstance(two, (Term, Ref))
    if any(not isinstance(s, str) and group in s.free for s in sides if s is not keys[0]):
        return None
    return build_comparison("EQ", one, two)


def _value_parts(value: Value) -> list[Value]:
    assert isinstance(value, Term)
    return [part for part in value.parts if isinstance(part, (Term, Ref))]


def _is_operation(value: Part, op: str) -> bool:
    return isinstance(value, Term) and value.op == op


def _read_int_pair(*values: Value) -> tuple[int, int] | None:
    plain = [output_value(value) for value in values]
    numbers = [int(str(v.parts[0])) for v in plain if isinstance(v, Term) and v.op == "int"]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None
