"""Why two texts with unequal plans are one query all the same: the rules of docs/explanation/equivalence.md that
Spark's optimizer does not have. Each rewrites a tree of Spark's parser; a pair is excused only if its rewritten
trees are equal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from .trees import Field, Node, rewritten, tree_of_json

_COMPARISONS = ("In", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual")
_COMMUTATIVE = (
    "EqualTo", "EqualNullSafe", "Add", "Multiply", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
)  # fmt: skip
_TYPES = {
    "boolean": "boolean",
    "int": "integer",
    "bigint": "long",
    "double": "double",
    "string": "string",
    "date": "date",
}
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TURNED = {"GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual"}
_NAMES = ("nameParts", "multipartIdentifier", "name", "identifier", "qualifier", "funcName", "names", "outputNames")
_GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack")
_SAME = {"instr": "locate", "position": "locate", "charindex": "locate", "to_unix_timestamp": "unix_timestamp"}


def rule(one: str, other: str) -> str:
    """The rules by which two trees, as the parser's JSON, are one query; '' if there are none."""
    first, second = tree_of_json(one), tree_of_json(other)
    needed = list(RULES)
    if _form(first, needed) != _form(second, needed):
        return ""
    for name in RULES:
        fewer = [kept for kept in needed if kept != name]
        if _form(first, fewer) == _form(second, fewer):
            needed = fewer
    return "; ".join(needed)


def _form(tree: Node, names: Iterable[str]) -> Node:
    for name in names:
        tree = RULES[name](tree)
    return tree


def without_case(tree: Node) -> Node:
    """The names in lower case, but not those that become the names of a struct's fields."""
    return _lower_node(tree, fields=False)


def _lower_node(node: Node, *, fields: bool) -> Node:
    inside = _function(node) == "struct"
    lowered = node.map(lambda part: _lower_node(part, fields=inside))
    names = {name: _lower(value) for name, value in lowered.fields if name in _NAMES}
    return lowered if fields or node.kind == "Literal" else lowered.replace_fields(**names)


def _lower(value: Field) -> Field:
    if isinstance(value, tuple):
        return tuple(map(_lower, value))
    return value.lower() if isinstance(value, str) else value


def without_fields_of_compared(tree: Node) -> Node:
    """The rows `(a, b)` in comparisons without the names of their fields: they are compared by position."""

    def change(node: Node) -> Node:
        return node.map(_without_fields) if node.kind in _COMPARISONS else node

    return rewritten(tree, change)


def _without_fields(row: Node) -> Node:
    return Node(row.kind, (), row.children[1::2]) if row.kind == "CreateNamedStruct" else row


def sort_operands(tree: Node) -> Node:
    """The operands of AND, OR, =, + and the like, and the keys of a group, in one order."""
    return rewritten(tree, _sort_node)


def _sort_node(node: Node) -> Node:
    if node.kind in ("And", "Or"):
        operands = [inner for part in node.children for inner in (part.children if part.kind == node.kind else (part,))]
        return Node(node.kind, (), tuple(sorted(operands, key=repr)))
    if node.kind in _TURNED:
        return Node(_TURNED[node.kind], node.fields, node.children[::-1])
    if node.kind in _COMMUTATIVE:
        return Node(node.kind, node.fields, tuple(sorted(node.children, key=repr)))
    keys = node.get("groupingExpressions")
    if isinstance(keys, tuple):
        return node.replace_fields(groupingExpressions=tuple(sorted(keys, key=repr)))
    return node


def without_own_names(tree: Node) -> Node:
    """The columns without an alias that is their own name."""

    def change(node: Node) -> Node:
        if node.kind != "Alias" or node.children[0].kind != "UnresolvedAttribute":
            return node
        column = node.children[0]
        return column if _parts(column)[-1:] == [str(node.get("name"))] else node

    return rewritten(tree, change)


def one_function(tree: Node) -> Node:
    """INSTR, POSITION and CHARINDEX of two arguments as LOCATE, TO_UNIX_TIMESTAMP as UNIX_TIMESTAMP."""

    def change(node: Node) -> Node:
        name = _function(node)
        if name not in _SAME or (_SAME[name] == "locate" and len(node.children) != 2):
            return node
        arguments = node.children[::-1] if name == "instr" else node.children
        return Node(node.kind, node.replace_fields(nameParts=f"[{_SAME[name]}]").fields, arguments)

    return rewritten(tree, change)


def type_literals(tree: Node) -> Node:
    """Casts of a literal text to DATE, and of a literal number to DOUBLE, with its sign, as literals of that type."""

    def change(node: Node) -> Node:
        if node.kind not in ("Cast", "UnaryMinus") or node.children[0].kind != "Literal":
            return node
        (literal,) = node.children
        value, before, type_ = str(literal.get("value")), str(literal.get("dataType")), node.get("dataType")
        if node.kind == "UnaryMinus":
            return literal.replace_fields(value=f"-{value}") if before == "double" else node
        if type_ == "date" and before == "string" and _DATE.fullmatch(value):
            return literal.replace_fields(dataType="date")
        if type_ == "double" and before.startswith("decimal"):
            return literal.replace_fields(dataType="double", value=str(float(value)))
        return node

    return rewritten(tree, change)


def casts(tree: Node) -> Node:
    """Calls of a type's name as casts."""

    def change(node: Node) -> Node:
        type_ = _TYPES.get(_function(node), "")
        cast = type_ and len(node.children) == 1
        return Node("Cast", (("child", 0), ("dataType", type_), ("evalMode", None)), node.children) if cast else node

    return rewritten(tree, change)


def separators(tree: Node) -> Node:
    """LISTAGG without a separator that is empty."""
    empty = Node("Literal", (("dataType", "string"), ("value", "")))

    def change(node: Node) -> Node:
        if _function(node) != "listagg":
            return node
        fields = tuple(pair for pair in node.fields if pair[0] not in ("arguments", "orderingWithinGroup"))
        return Node(node.kind, fields, (*node.children[:1], *(part for part in node.children[1:] if part != empty)))

    return rewritten(tree, change)


def additions_of_days(tree: Node) -> Node:
    """DATE_SUB(d, n) as DATE_ADD(d, n * -1)."""

    def change(node: Node) -> Node:
        if _function(node) != "date_sub":
            return node
        date, days = node.children
        minus = Node("Literal", (("dataType", "integer"), ("value", "-1")))
        opposite = Node("Multiply", (("evalContext", None), ("left", 0), ("right", 1)), (days, minus))
        return Node(node.kind, node.replace_fields(nameParts="[date_add]").fields, (date, opposite))

    return rewritten(tree, change)


def units_without_case(tree: Node) -> Node:
    """The units of TIMESTAMPDIFF and DATE_TRUNC in lower case."""

    def change(node: Node) -> Node:
        if node.kind in ("TimestampDiff", "TimestampAdd"):
            return node.replace_fields(unit=_lower(node.get("unit")))
        if _function(node) == "date_trunc" and node.children and node.children[0].kind == "Literal":
            unit, *others = node.children
            return Node(node.kind, node.fields, (unit.replace_fields(value=_lower(unit.get("value"))), *others))
        return node

    return rewritten(tree, change)


def without_last_order(tree: Node) -> Node:
    """The query without the order of its result: the rows of a table have none."""
    while tree.kind in ("Sort", "RepartitionByExpression"):
        tree = tree.children[0]
    return tree


def inner_joins(tree: Node) -> Node:
    """CROSS JOIN as INNER JOIN."""

    def change(node: Node) -> Node:
        cross = node.kind in ("Join", "LateralJoin") and "Cross$" in repr(node.get("joinType"))
        return node.replace_fields(joinType=_join_type("Inner")) if cross else node

    return rewritten(tree, change)


def without_true_conditions(tree: Node) -> Node:
    """A join ON TRUE as one without a condition."""

    def change(node: Node) -> Node:
        condition = node.get("condition")
        is_true = isinstance(condition, Node) and condition.kind == "Literal" and condition.get("value") == "true"
        unconditional = node.kind == "Join" and (condition is None or is_true)
        return Node(node.kind, _without(node, "condition"), node.children) if unconditional else node

    return rewritten(tree, change)


def without_unused_aliases(tree: Node) -> Node:
    """Tables and LATERAL VIEWs without an alias by which no column is qualified."""
    used = {_parts(node)[0].lower() for node in tree.walk() if len(_parts(node)) > 1}
    used |= {_split_list(node.get("target"))[0].lower() for node in tree.walk()}  # of `t.*`

    def change(node: Node) -> Node:
        if node.kind == "Generate" and str(node.get("qualifier")).lower() not in used:
            return Node(node.kind, _without(node, "qualifier"), node.children)
        alias = dict(_pairs(node.get("identifier"))).get("name")
        unused = node.kind == "SubqueryAlias" and str(alias).lower() not in used
        return node.children[0] if unused else node

    return rewritten(tree, change)


def lateral_views(tree: Node) -> Node:
    """A generator among the outputs as LATERAL VIEW, its columns in its place."""
    return rewritten(tree, _lateral_view)


def _lateral_view(node: Node) -> Node:
    outputs = node.get("projectList")
    if node.kind != "Project" or not isinstance(outputs, tuple):
        return node
    generators = [item for item in outputs if isinstance(item, Node) and _generator_names(item)]
    if len(generators) != 1:
        return node
    call, names = generators[0].children[0], _generator_names(generators[0])
    columns = tuple(Node("UnresolvedAttribute", (("nameParts", f"[{name}]"),)) for name in names)
    name = _function(call)
    function = (("funcname", name.removesuffix("_outer")),)
    generator = Node(
        "UnresolvedGenerator", (("children", tuple(range(len(call.children)))), ("name", function)), call.children
    )
    fields: tuple[tuple[str, Field], ...] = (
        ("child", 0), ("generator", generator), ("generatorOutput", columns), ("outer", name.endswith("_outer")),
        ("unrequiredChildIndex", ()),
    )  # fmt: skip
    rows = Node("Generate", fields, node.children)
    listed = tuple(new for item in outputs for new in (columns if item is generators[0] else (item,)))
    return Node("Project", node.replace_fields(projectList=listed).fields, (rows,))


def _generator_names(item: Node) -> list[str]:
    """The names that an output gives to the columns of a generator; none for any other output."""
    if item.kind not in ("Alias", "MultiAlias") or _function(item.children[0]) not in _GENERATORS:
        return []
    return [str(item.get("name"))] if item.kind == "Alias" else _split_list(item.get("names"))


def tests_of_null(tree: Node) -> Node:
    """NOT x IS NULL as x IS NOT NULL."""

    def change(node: Node) -> Node:
        negated = node.kind == "Not" and node.children[0].kind == "IsNull"
        return Node("IsNotNull", node.fields, node.children[0].children) if negated else node

    return rewritten(tree, change)


def _function(node: Node) -> str:
    """The name of a called function in lower case, or the node's kind."""
    return _parts(node)[-1].lower() if node.kind == "UnresolvedFunction" else node.kind


def _parts(node: Node) -> list[str]:
    return _split_list(node.get("nameParts"))


def _pairs(value: Field) -> list[tuple[str, Field]]:
    pairs = value if isinstance(value, tuple) else ()
    return [(str(pair[0]), pair[1]) for pair in pairs if isinstance(pair, tuple) and len(pair) == 2]


def _split_list(value: Field) -> list[str]:
    return str(value or "").strip("[]").split(", ")


def _join_type(name: str) -> Field:
    return (("object", f"org.apache.spark.sql.catalyst.plans.{name}$"),)


def _without(node: Node, name: str) -> tuple[tuple[str, Field], ...]:
    return tuple(pair for pair in node.fields if pair[0] != name)


RULES: dict[str, Callable[[Node], Node]] = {
    "names have no case": without_case,
    "rows are compared by position": without_fields_of_compared,
    "a column under its own name": without_own_names,
    "two names of one function": one_function,
    "a type's name is a cast": casts,
    "a typed literal is a cast": type_literals,
    "LISTAGG puts nothing between": separators,
    "DATE_SUB adds the opposite": additions_of_days,
    "units have no case": units_without_case,
    "the rows of a table have no order": without_last_order,
    "CROSS JOIN is an inner one": inner_joins,
    "a join without a condition is ON TRUE": without_true_conditions,
    "an alias that nothing uses": without_unused_aliases,
    "a generator among the outputs is a LATERAL VIEW": lateral_views,
    "NOT x IS NULL is x IS NOT NULL": tests_of_null,
    "operands have no order": sort_operands,
}
