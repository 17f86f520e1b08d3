"""A restatement in a copy is taken back by whatever chose its models."""

from __future__ import annotations

import pytest

from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.restated_copies import find_taken_back, read_copies
from tests.planner.building import external, model, project

MODELS = project(
    external("s.raw", "id at"), model("s.daily", "SELECT id FROM s.raw"), model("s.total", "SELECT id FROM s.daily")
)


@pytest.mark.parametrize(
    ("selector", "models"),
    [
        ("s.daily", {"s.daily"}),
        ("s.*l*", {"s.*l*", "s.daily", "s.total"}),
        ("s.raw", {"s.raw", "s.daily"}),  # its reader stands for a table that is not computed
        ("s.gone", {"s.gone"}),  # the model may have been restated before it went
    ],
)
def test_a_reset_is_of_the_models_that_its_selector_chooses_now(selector: str, models: set[str]) -> None:
    options = PlanOptions(restate_copy=(f"{selector}=reset", "s.total=.."))

    assert find_taken_back(options, MODELS, frozenset) == models
    assert set(read_copies(options, MODELS, frozenset)[0]) == {"s.total"}
