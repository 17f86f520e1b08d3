"""Random projects and random edits of them, by seed: what the proof by execution runs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model

from .data import TABLES
from .edits import edit_query
from .graphs import Node, Nodes, build_models, choose_partitions, nodes, rewritten


@dataclass(frozen=True)
class Case:
    """A project before and after, and what was done to it."""

    seed: int
    before: Mapping[str, Model]
    after: Mapping[str, Model]
    edits: tuple[str, ...]


def _targets(rng: random.Random, graph: Nodes) -> list[Node]:
    """The models to edit: mostly one near the top, so that others read it."""
    if rng.random() < 0.6:
        return [rng.choice(graph[:2])]
    return rng.sample(graph, 2 if rng.random() < 0.4 else 1)


def generate(seed: int) -> Case:
    """A project and an edit of one or two of its models."""
    rng = random.Random(seed)  # noqa: S311 # reproducible, not secret
    old, new, edits, declared = generate_nodes(rng)
    return Case(seed, build_models(old, declared), build_models(new, declared), edits)


def generate_nodes(rng: random.Random) -> tuple[Nodes, Nodes, tuple[str, ...], Mapping[str, int]]:
    """Return the models before and after, what was done, and how many columns of an external table are declared."""
    old = nodes(rng)
    new, done = old, list[str]()
    for target in _targets(rng, old):
        columns = TABLES | {node.name: node.table_columns for node in old if node.name < target.name}
        sql, names = edit_query(rng, target.sql, columns)
        done += [f"{target.name}: {name}" for name in names]
        new = rewritten(new, target.name, sql)
    if rng.random() < 0.2 and (cut := _recut(rng, new)):
        new, done = cut, [*done, "another partitioning"]
    declared = {name: rng.randrange(1, len(columns)) for name, columns in TABLES.items() if rng.random() < 0.12}
    return old, new, tuple(done), declared


def _recut(rng: random.Random, graph: Nodes) -> Nodes:
    """The models with one table partitioned otherwise; () where none is a table of its query."""
    tables = [node for node in graph if node.kind is Kind.FULL]
    if not tables:
        return ()
    one = rng.choice(tables)
    cut = () if one.cut and rng.random() < 0.5 else choose_partitions(rng, one.columns)
    return tuple(replace(node, cut=cut) if node is one else node for node in graph)
