"""A mermaid graph is drawn, and what cannot be drawn stays text."""

import pytest

from mergeplan.bot.report.markdown import mermaid_graph
from mergeplan.planner.contract.plan import ModelChange
from mergeplan_sandbox.api.graphs import draw_graph
from mergeplan_sandbox.markdown import render_markdown


def test_the_plan_comments_graph_is_drawn() -> None:
    """Each model a box in its category's colour, each edge an arrow."""
    models = [
        ModelChange(name="shop.orders", change="direct", category="breaking", recomputed=True),
        ModelChange(name="shop.totals", change="indirect", category="indirect_breaking", parents=("shop.orders",)),
    ]
    page = render_markdown(mermaid_graph(models))

    assert page.count("<rect") == 2
    assert page.count("marker-end") == 1
    assert ">shop.orders</text>" in page
    assert "#ffd7d5" in page
    assert "```" not in page


@pytest.mark.parametrize(
    "text", ['graph TD\n  a["x"]', "graph LR", "graph LR\n  a --> b", "sequenceDiagram\n  A->>B: hi", ""]
)
def test_another_graph_stays_text(text: str) -> None:
    assert draw_graph(text) is None


def test_nothing_in_a_graph_runs() -> None:
    page = render_markdown('```mermaid\ngraph LR\n  a["<script>alert(1)</script><b onload=x>&lt;img src=x&gt;"]\n```')

    assert "<script" not in page
    assert "<img" not in page
    assert "<b onload" not in page
