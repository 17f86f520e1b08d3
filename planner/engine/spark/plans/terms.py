"""An optimised plan of Spark's as one term, in which what may change places is sorted: named rules, each one proved.

A term names every column by what it is computed of, down to the columns of empty tables. A plan with anything that is
not listed here has no term: then only Spark's own comparison counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mergeplan.planner.fingerprint import digest

DISTINCT = "distinct-twice"
RULES: tuple[str, ...] = (
    "projection", "join-order", "outer-join-sides", "group-order", "union-order", "in-as-ors", "if-as-case",
    "null-filters", "constant-keys", "distribution", "no-rows",
    DISTINCT,
)  # fmt: skip
Term = tuple[Any, ...]
NONE = frozenset[Term]()
_SKIPPED = frozenset(
    ("class", "num-children", "exprId", "resultId", "qualifier", "nonInheritableMetadataKeys", "metadata", "nullable")
)
# Where no `try_` stands, a session's setting decides on `evalMode` and `evalContext`.
_MAY_BE_NULL = frozenset(("filter", "timeZoneId", "elseValue", "evalContext", "evalMode"))
_SORTED = frozenset(("EqualTo", "EqualNullSafe", "Add", "Multiply", "BitwiseAnd", "BitwiseOr"))
_TURNED = {"GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual"}
# Types of which equal values are the same one, unless a text has a collation.
_EXACT = ("integer", "long", "short", "byte", "boolean", "date", "timestamp", "decimal", "string", "binary")
# Functions whose result depends on the order of rows, or differs each time.
_BY_ORDER = frozenset(
    "First Last CollectList CollectSet ListAgg AnyValue Nondeterministic Rand Randn Uuid Shuffle "
    "MonotonicallyIncreasingID SparkPartitionID ScalaUDF PythonUDF".split()
)


class NoTermError(Exception):
    """A plan has a part that no rule covers."""


UNREADABLE = (NoTermError, KeyError, IndexError, TypeError, ValueError, RecursionError)


@dataclass(frozen=True)
class PlanText:
    """A plan as Spark's JSON, and the ids of its outputs, which that does not always tell."""

    json: str
    outputs: tuple[int, ...]


def common_term(first: PlanText, second: PlanText, allowed: Sequence[str] = RULES) -> tuple[str, ...] | None:
    """Return the rules by which two plans are one, as few as suffice; None if they are not one."""
    with suppress(*UNREADABLE):
        plans = [(_read_tree(json.loads(plan.json)), plan.outputs) for plan in (first, second)]
        if not _are_one(plans, frozenset(allowed)):
            return None
        needed = set(allowed)
        for rule in allowed:
            if _are_one(plans, frozenset(needed - {rule})):
                needed.discard(rule)
        return tuple(rule for rule in RULES if rule in needed) or RULES[:1]
    return None


def _are_one(plans: Sequence[tuple[Node, tuple[int, ...]]], rules: frozenset[str]) -> bool:
    with suppress(*UNREADABLE):
        one, two = (_Reader(rules).plan_term(plan, outputs) for plan, outputs in plans)
        return one == two
    return False


@dataclass(frozen=True)
class Node:
    """A node of a plan or an expression, with the nodes below it."""

    name: str
    fields: Mapping[str, Any]
    children: tuple[Node, ...]


def _read_tree(listed: Sequence[Mapping[str, Any]]) -> Node:
    nodes = iter(listed)

    def read() -> Node:
        fields = next(nodes)
        children = tuple(read() for _ in range(fields["num-children"]))
        return Node(fields["class"].rpartition(".")[2], fields, children)

    return read()


@dataclass(frozen=True)
class _Block:
    """The rows of multiplied factors, restricted by conditions.

    `values` are columns by id, `outputs` their order; None if Spark's JSON does not tell which columns are passed on.
    """

    factors: tuple[Term, ...]
    conditions: frozenset[Term]
    values: Mapping[int, Term] = field(default_factory=dict)
    outputs: tuple[int, ...] | None = ()

    @property
    def columns(self) -> tuple[Term, ...]:
        """The values of the outputs; NoTermError if they are not known."""
        if self.outputs is None:
            raise NoTermError
        return tuple(self.values[output] for output in self.outputs)


class _Reader:
    """A reader of one plan under some rules; tables are numbered in the order of their appearance."""

    def __init__(self, rules: frozenset[str]) -> None:
        self._rules = rules
        self._met: dict[str, int] = {}

    def plan_term(self, plan: Node, outputs: tuple[int, ...] | None = None) -> Term:
        block = self._plan_block(plan)
        if outputs is not None:
            block = replace(block, outputs=outputs)
        return (*self._rows_term(block), *block.columns)

    def _rows_term(self, block: _Block) -> Term:
        factors = sorted(block.factors, key=repr) if "join-order" in self._rules else block.factors
        if len(set(block.factors)) < len(block.factors):
            raise NoTermError  # one could be taken for the other
        return ("rows", *factors, "where", *sorted(self._without_implied(block.conditions), key=repr))

    def _without_implied(self, conditions: frozenset[Term], further: frozenset[Term] = NONE) -> frozenset[Term]:
        """Return the conditions without those that exclude a NULL which another one excludes anyway."""
        if "null-filters" not in self._rules:
            return conditions
        refused = {operand for condition in conditions | further for operand in _refuses_null(condition)}
        return frozenset(c for c in conditions if not (c[0] == "IsNotNull" and c[2] in refused))

    def _plan_block(self, plan: Node) -> _Block:
        reader: Callable[[Node], _Block] | None = getattr(self, f"_read_{plan.name.lower()}", None)
        if reader is None:
            raise NoTermError(plan.name)
        return reader(plan)

    def _read_logicalrdd(self, plan: Node) -> _Block:
        output = [_read_tree(column).fields for column in plan.fields["output"]]
        table = str(output[0]["name"])
        number = self._met[table] = self._met.get(table, 0) + 1
        values = {_expression_id(column): ("column", table, number, column["name"]) for column in output}
        return _Block((("table", table, number),), frozenset(), values, tuple(values))

    def _read_localrelation(self, plan: Node) -> _Block:
        """Return the block of a relation without rows: `comparing` asks of no plan that has one with rows."""
        if "no-rows" not in self._rules:
            raise NoTermError(plan.name)
        output = [_read_tree(column).fields for column in plan.fields["output"]]
        values: dict[int, Term] = {_expression_id(column): ("of no row", repr(column["dataType"])) for column in output}
        return _Block((("no rows",),), frozenset(), values, tuple(values))

    def _read_project(self, plan: Node) -> _Block:
        below = self._plan_block(plan.children[0])
        values, outputs = self._output_terms(plan.fields["projectList"], below)
        if "projection" not in self._rules:
            rows = self._make_factor(("project", self._rows_term(below), *(values[output] for output in outputs)))
            return _Block((rows,), frozenset(), values, outputs)
        return _Block(below.factors, below.conditions, values, outputs)

    def _read_filter(self, plan: Node) -> _Block:
        below = self._plan_block(plan.children[0])
        conditions = below.conditions | self._split_conjuncts(plan.fields["condition"], below.values)
        return _Block(below.factors, conditions, below.values, below.outputs)

    def _read_join(self, plan: Node) -> _Block:
        kind = plan.fields["joinType"]["object"].rpartition(".")[2].rstrip("$")
        left, right = plan.children
        if kind in ("LeftSemi", "LeftAnti") and DISTINCT in self._rules:
            right = _drop_distinct(right)
        left_block, right_block = map(self._plan_block, (left, right))
        values = {**left_block.values, **right_block.values}
        condition = plan.fields.get("condition")
        on = self._split_conjuncts(condition, values) if condition else frozenset()
        outputs = (
            None
            if left_block.outputs is None or right_block.outputs is None
            else (*left_block.outputs, *right_block.outputs)
        )
        if kind in ("Inner", "Cross"):
            conditions = left_block.conditions | right_block.conditions | on
            return _Block((*left_block.factors, *right_block.factors), conditions, values, outputs)
        if kind in ("LeftSemi", "LeftAnti"):
            matched = replace(right_block, conditions=self._without_implied(right_block.conditions, on))
            match_term = (kind, self._rows_term(matched), *sorted(on, key=repr))
            left_conditions = (
                self._without_implied(left_block.conditions, on) if kind == "LeftSemi" else left_block.conditions
            )
            return _Block(left_block.factors, left_conditions | {match_term}, left_block.values, left_block.outputs)
        return self._outer_join(kind, (left_block, right_block), on, outputs)

    def _outer_join(
        self, kind: str, sides: tuple[_Block, _Block], on: frozenset[Term], outputs: tuple[int, ...] | None
    ) -> _Block:
        turned = "outer-join-sides" in self._rules
        one, two = map(self._rows_term, sides)
        if kind == "RightOuter" and turned:
            kind, one, two, sides = "LeftOuter", two, one, (sides[1], sides[0])
        if kind == "FullOuter" and turned:
            one, two = sorted((one, two), key=repr)
        if kind not in ("LeftOuter", "RightOuter", "FullOuter"):
            raise NoTermError(kind)
        factor = self._make_factor((kind, one, two, *sorted(on, key=repr)))
        may_be_null = {"LeftOuter": (1,), "RightOuter": (0,), "FullOuter": (0, 1)}[kind]
        values = {
            id_: ("or null", factor[1], value) if side in may_be_null else ("of", factor[1], value)
            for side, block in enumerate(sides)
            for id_, value in block.values.items()
        }
        return _Block((factor,), frozenset(), values, outputs)

    def _read_aggregate(self, plan: Node) -> _Block:
        is_distinct = _is_distinct(plan) and DISTINCT in self._rules
        below = self._plan_block(_drop_distinct(plan.children[0]) if is_distinct else plan.children[0])
        keys = [self._value_term(listed, below.values) for listed in plan.fields["groupingExpressions"]]
        keys = sorted(set(keys), key=repr) if "group-order" in self._rules else keys
        if "constant-keys" in self._rules:
            keys = [key for key in keys if key[0] != "Literal"] or keys
        factor = self._make_factor(("groups", self._rows_term(below), *keys))
        values, outputs = self._output_terms(plan.fields["aggregateExpressions"], below)
        return _Block((factor,), frozenset(), {i: ("of group", factor[1], v) for i, v in values.items()}, outputs)

    def _read_repartitionbyexpression(self, plan: Node) -> _Block:
        if "distribution" not in self._rules:
            raise NoTermError
        return self._plan_block(plan.children[0])

    def _read_union(self, plan: Node) -> _Block:
        if plan.fields.get("byName"):
            raise NoTermError
        branches = [_Reader(self._rules)._plan_block(child) for child in plan.children]
        terms = [(self._rows_term(branch), branch.columns) for branch in branches]
        order = sorted(terms, key=lambda term: repr(term)) if "union-order" in self._rules else terms
        factor = self._make_factor(("union", *(rows for rows, _ in order), *(values for _, values in order)))
        columns = zip(*(values for _, values in order), strict=True)
        outputs = branches[0].outputs or ()
        values = {i: ("of union", factor[1], *column) for i, column in zip(outputs, columns, strict=True)}
        return _Block((factor,), frozenset(), values, outputs)

    def _read_window(self, plan: Node) -> _Block:
        below = self._plan_block(plan.children[0])
        values, outputs = self._output_terms(plan.fields["windowExpressions"], below)
        rows = self._rows_term(below)
        windows = {id_: ("over", digest(repr(rows)), value) for id_, value in values.items()}
        every = None if below.outputs is None else (*below.outputs, *outputs)
        return _Block(below.factors, below.conditions | {("window over", rows)}, {**below.values, **windows}, every)

    def _read_generate(self, plan: Node) -> _Block:
        below = self._plan_block(plan.children[0])
        generator = self._value_term(plan.fields["generator"], below.values)
        factor = self._make_factor(("generate", self._rows_term(below), generator, plan.fields["outer"]))
        made = [_expression_id(_read_tree(column).fields) for column in plan.fields["generatorOutput"]]
        values: dict[int, Term] = {id_: ("of", factor[1], value) for id_, value in below.values.items()}
        values |= {id_: ("made", factor[1], number) for number, id_ in enumerate(made)}
        return _Block((factor,), frozenset(), values, None)

    def _make_factor(self, term: Term) -> Term:
        return (term[0], digest(repr(term)), term)

    def _output_terms(self, listed: Sequence[Any], below: _Block) -> tuple[dict[int, Term], tuple[int, ...]]:
        nodes = [_read_tree(expression) for expression in listed]
        ids = tuple(_expression_id(node.fields) for node in nodes)
        return {id_: self._expression_term(node, below.values, {}) for id_, node in zip(ids, nodes, strict=True)}, ids

    def _value_term(self, listed: Any, values: Mapping[int, Term]) -> Term:
        return self._expression_term(_read_tree(listed), values, {})

    def _split_conjuncts(self, listed: Any, values: Mapping[int, Term]) -> frozenset[Term]:
        term = self._value_term(listed, values)
        return frozenset(term[1:]) if term[0] == "And" else frozenset((term,))

    def _expression_term(self, node: Node, values: Mapping[int, Term], variables: dict[int, int]) -> Term:
        if node.name in _BY_ORDER:
            raise NoTermError(node.name)
        if node.name == "AttributeReference":
            return values[_expression_id(node.fields)]
        if node.name == "NamedLambdaVariable":
            return ("variable", variables.setdefault(_expression_id(node.fields), len(variables)))
        if node.name == "ScalarSubquery" and not node.children:
            return ("scalar", _Reader(self._rules).plan_term(_read_tree(node.fields["plan"])))
        parts = tuple(self._expression_term(child, values, variables) for child in node.children)
        if node.name == "Alias":
            return parts[0]
        return self._combine_parts(node, parts)

    def _combine_parts(self, node: Node, parts: tuple[Term, ...]) -> Term:
        name = node.name
        if name in ("And", "Or"):
            return _flatten_term(name, parts)
        if name in _TURNED:
            name, parts = _TURNED[name], (parts[1], parts[0])
            return (name, *parts)
        if name in ("LessThan", "LessThanOrEqual"):
            return (name, *parts)
        if name == "In" and "in-as-ors" in self._rules and len(parts) > 1:
            equal = [("EqualTo", (), *sorted((parts[0], item), key=repr)) for item in parts[1:]]
            return _flatten_term("Or", tuple(equal))
        if name == "Not" and parts[0][0] == "Or" and "in-as-ors" in self._rules:
            return _flatten_term("And", tuple(("Not", (), part) for part in parts[0][1:]))
        if name in ("If", "CaseWhen") and "if-as-case" in self._rules:
            return _case_term(name, node, parts)
        if name == "WindowSpecDefinition" and "group-order" in self._rules:
            number = len(node.fields["partitionSpec"])
            parts = (*sorted(parts[:number], key=repr), *parts[number:])
        if name in _SORTED:
            parts = tuple(sorted(parts, key=repr))
        return (name, _own_fields(node), *parts)


def _is_distinct(plan: Node) -> bool:
    """Return True if an aggregation returns each row of its keys once, and nothing else.

    False for keys of which two may be equal and not the same, such as 0.0 and -0.0.
    """
    keys, listed = plan.fields["groupingExpressions"], plan.fields["aggregateExpressions"]
    nodes = (node["class"] for expression in listed for node in expression)
    is_exact = all(str(key[0].get("dataType")).startswith(_EXACT) for key in keys)
    return bool(keys) and is_exact and not any(name.endswith(".AggregateExpression") for name in nodes)


def _drop_distinct(plan: Node) -> Node:
    """Return a plan with the same rows, for a reader to whom it does not matter how often each of them comes."""
    if plan.name == "Aggregate" and _is_distinct(plan):
        fields = {**plan.fields, "projectList": plan.fields["aggregateExpressions"]}
        return Node("Project", fields, (_drop_distinct(plan.children[0]),))
    if plan.name in ("Project", "Filter", "Union"):
        return replace(plan, children=tuple(map(_drop_distinct, plan.children)))
    return plan


def _flatten_term(name: str, parts: tuple[Term, ...]) -> Term:
    """Return an AND or an OR of all its nested parts, each once."""
    every = {inner for part in parts for inner in (part[1:] if part[0] == name else (part,))}
    return (name, *sorted(every, key=repr)) if len(every) > 1 else next(iter(every))


def _refuses_null(condition: Term) -> Iterator[Term]:
    """Yield what is not NULL wherever the condition holds."""
    if condition[0] in ("EqualTo", "LessThan", "LessThanOrEqual"):
        yield from (part for part in condition[1:] if part and part[0] != "Literal")
    elif condition[0] == "Not" and condition[-1][0] in ("EqualTo", "LessThan", "LessThanOrEqual"):
        yield from _refuses_null(condition[-1])
    elif condition[0] == "Or":
        refused = [set(_refuses_null(part)) for part in condition[1:]]
        yield from set.intersection(*refused)


def _case_term(name: str, node: Node, parts: tuple[Term, ...]) -> Term:
    """Return an IF or a CASE as its branches; no ELSE and ELSE NULL are one."""
    if name == "CaseWhen" and node.fields.get("elseValue") is None:
        return ("case", *parts, "else null")
    last = parts[-1]
    if last[0] == "Literal" and last[1][-1][1] == "None":
        return ("case", *parts[:-1], "else null")
    return ("case", *parts)


def _own_fields(node: Node) -> tuple[tuple[str, str], ...]:
    """Return a node's fields besides its children; raise NoTermError if Spark's JSON leaves one out."""
    skipped = _SKIPPED | {"left", "right", "child"}  # the children stand in that order
    fields = [(key, value) for key, value in sorted(node.fields.items()) if key not in skipped]
    if any(value is None and key not in _MAY_BE_NULL and node.name != "Literal" for key, value in fields):
        raise NoTermError(node.name)
    return tuple((key, repr(value)) for key, value in fields)


def _expression_id(fields: Mapping[str, Any]) -> int:
    return int(fields["exprId"]["id"])
