"""The algebra of a query as text: a query whose parents hold other rows is digested again, and not analysed again.

A text is a list of nodes, each after the nodes that it refers to, so that what is shared stays shared.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mergeplan.planner.semantics.query import sources
from mergeplan.planner.semantics.query.algebra import ROW, Block, LateralJoin, Ref, Relation, Term
from mergeplan.planner.semantics.query.row_order import RowProvenance

_KINDS: tuple[type[Any], ...] = (
    Term, Ref, Block, LateralJoin, Relation,
    sources.TableSource, sources.Sealed, sources.Group, sources.Limit, sources.Generated, sources.Values,
    sources.Full, sources.Union, sources.Compound,
)  # fmt: skip
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_FIELDS = {kind: tuple(field.name for field in fields(kind)) for kind in _KINDS}


def encode_relation(relation: Relation) -> str:
    """Return the text of a relation; raise RecursionError for one that is nested too deep.

    The written query of a group is left out: it counts only for keys with a collation.
    """
    nodes: list[list[Any]] = []
    indexes: dict[int, int] = {id(ROW): -1}

    def encode(value: Any) -> Any:
        if value is None or isinstance(value, str | bool):
            return value
        if isinstance(value, tuple):
            return ["tuple", *map(encode, value)]
        if isinstance(value, frozenset):
            return ["set", *sorted(value)]
        if isinstance(value, Mapping):
            return ["columns", *value, *map(encode, value.values())]
        if isinstance(value, RowProvenance):
            return None
        if id(value) not in indexes:
            kind = type(value)
            node = [_NUMBERS[kind], *(encode(getattr(value, name)) for name in _FIELDS[kind])]
            indexes[id(value)] = len(nodes)
            nodes.append(node)
        return indexes[id(value)]

    encode(relation)
    return json.dumps(nodes, separators=(",", ":"))


def decode_relation(text: str) -> Relation:
    """Return the relation of a text; raise ValueError, TypeError, LookupError or AttributeError for any other text."""
    made: list[Any] = []

    def decode(value: Any) -> Any:
        if type(value) is int:
            return ROW if value == -1 else made[value]
        if not isinstance(value, list):
            return value
        tag, *values = value
        if tag == "columns":
            half = len(values) // 2
            return dict(zip(values[:half], map(decode, values[half:]), strict=True))
        return frozenset(values) if tag == "set" else tuple(map(decode, values))

    for number, *values in json.loads(text):
        kind = _KINDS[number]
        node = object.__new__(kind)
        node.__dict__.update(zip(_FIELDS[kind], map(decode, values), strict=True))
        made.append(node)
    relation = made[-1]
    if not isinstance(relation, Relation):
        raise TypeError(text)
    return relation
