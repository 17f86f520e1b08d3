"""Spark's `EXPLAIN FORMATTED` as trees of operators; a text of an unknown form is not understood.

The text is a tree of names and numbers, then a block of details for each number. Subqueries follow, each with its own
tree. A query cannot write the names of operators, but details contain its literals. So two blocks of one number, or two
details of one name, are no plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

HEAD = "== Physical Plan ==\n"
SUBQUERIES = "\n===== Subqueries =====\n"
DEEPEST = 300  # levels of a tree
# Each level is drawn with three characters; a star says that code is generated for the operator.
_LINE = re.compile(r"(?P<drawn>(?:(?::  |   )*(?::- |\+- ))?)(?:\* )?(?P<name>\S(?:.*?\S)??) *\((?P<id>\d{1,9})\)")
_BLOCK = re.compile(r"^\((\d{1,9})\) ", re.M)
_DETAIL = re.compile(r"^([A-Z][A-Za-z ]*?) ?(?:\[\d+\])?: ?", re.M)
_REUSES = re.compile(r"\[Reuses operator id: (\d{1,9})\]")
_SUBQUERY = re.compile(r"\bSubquery [\w-]+#\d+")
_HOST = re.compile(r"operator id = (\d{1,9})\b")


class NotUnderstood(Exception):
    """A plan of an unknown form; the message says which part is unknown."""


@dataclass(frozen=True)
class Operator:
    """A step of a plan, such as `Scan parquet shop.orders`, with its block of details and the inputs of its rows."""

    id: int
    name: str
    text: str = ""
    inputs: tuple[Operator, ...] = ()
    reuses: int | None = None  # the number of the exchange whose rows it takes

    @property
    def details(self) -> Mapping[str, str]:
        """Its details by name, as `Arguments`; NotUnderstood if a name occurs twice."""
        titles = _split_titles(_DETAIL, self.text)
        values = {name: detail.strip() for name, detail in titles}
        if len(values) < len(titles):
            raise NotUnderstood(f"two details of one name in `{self.name.split()[0]}`")
        return values

    def steps(self) -> Iterator[Operator]:
        yield self
        for operator in self.inputs:
            yield from operator.steps()


@dataclass(frozen=True)
class Explained:
    """The trees of a plan: of the query, and of the subqueries that it contains itself.

    `runtime_pruned` are the scans whose partitions the rows of another table choose while the query runs.
    """

    trees: tuple[Operator, ...]
    runtime_pruned: frozenset[int] = frozenset()

    def steps(self) -> Iterator[Operator]:
        for tree in self.trees:
            yield from tree.steps()


def parse_explain(text: str) -> Explained:
    """Return the plan that Spark explains; raise NotUnderstood for any other text, such as that of a refused query."""
    if not text.startswith(HEAD):
        raise NotUnderstood("no physical plan")
    main, _, subqueries = text.partition(SUBQUERIES)
    drawn, pruned = {"": _first_paragraph(main[len(HEAD) :])}, set()
    for part in re.split(r"^Subquery:\d+ Hosting ", subqueries, flags=re.M)[1:]:
        hosting, _, tree = part.partition("\n")
        host = _HOST.match(hosting)
        if host is None:
            raise NotUnderstood("a subquery without a host")
        if "dynamicpruning" in hosting:  # it returns the rows of a join's other side
            pruned.add(int(host[1]))
        elif "ReusedSubquery" not in hosting:  # one that several operators ask for is listed with each of them
            named = _SUBQUERY.search(hosting)
            drawn.setdefault(named[0] if named else hosting, _first_paragraph(tree))
    blocks = _split_blocks(text)
    trees = [_parse_tree(drawing, blocks) for drawing in drawn.values()]
    return Explained(tuple(tree for tree in trees if not _is_runtime_filter(tree)), frozenset(pruned))


def _first_paragraph(text: str) -> str:
    return text.partition("\n\n")[0]


def _split_blocks(text: str) -> Mapping[int, str]:
    titles = _split_titles(_BLOCK, text)
    blocks = {int(number): _first_paragraph(block) for number, block in titles}
    if len(blocks) < len(titles):
        raise NotUnderstood("two operators of one number")
    return blocks


def _split_titles(title: re.Pattern[str], text: str) -> list[tuple[str, str]]:
    matches = list(title.finditer(text))
    ends = [*(match.start() for match in matches[1:]), len(text)]
    return [(match[1], text[match.end() : end]) for match, end in zip(matches, ends, strict=False)]


@dataclass
class _Open:
    id: int
    name: str
    inputs: list[_Open] = field(default_factory=list)


def _parse_tree(tree_text: str, blocks: Mapping[int, str]) -> Operator:
    path: list[_Open] = []
    for line in tree_text.rstrip("\n").split("\n"):
        match = _LINE.fullmatch(line)
        if match is None:
            raise NotUnderstood("a line of its tree")
        depth, operator = len(match["drawn"]) // 3, _Open(int(match["id"]), match["name"])
        if depth > min(len(path), DEEPEST) or (depth == 0) != (not path):
            raise NotUnderstood("a line of its tree")
        del path[depth:]
        if path:
            path[-1].inputs.append(operator)
        path.append(operator)
    return _build_operator(path[0], blocks)


def _build_operator(open_operator: _Open, blocks: Mapping[int, str]) -> Operator:
    head, _, text = blocks.get(open_operator.id, "").partition("\n")
    if not head.startswith(open_operator.name.split(" ", 1)[0]):
        raise NotUnderstood("an operator without details")
    reused = _REUSES.search(head)
    inputs = tuple(_build_operator(child, blocks) for child in open_operator.inputs)
    return Operator(open_operator.id, open_operator.name, text, inputs, int(reused[1]) if reused else None)


def _is_runtime_filter(tree: Operator) -> bool:
    """Return True for the subquery of a Bloom filter, which Spark adds by itself for large tables."""
    return any(step.name.endswith("Aggregate") and "bloom_filter_agg(" in step.text for step in tree.steps())
