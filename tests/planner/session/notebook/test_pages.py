"""What a notebook shows: every text escaped, no script, and no style that reaches outside."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.project.lineage import lineage_of
from mergeplan.planner.session.notebook.lineage_page import lineage_fragment, lineage_html
from mergeplan.planner.session.notebook.plan_page import difference_fragment, plan_fragment
from mergeplan.planner.session.results import Difference
from mergeplan.planner.session.session import Session
from tests.planner.building import external, make_plan, model, project, promote

RAW = external("s.raw", "id x")
EVIL = "'<script>alert(1)</script>'"
BEFORE = project(RAW, model("s.parent", "SELECT id, x FROM s.raw"), model("s.child", "SELECT id FROM s.parent"))
AFTER = BEFORE | project(model("s.parent", f"SELECT id, {EVIL} AS x FROM s.raw"))


def well_formed(html: str) -> ElementTree.Element:
    """The part of a page as a tree: what is not closed or not escaped fails."""
    return ElementTree.fromstring(html)  # noqa: S314  # our own text


def rules(html: str) -> list[str]:
    """The selectors of a part's style."""
    style = re.sub(r"@media[^{]*\{", "", html.partition("<style>")[2].partition("</style>")[0])
    return [selector.strip() for one in re.findall(r"([^{}]+)\{[^{}]*\}", style) for selector in one.split(",")]


def test_a_plan_shows_what_changes_why_and_at_what_cost() -> None:
    prod, loaded = promote(BEFORE)
    plan = make_plan(AFTER, prod, prod, loaded)

    html = plan_fragment(plan, {"s.parent": Estimate(2048, 5, 3.0)})

    cells = ["".join(cell.itertext()) for cell in well_formed(html).iter("td")]
    assert cells[:2] == ["s.parent", "Direct (Breaking)"]
    assert cells[4] == "~2.0 KiB read, ~3 s"
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert {rule.partition(" ")[0] for rule in rules(html)} == {".mergeplan-plan"}


def test_a_difference_shows_no_computation() -> None:
    prod, loaded = promote(BEFORE)
    plan = make_plan(AFTER, prod, prod, loaded)

    html = difference_fragment(plan, "<dev>")

    assert [cell.text for cell in well_formed(html).iter("th")] == ["Model", "Change", "Why"]
    assert "&lt;dev&gt;" in html
    same = Difference(make_plan(BEFORE, prod, prod, loaded))
    assert same.same
    assert "The project matches the `prod` environment." in same._repr_html_()


def test_a_lineage_is_drawn_in_a_part_of_a_page_and_in_a_page() -> None:
    odd = project(RAW, model("s.odd", "SELECT id AS `<b>&` FROM s.raw"))
    lineage = lineage_of(odd, "s.odd")

    part, page = lineage_fragment(lineage, odd), lineage_html(lineage, odd)

    assert {"svg", "path"} <= {element.tag for element in well_formed(part).iter()}
    assert "<b>" not in part
    assert "&lt;b&gt;&amp;" in part
    assert {rule.partition(" ")[0] for rule in rules(part)} == {".mergeplan"}
    assert page.startswith("<!doctype html>")
    assert "body { margin: 24px;" in page


def test_a_sessions_results_draw_themselves(offline: Session) -> None:
    assert "New environment `dev`" in offline.plan("dev")._repr_html_()
    assert "What goes into shop.total" in offline.lineage("shop.total")._repr_html_()
