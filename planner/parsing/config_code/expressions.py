"""The expressions of a config.py: literals, names, texts, mappings, and the calls that are understood."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from mergeplan.planner.parsing.config_code.calls import (
    WITHOUT_RUNNING,
    Call,
    add_values,
    below,
    environment,
    parent,
    read_call,
)
from mergeplan.planner.parsing.config_code.sqlmesh_names import member_named
from mergeplan.planner.parsing.config_code.values import (
    Content,
    Entries,
    FilePath,
    Items,
    Member,
    Unreadable,
    Value,
    build_value,
    join_parts,
    parts_of,
)


@dataclass(frozen=True)
class Imported:
    """What comes from elsewhere, by its full name: `os.environ`, `sqlmesh.Config`, `builtins.str`."""

    name: str


Bound = Value | Imported | Unreadable


@dataclass
class Budget:
    """How many values may still be read: a file may make large ones, and make them often."""

    left: int = 500_000

    def spend(self, value: Value) -> Value:
        """The value, paid for; Unreadable when nothing is left."""
        self.left -= value.size
        if self.left < 0:
            raise Unreadable(value.line, "The file makes too many values.")
        return value


@dataclass(frozen=True)
class Names:
    """What names mean at a statement."""

    bound: MutableMapping[str, Bound]
    budget: Budget


DECIDES = {
    ast.IfExp: "A condition (`... if ... else ...`)",
    ast.BoolOp: "`and` or `or`",
    ast.Compare: "A comparison",
    ast.ListComp: "A comprehension",
    ast.SetComp: "A comprehension",
    ast.DictComp: "A comprehension",
    ast.GeneratorExp: "A comprehension",
    ast.Lambda: "A `lambda`",
    ast.NamedExpr: "`:=`",
}


def read(names: Names, node: ast.expr) -> Value:
    """What an expression is where `names` mean what they do; Unreadable for what only running it would tell."""
    reader = READERS.get(type(node))
    if reader is None:
        what = DECIDES.get(type(node), "An expression that is no plain value")
        raise Unreadable(node.lineno, f"{what} decides the configuration here, {WITHOUT_RUNNING}")
    return names.budget.spend(build_value(reader(names, node), node.lineno))


def full_name(names: Names, node: ast.expr) -> str | None:
    """The full name of what was imported, or of Python itself; None for all else."""
    if isinstance(node, ast.Attribute):
        owner = full_name(names, node.value)
        return owner and f"{owner}.{node.attr}"
    if not isinstance(node, ast.Name):
        return None
    bound = names.bound.get(node.id, Imported(f"builtins.{node.id}"))
    return bound.name if isinstance(bound, Imported) else None


def _constant(_names: Names, node: ast.Constant) -> Content:
    if not isinstance(node.value, str | int | float | None):
        raise Unreadable(node.lineno, f"`{ast.unparse(node)[:40]}` is no value of a configuration.")
    return node.value


def _name(names: Names, node: ast.Name) -> Content:
    if node.id == "__file__":
        return FilePath("config.py", inside=True)
    bound = names.bound.get(node.id)
    if isinstance(bound, Unreadable):
        raise bound
    if bound is None or isinstance(bound, Imported):
        module = bound.name.rpartition(".")[0] if bound else ""
        where = f", imported from `{module}`," if module else ""
        raise Unreadable(node.lineno, f"`{node.id}`{where} decides the configuration here, {WITHOUT_RUNNING}")
    return bound.content


def _attribute(names: Names, node: ast.Attribute) -> Content:
    full = full_name(names, node)
    if full is not None and (member := member_named(full.removesuffix(".value"))) is not None:
        return member if node.attr == "value" else Member(member)
    if full is None and node.attr == "parent" and isinstance(path := read(names, node.value).content, FilePath):
        return parent(path)
    raise Unreadable(node.lineno, f"`{display_name(node)}` decides the configuration here, {WITHOUT_RUNNING}")


def _text(names: Names, node: ast.JoinedStr) -> Content:
    """An f-string; one that begins with the project's folder is a path."""
    values = [_part(names, part) for part in node.values]
    if len(values) > 1 and isinstance(first := values[0].content, FilePath) and first.inside:
        rest = join_parts(tuple(part for value in values[1:] for part in parts_of(value.content, node.lineno)))
        return add_values(values[0], build_value(rest, node.lineno), node.lineno)
    if len(values) == 1 and isinstance(values[0].content, FilePath):
        return values[0].content
    return join_parts(tuple(part for value in values for part in parts_of(value.content, node.lineno)))


def _part(names: Names, node: ast.expr) -> Value:
    if not isinstance(node, ast.FormattedValue):
        return read(names, node)
    if node.format_spec is not None or node.conversion not in (-1, ord("s")):
        raise Unreadable(node.lineno, f"A format within a text decides the configuration here, {WITHOUT_RUNNING}")
    return read(names, node.value)


def _binary(names: Names, node: ast.BinOp) -> Content:
    left, right = read(names, node.left), read(names, node.right)
    if isinstance(node.op, ast.Add):
        return add_values(left, right, node.lineno)
    if isinstance(node.op, ast.Div) and any(isinstance(operand.content, FilePath) for operand in (left, right)):
        path = below(left.content, right.content)
        if path is not None:
            return path
    if isinstance(node.op, ast.BitOr) and _is_mapping(left) and _is_mapping(right):
        return Entries({**_entries(left), **_entries(right)})
    raise Unreadable(node.lineno, f"A calculation decides the configuration here, {WITHOUT_RUNNING}")


def _unary(names: Names, node: ast.UnaryOp) -> Content:
    operand = read(names, node.operand).content
    if isinstance(node.op, ast.USub | ast.UAdd) and isinstance(operand, int | float):
        return -operand if isinstance(node.op, ast.USub) else +operand
    raise Unreadable(node.lineno, f"A calculation decides the configuration here, {WITHOUT_RUNNING}")


def _items(names: Names, node: ast.List | ast.Tuple | ast.Set) -> Content:
    values: list[Value] = []
    for element in node.elts:
        if not isinstance(element, ast.Starred):
            values.append(read(names, element))
            continue
        inner = read(names, element.value).content
        if not isinstance(inner, Items):
            raise Unreadable(element.lineno, "Only a list can be written out with `*`.")
        values += inner.values
    return Items(tuple(values))


def _dict(names: Names, node: ast.Dict) -> Content:
    entries: dict[str | int, tuple[int, Value]] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            entries |= _entries(read(names, value))
        else:
            entries[_key(read(names, key))] = (key.lineno, read(names, value))
    return Entries(entries)


def _key(value: Value) -> str | int:
    key = value.content
    if not isinstance(key, str | int) or isinstance(key, bool):
        raise Unreadable(value.line, "A key must be a plain text.")
    return key


def _is_mapping(value: Value) -> bool:
    return isinstance(value.content, Entries) and not value.content.made_by


def _entries(value: Value) -> Mapping[str | int, tuple[int, Value]]:
    if not isinstance(value.content, Entries) or not _is_mapping(value):
        raise Unreadable(value.line, "Only a mapping can be written out with `**`.")
    return value.content.values


def _subscript(names: Names, node: ast.Subscript) -> Content:
    index = read(names, node.slice)
    if full_name(names, node.value) == "os.environ":
        return environment(Call("os.environ", node.lineno, (index,)))
    owner, at = read(names, node.value).content, index.content
    if isinstance(owner, Entries) and not owner.made_by and isinstance(at, str | int) and at in owner.values:
        return owner.values[at][1].content
    raise Unreadable(node.lineno, f"`{display_name(node)}` decides the configuration here, {WITHOUT_RUNNING}")


def _call(names: Names, node: ast.Call) -> Content:
    name = full_name(names, node.func)
    if name is None:
        return _method(names, node)
    values = _items(names, ast.Tuple(node.args, ast.Load()))
    assert isinstance(values, Items)
    keywords: dict[str | int, tuple[int, Value]] = {}
    for keyword in node.keywords:
        value = read(names, keyword.value)
        more: Mapping[str | int, tuple[int, Value]]
        more = {keyword.arg: (keyword.lineno, value)} if keyword.arg else _entries(value)
        twice = next((key for key in more if key in keywords), None)
        if twice is not None:
            raise Unreadable(keyword.lineno, f"`{twice}` is given twice.")
        keywords |= more
    return read_call(Call(name, node.lineno, values.values, keywords))


def _method(names: Names, node: ast.Call) -> Content:
    """A method of a value: a copy of a mapping, the forms of a path."""
    if isinstance(node.func, ast.Name):
        _name(names, node.func)
    if isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        owner, method = read(names, node.func.value).content, node.func.attr
        if isinstance(owner, Entries) and method == "copy":
            return owner
        forms = ("as_posix", "resolve", "absolute")
        if isinstance(owner, FilePath) and owner.inside and method in forms:
            return owner
    raise Unreadable(
        node.lineno, f"A call of `{display_name(node.func)}` decides the configuration here, {WITHOUT_RUNNING}"
    )


def display_name(node: ast.expr) -> str:
    """A name with its dots as it is written, a call by its name; the beginning of it when it is long."""
    parts: list[str] = []
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value, attr):
                parts.append(f".{attr}")
                node = value
            case ast.Subscript(value):
                parts.append("[...]")
                node = value
            case ast.Call(func):
                parts.append("(...)")
                node = func
            case _:
                break
    start = node.id if isinstance(node, ast.Name) else "..."
    return "".join((start, *reversed(parts)))[:80]


READERS: dict[type[ast.expr], Callable[[Names, Any], Content]] = {
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.Call: _call,
    ast.Constant: _constant,
    ast.Dict: _dict,
    ast.JoinedStr: _text,
    ast.List: _items,
    ast.Name: _name,
    ast.Set: _items,
    ast.Subscript: _subscript,
    ast.Tuple: _items,
    ast.UnaryOp: _unary,
}
