"""Random projects and random edits of them, by seed: what the proof by execution runs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from mergeplan.planner.model.model import Model

from .data import TABLES
from .edits import edit_query
from .graphs import Node, Nodes, build_models, nodes, rewritten


@dataclass(frozen=True)
class Case:
    """A project before and after, and what was done to it."""

    seed: int
    before: Mapping[str, Model]
    after: Mapping[str, Model]
    edits: tuple[str, ...]


def _targets(rng: random.Random, found: Nodes) -> list[Node]:
    """The models to edit: mostly one near the top, so that others read it."""
    if rng.random() < 0.6:
        return [rng.choice(found[:2])]
    return rng.sample(found, 2 if rng.random() < 0.4 else 1)


def generate(seed: int) -> Case:
    """A project and an edit of one or two of its models."""
    rng = random.Random(seed)  # noqa: S311 # reproducible, not secret
    old = nodes(rng)
    new, done = old, list[str]()
    for target in _targets(rng, old):
        columns = TABLES | {node.name: node.columns for node in old if node.name < target.name}
        sql, names = edit_query(rng, target.sql, columns)
        done += [f"{target.name}: {name}" for name in names]
        new = rewritten(new, target.name, sql)
    return Case(seed, build_models(old), build_models(new), tuple(done))
