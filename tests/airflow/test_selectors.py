"""Which models a selector means, and which arguments their tasks get."""

from __future__ import annotations

import pytest

from mergeplan.airflow.graph import task_options
from mergeplan.selectors import SelectorError, find_unmatched, select_models
from tests.airflow.graphs import SHOP, graph


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("s.items", {"s.items"}),
        ("s.*", {"s.raw", "s.items", "s.view", "s.hourly", "s.total"}),
        ("tag:heavy", {"s.items"}),
        ("owner:a*", {"s.items"}),
        ("kind:view", {"s.view"}),
        ("+s.hourly", {"s.hourly", "s.view", "s.items", "s.raw"}),
        ("s.hourly+", {"s.hourly", "s.total"}),
        ("tag:none", set()),
        ("s.gone", set()),
    ],
)
def test_a_selector_means_models(selector: str, names: set[str]) -> None:
    assert select_models(graph(*SHOP).models, selector) == names


@pytest.mark.parametrize("selector", ["", "+", "state:modified", "tag:"])
def test_what_is_no_selector_is_refused(selector: str) -> None:
    with pytest.raises(SelectorError, match="is no selector"):
        select_models(graph(*SHOP).models, selector)


def test_the_later_selector_decides_for_the_tasks_of_its_models() -> None:
    options = {"*": {"retries": 1, "pool": "all"}, "tag:heavy": {"pool": "big"}}
    assert task_options(graph(*SHOP), options, {"first": ["s.items", "s.hourly"], "s.total": ["s.total"]}) == {
        "first": {"retries": 1, "pool": "big"},
        "s.total": {"retries": 1, "pool": "all"},
    }


def test_selectors_of_no_model_are_known_by_name() -> None:
    assert find_unmatched(graph(*SHOP).models, ["*", "tag:none", "s.gone", "s.items"]) == ("tag:none", "s.gone")
