"""The pages of edits say which texts are one query: every pair of their tables is tried."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Columns
from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.shape import Shape
from tests.planner.building import change_of, external, model, project
from tests.planner.spelling.page import rules_of_page
from tests.planner.spelling.rules import RULES

FOLDER = Path(__file__).parent.parent / "docs" / "explanation"
INDEX = (FOLDER / "equivalence.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("edits-*.md"))}
COUNTS = (90, 69, 16, 34)  # pairs under each heading: raise a number with every pair that is added
TABLES = {
    f"s.{name}": tuple(columns.split(", "))
    for name, columns in re.findall(r"s\.(\w+) \(([\w, ]+)\)", INDEX.partition("```\n")[2].partition("```")[0])
}


def rows(title: str) -> list[tuple[str, ...]]:
    """The cells of the tables under a heading of any page, those of the tables' own heads aside."""
    sections = [page.partition(f"\n## {title}\n")[2].partition("\n## ")[0] for page in PAGES.values()]
    lines = [line.strip("|") for section in sections for line in section.splitlines() if line.startswith("| ")]
    cells = [tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)) for line in lines]
    return [row for row in cells if row[0].startswith("`")]


def query(cell: str) -> str:
    """The query that a cell stands for."""
    text = cell.strip("`")
    if text.startswith("WHERE"):
        return f"SELECT id FROM s.a {text}"
    return text if text.startswith(("SELECT", "WITH")) else f"SELECT {text} AS v FROM s.a"


def shape(cell: str) -> Shape:
    parents = {name: Parent(columns, types=tuple((c, "string") for c in columns)) for name, columns in TABLES.items()}
    return shape_of(query(cell), parents)


def pairs(title: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in rows(title)]


def models(cell: str) -> dict[str, Model]:
    sources = [external(name, " ".join(columns)) for name, columns in TABLES.items()]
    return project(*sources, model("s.m", query(cell)))


def column_words(columns: Columns) -> str:
    """What a change touches, in the page's words."""
    if columns.every:
        return "every"
    verbs = (("adds", columns.added), ("removes", columns.removed), ("alters", columns.altered))
    return "; ".join(f"{verb} {', '.join(sorted(names))}" for verb, names in verbs if names) or "none"


@pytest.mark.parametrize(("one", "other"), pairs("Equivalent"))
def test_a_pair_of_one_query_has_one_meaning(one: str, other: str) -> None:
    first, second = shape(one), shape(other)

    assert first.relation is not None
    assert first.text == second.text


@pytest.mark.parametrize(("one", "other"), pairs("Not equivalent") + pairs("Not recognised"))
def test_a_pair_of_two_queries_has_two_meanings(one: str, other: str) -> None:
    assert shape(one).known
    assert shape(other).known
    assert shape(one).text != shape(other).text


@pytest.mark.parametrize(("before", "after", "rule", "touched"), [row[:4] for row in rows("Columns")])
def test_an_edit_touches_the_columns_that_are_told(before: str, after: str, rule: str, touched: str) -> None:
    change = change_of(models(before), models(after))["s.m"]

    assert (f"`{change.rule}`", column_words(change.columns)) == (rule, touched.replace("`", ""))


def test_the_pages_have_pairs_of_every_sort() -> None:
    counts = [len(rows(title)) for title in ("Equivalent", "Not equivalent", "Not recognised", "Columns")]

    assert [count >= least for count, least in zip(counts, COUNTS, strict=True)] == [True] * 4


def test_the_index_leads_to_each_page_of_edits() -> None:
    index = INDEX.partition("\n## Find your edit\n")[2].partition("\n## ")[0]

    assert set(re.findall(r"\]\((edits-\w+\.md)", index)) == set(PAGES)


def test_the_rules_that_excuse_other_plans_are_those_of_the_page() -> None:
    assert rules_of_page() == set(RULES)
