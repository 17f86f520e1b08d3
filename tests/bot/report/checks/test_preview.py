"""The plan of a merge into a branch with an environment."""

from __future__ import annotations

from mergeplan.bot.report.checks.preview import BranchPreview, preview_comment
from mergeplan.bot.results import read_outcome
from mergeplan.planner.contract.result import DiffRow, ResultLine


def test_a_diffs_title_has_the_models_name_as_it_is() -> None:
    """Markdown is not read within <summary>: a backslash before `_` would be shown."""
    change = DiffRow(name="shop.order_items", change="direct", diff="-a\n+b")
    outcome = read_outcome([ResultLine(ok=True)], 0)

    text = preview_comment("ann/shop", BranchPreview("qa", "qa", "a" * 40, 1, outcome, (change,)))

    assert "<summary>Diff of <code>shop.order_items</code></summary>" in text
