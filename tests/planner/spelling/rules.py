"""Why two texts with unequal plans are one query all the same: the rules of docs/equivalence.md that Spark's optimizer
does not have, each told by the nodes in which the trees of Spark's parser differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

Nodes = Counter[str]  # node of a tree -> how often it occurs
_OWN = ("name", "nameParts", "value", "dataType", "joinType", "multipartIdentifier", "outputNames")
_ONE_FUNCTION = frozenset("locate instr position charindex".split())


def rule(one: str, other: str) -> str:
    """The rule by which two trees, as the parser's JSON, are one query; '' if there is none."""
    first, second = nodes(one), nodes(other)
    gone, come = first - second, second - first
    return next((name for name, applies in RULES.items() if applies(gone, come)), "")


def nodes(tree: str) -> Nodes:
    """The nodes of a tree with what is written in them, their order and nesting aside."""
    found: Nodes = Counter()
    waiting: list[Any] = [json.loads(tree)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            own = [str(part[key]).lower() for key in _OWN if isinstance(part.get(key), (str, dict))]
            if "class" in part:
                found[" ".join([str(part["class"]).rpartition(".")[2], *own])] += 1
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found


def _only(names: str) -> Callable[[Nodes, Nodes], bool]:
    """True where every node that differs is one of these."""
    allowed = tuple(names.split())
    return lambda gone, come: all(node.startswith(allowed) for node in (*gone, *come))


def _is_one_function(gone: Nodes, come: Nodes) -> bool:
    names = {node.removeprefix("UnresolvedFunction ").strip("[]") for node in (*gone, *come)}
    return names <= _ONE_FUNCTION


def _is_cross_join(gone: Nodes, come: Nodes) -> bool:
    kinds = {node.partition("{")[0] for node in (*gone, *come)}
    return kinds == {"Join "} and any("cross" in node for node in (*gone, *come))


RULES: dict[str, Callable[[Nodes, Nodes], bool]] = {
    "operands have no order, and names no case": lambda gone, come: not gone and not come,
    "a column under its own name": _only("Alias"),
    "two names of one function": _is_one_function,
    "CROSS JOIN with a condition is an inner one": _is_cross_join,
    "a generator among the outputs is a LATERAL VIEW": _only(
        "Generate UnresolvedGenerator UnresolvedFunction MultiAlias UnresolvedAttribute SubqueryAlias Alias"
    ),
    "SEMI JOIN is EXISTS": _only(
        "Join Exists Filter Not Project Literal Alias UnresolvedAttribute UnresolvedRelation UsingJoin"
    ),
}
