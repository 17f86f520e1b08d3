"""Trees of Spark's parser as values that can be compared and rewritten."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

Field: TypeAlias = "str | int | bool | Node | tuple[Field, ...] | None"


@dataclass(frozen=True)
class Node:
    """A plan or an expression. A field that is a child is its number among the children."""

    kind: str
    fields: tuple[tuple[str, Field], ...]
    children: tuple[Node, ...] = ()

    def get(self, name: str) -> Field:
        """The field of this name; None if the node has none."""
        return dict(self.fields).get(name)

    def replace_fields(self, **fields: Field) -> Node:
        """The node with other values of some fields."""
        return replace(self, fields=tuple((name, fields.get(name, value)) for name, value in self.fields))

    def parts(self) -> Iterator[Node]:
        """The nodes in the fields and the children."""
        yield from (node for _, value in self.fields for node in _nodes(value))
        yield from self.children

    def walk(self) -> Iterator[Node]:
        """The node and all nodes below it."""
        yield self
        for part in self.parts():
            yield from part.walk()

    def map(self, change: Callable[[Node], Node]) -> Node:
        """The node with each of its parts changed."""
        fields = tuple((name, _map_field(value, change)) for name, value in self.fields)
        return Node(self.kind, fields, tuple(map(change, self.children)))


def tree_of_json(text: str) -> Node:
    """The tree of Spark's JSON, in which the nodes stand one after another, each before its children."""
    return _next(iter(json.loads(text)))


def rewritten(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with each node changed, inner ones first."""
    return change(node.map(lambda part: rewritten(part, change)))


def _next(nodes: Iterator[dict[str, Any]]) -> Node:
    own = next(nodes)
    fields = tuple((name, _field(own[name])) for name in sorted(own.keys() - {"class", "num-children"}))
    children = tuple(_next(nodes) for _ in range(own["num-children"]))
    return Node(str(own["class"]).rpartition(".")[2], fields, children)


def _field(value: Any) -> Field:
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "num-children" in value[0]:
            return _next(iter(value))
        return tuple(map(_field, value))
    if isinstance(value, dict):
        return tuple((name.lower(), _field(inner)) for name, inner in sorted(value.items()) if name != "product-class")
    assert value is None or isinstance(value, (str, int, bool))
    return value


def _nodes(value: Field) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _nodes(part)


def _map_field(value: Field, change: Callable[[Node], Node]) -> Field:
    if isinstance(value, Node):
        return change(value)
    return tuple(_map_field(part, change) for part in value) if isinstance(value, tuple) else value
