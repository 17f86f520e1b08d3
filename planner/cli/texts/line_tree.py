"""A tree whose labels are mostly lines, drawn like Rich's, which computes the wrapping of each label again.

A plan names every model downstream, and a line that fits is written as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text
from rich.tree import Tree

GAP, LINE, FORK, END = Tree.TREE_GUIDES[0]


class LineTree:
    def __init__(self, label: Text) -> None:
        self.label = label
        self.children: list[LineTree] = []

    def add(self, label: Text) -> LineTree:
        child = LineTree(label)
        self.children.append(child)
        return child

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.ascii_only or options.legacy_windows:  # other guides
            tree = Tree(self.label)
            waiting = [(self, tree)]
            while waiting:
                line_tree, rich_tree = waiting.pop()
                waiting += [(child, rich_tree.add(child.label)) for child in line_tree.children]
            yield tree
            return
        for guide, below, label in self._walk_labels():
            width = options.max_width - len(guide)
            if 0 < width >= label.cell_len and "\n" not in label.plain and "\t" not in label.plain:
                text = label.render(console) if label.spans else [Segment(label.plain, console.get_style(label.style))]
                yield from (Segment(guide), *text, Segment.line())
                continue
            for line in console.render_lines(label, options.update(width=width, height=None), pad=False):
                yield from (Segment(guide), *line, Segment.line())
                guide = below

    def _walk_labels(self) -> Iterator[tuple[str, str, Text]]:
        waiting = [("", "", self)]  # a tree may be deeper than a stack
        while waiting:
            guide, below, tree = waiting.pop()
            yield guide, below, tree.label
            last = len(tree.children) - 1
            waiting += [
                (f"{below}{END if number == last else FORK}", f"{below}{GAP if number == last else LINE}", child)
                for number, child in reversed([*enumerate(tree.children)])
            ]
