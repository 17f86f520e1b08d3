"""A tree of lines looks as Rich draws one."""

from __future__ import annotations

import io
import random

import pytest
from rich.console import Console, RenderableType
from rich.text import Text
from rich.tree import Tree

from mergeplan.planner.cli.texts.line_tree import LineTree

WORDS = ("a", "bc ", "`x`", " ", "日", "é", ". ", "word ", "a" * 30)


def make_label(rng: random.Random) -> Text:
    text = "".join(rng.choices(WORDS, k=rng.choice((0, 1, 3, 30, 60)))) + rng.choice(("", "", "", "\nmore", "\ttab"))
    style = rng.choice(("", "bold", "dim", "red"))
    return Text(text, style=style) if rng.random() < 0.5 else Text.assemble(f"{text} ", ("(X)", "bold red"))


def fill(rng: random.Random, ours: LineTree, theirs: Tree, depth: int = 0) -> None:
    for _ in range(rng.randrange(4)):
        label = make_label(rng)
        below = ours.add(label), theirs.add(label)
        if depth < 3:
            fill(rng, *below, depth + 1)


def draw(tree: RenderableType, width: int, *, coloured: bool) -> str:
    file = io.StringIO()
    colours = "standard" if coloured else None
    Console(file=file, width=width, highlight=False, force_terminal=coloured, color_system=colours).print(tree)
    return file.getvalue()


@pytest.mark.parametrize("seed", range(100))
def test_it_is_drawn_as_rich_draws_it(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 # reproducible, not secret
    label, width, coloured = make_label(rng), rng.choice((30, 40, 80, 120)), seed % 2 == 0
    ours, theirs = LineTree(label), Tree(label)
    fill(rng, ours, theirs)

    assert draw(ours, width, coloured=coloured) == draw(theirs, width, coloured=coloured)
