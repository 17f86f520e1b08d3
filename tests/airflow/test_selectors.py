"""Which models a selector means, and which arguments their tasks get."""

from __future__ import annotations

import pytest

from mergeplan.airflow.graph import ScheduleError
from mergeplan.airflow.selectors import select_models, task_options
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
    ],
)
def test_a_selector_means_models(selector: str, names: set[str]) -> None:
    assert select_models(graph(*SHOP), selector) == names


@pytest.mark.parametrize("selector", ["", "+", "state:modified", "tag:", "s.gone"])
def test_what_selects_nothing_by_mistake_is_refused(selector: str) -> None:
    with pytest.raises(ScheduleError, match=r"is no selector|selects nothing"):
        select_models(graph(*SHOP), selector)


def test_the_later_selector_decides_for_the_tasks_of_its_models() -> None:
    options = {"*": {"retries": 1, "pool": "all"}, "tag:heavy": {"pool": "big"}}
    assert task_options(graph(*SHOP), options, {"first": ["s.items", "s.hourly"], "s.total": ["s.total"]}) == {
        "first": {"retries": 1, "pool": "big"},
        "s.total": {"retries": 1, "pool": "all"},
    }
