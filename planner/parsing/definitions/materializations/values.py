"""The values in the code of a custom materialization, read from its syntax tree; nothing of it is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from mergeplan.planner.parsing.definitions.materializations.names import Names, is_harmless

_IDENTIFIER = re.compile(r"\w+")
_PLAIN = (str, int, float, bool, type(None))
_METHODS = ("split", "strip", "lower", "upper")  # of strings
_COLUMN = frozenset(
    f"@{module}.{name}"
    for module in ("sqlglot", "sqlglot.exp", "sqlglot.expressions")
    for name in ("column", "to_column", "to_identifier", "parse_one")
)
_FIELDS = "@sqlmesh.utils.pydantic.list_of_fields_validator"
_STRING = ("@sqlmesh.utils.pydantic.validate_string", "@str")
PROPERTIES = ("model.custom_materialization_properties", "model.kind.materialization_properties")
TARGET, SOURCE = "columns of the table", "columns of the query"


@dataclass(frozen=True)
class RunValue:
    """A value that the code does not make itself, by its path: `model.partitioned_by`; imports begin with `@`."""

    path: str


class NotUnderstood(Exception):
    """A part of the code that is none of the known writes, with its line and the reason."""

    def __init__(self, node: ast.AST, why: str) -> None:
        super().__init__(why)
        self.line: int = getattr(node, "lineno", 0)
        self.why = why


Value = str | int | float | bool | None | exp.Expr | RunValue | tuple["Value", ...] | Mapping[str, "Value"]
_OF_MODEL: dict[str, Value] = {
    "self._get_target_and_source_columns": (RunValue(TARGET), RunValue(SOURCE)),
    "model.render_merge_filter": None,  # only a kind of SQLMesh's own has a filter
}


@dataclass(frozen=True)
class Scope:
    """The meanings of names at a statement: of the file, of the `materialization_properties`, and local names."""

    names: Names
    properties: Mapping[str, Value]
    local: Mapping[str, Value] = field(default_factory=dict)

    def having(self, local: Mapping[str, Value]) -> Scope:
        return replace(self, local=local)


def code_excerpt(node: ast.AST) -> str:
    text = ast.unparse(node).partition("\n")[0]
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"


def value_of(node: ast.expr, scope: Scope) -> Value:
    """Return the value of an expression; raise NotUnderstood if it cannot be read."""
    match node:
        case ast.Constant(value=str() | int() | float() | bool() | None as plain):
            return plain
        case ast.Name(id=name):
            return _resolve_name(node, name, scope)
        case ast.Attribute(value=of, attr=name):
            return _resolve_attribute(node, value_of(of, scope), name, scope)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return tuple(value_of(element, scope) for element in items)
        case ast.Subscript(value=of, slice=key):
            return _resolve_item(node, value_of(of, scope), value_of(key, scope))
        case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[key, *more], keywords=[]) if len(more) < 2:
            default = value_of(more[0], scope) if more else None
            return _resolve_item(node, value_of(of, scope), value_of(key, scope), default)
        case ast.Call():
            return _resolve_call(node, scope)
        case ast.ListComp() | ast.GeneratorExp():
            return _resolve_comprehension(node, scope)
        case ast.BoolOp(op=op, values=values):
            *operands, last = values
            for operand in operands:
                value = value_of(operand, scope)
                if is_truthy(operand, value) is isinstance(op, ast.Or):
                    return value
            return value_of(last, scope)
        case ast.UnaryOp(op=ast.Not(), operand=of):
            return not is_truthy(of, value_of(of, scope))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compare_values(node, op, value_of(left, scope), value_of(right, scope))
    raise _unknown_value(node)


def is_truthy(node: ast.AST, value: Value) -> bool:
    """Return True if a value counts as true; raise NotUnderstood if it is not known before the model runs."""
    if isinstance(value, RunValue):
        raise NotUnderstood(node, f"{code_excerpt(node)} is not known before the model runs")
    return bool(value)


def column_names(node: ast.AST, value: Value) -> tuple[str, ...]:
    """Return the names of the columns in a list of expressions; raise NotUnderstood for anything else."""
    if isinstance(value, exp.Expr):
        value = tuple(value.expressions) if isinstance(value, exp.Tuple | exp.Array) else (value.unnest(),)
    items = value if isinstance(value, tuple) else ()
    names = [item.name if isinstance(item, exp.Column) and not item.table else item for item in items]
    if not names or not all(isinstance(name, str) and _IDENTIFIER.fullmatch(name) for name in names):
        raise NotUnderstood(node, f"{code_excerpt(node)} is not a list of columns")
    return tuple(map(str, names))


def _unknown_value(node: ast.AST) -> NotUnderstood:
    return NotUnderstood(node, f"{code_excerpt(node)} is no value that mergeplan reads")


def _resolve_name(node: ast.AST, name: str, scope: Scope) -> Value:
    if name in scope.local:
        return scope.local[name]
    if name in scope.names.imports:
        return RunValue(f"@{scope.names.imports[name]}")
    if name in scope.names.constants:
        return value_of(scope.names.constants[name], scope.having({}))
    if name in ("str", "list", "tuple") and name not in scope.names.bound:
        return RunValue(f"@{name}")
    raise _unknown_value(node)


def _resolve_attribute(node: ast.AST, container: Value, name: str, scope: Scope) -> Value:
    match container:
        case RunValue(path=path):
            if f"{path}.{name}" in PROPERTIES:
                return scope.properties
            if path == "model.kind" and name in scope.names.hoisted:
                return value_of(scope.names.hoisted[name], scope.having({"self": RunValue("model.kind")}))
            return RunValue(f"{path}.{name}")
        case exp.Column() | exp.Literal() if name == "name":
            return container.name
        case exp.Tuple() | exp.Array() if name == "expressions":
            return tuple(container.expressions)
    raise _unknown_value(node)


def _resolve_item(node: ast.AST, container: Value, key: Value, *default: Value) -> Value:
    match container, key:
        case RunValue(path="kwargs"), str():
            return RunValue(key)  # SQLMesh passes every known argument
        case Mapping(), str():
            if key not in container and not default:
                raise NotUnderstood(node, f"{code_excerpt(node)} is not among the model's `materialization_properties`")
            return container.get(key, *default)
        case tuple(), int() if not default and -len(container) <= key < len(container):
            return container[key]
    raise _unknown_value(node)


def _resolve_call(node: ast.Call, scope: Scope) -> Value:
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and not node.keywords:
        of, arguments = value_of(node.func.value, scope), [value_of(argument, scope) for argument in node.args]
        if isinstance(of, str) and all(isinstance(argument, str) for argument in arguments):
            try:
                result = getattr(of, node.func.attr)(*arguments)
            except (TypeError, ValueError):
                raise _unknown_value(node) from None
            return tuple(result) if isinstance(result, list) else str(result)
    called = value_of(node.func, scope)
    path = called.path if isinstance(called, RunValue) else ""
    if path in _OF_MODEL and all(is_harmless(argument, scope.names) for argument in (*node.args, *node.keywords)):
        return _OF_MODEL[path]
    if not node.args or isinstance(node.args[0], ast.Starred) or not path:
        raise _unknown_value(node)
    first = value_of(node.args[0], scope)
    if path == "self.adapter.columns" and first == RunValue("table_name"):
        return RunValue(TARGET)
    if path == _FIELDS and isinstance(first, str | tuple | exp.Expr):
        names = column_names(node.args[0], (first,) if isinstance(first, str) else first)
        return tuple(map(exp.column, names))
    if len(node.args) > 1 or any(keyword.arg != "quoted" for keyword in node.keywords):
        raise _unknown_value(node)
    if path in _COLUMN and isinstance(first, str) and _IDENTIFIER.fullmatch(first):
        return exp.column(first)
    if path in _STRING and isinstance(first, str | exp.Column | exp.Literal):
        return first if isinstance(first, str) else first.sql() if path == "@str" else first.name
    if path in ("@list", "@tuple") and isinstance(first, tuple):
        return first
    raise _unknown_value(node)


def _resolve_comprehension(node: ast.ListComp | ast.GeneratorExp, scope: Scope) -> Value:
    match node.generators:
        case [ast.comprehension(target=ast.Name(id=name), iter=source, ifs=[], is_async=0)]:
            sequence = value_of(source, scope)
            if isinstance(sequence, tuple):
                return tuple(value_of(node.elt, scope.having({**scope.local, name: element})) for element in sequence)
    raise _unknown_value(node)


def _compare_values(node: ast.AST, op: ast.cmpop, left: Value, right: Value) -> bool:
    if isinstance(op, ast.Is | ast.IsNot) and right is None and not isinstance(left, RunValue):
        return (left is None) is isinstance(op, ast.Is)
    if isinstance(left, _PLAIN) and isinstance(right, _PLAIN) and isinstance(op, ast.Eq | ast.NotEq):
        return (left == right) is isinstance(op, ast.Eq)
    if isinstance(left, str) and isinstance(right, Mapping) and isinstance(op, ast.In | ast.NotIn):
        return (left in right) is isinstance(op, ast.In)
    raise _unknown_value(node)
