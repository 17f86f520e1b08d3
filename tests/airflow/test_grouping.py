"""Which models share a task, and that no task waits for itself."""

from __future__ import annotations

from mergeplan.airflow.grouping import group_models
from tests.airflow.graphs import SHOP, graph, model

CHAIN = (model("s.a"), model("s.b", "s.a"), model("s.c", "s.b"), model("s.d", "s.c"))


def tasks(groups: dict[str, str]) -> dict[str, tuple[list[str], tuple[str, ...]]]:
    return {task.name: ([m.name for m in task.models], task.parents) for task in group_models(graph(*CHAIN), groups)}


def test_models_of_a_group_share_a_task_and_others_have_their_own() -> None:
    assert tasks({"low": "+s.b"}) == {
        "low": (["s.a", "s.b"], ()),
        "s.c": (["s.c"], ("low",)),
        "s.d": (["s.d"], ("s.c",)),
    }
    assert [task.parents for task in group_models(graph(*SHOP), {})] == [(), ("s.items",), ("s.items", "s.hourly")]


def test_what_stands_between_models_of_a_group_belongs_to_it() -> None:
    assert tasks({"ends": "s.[ac]"}) == {"ends": (["s.a", "s.b", "s.c"], ()), "s.d": (["s.d"], ("ends",))}


def test_groups_that_read_each_other_are_one_task() -> None:
    assert tasks({"odd": "s.[ac]", "even": "s.[bd]"}) == {"odd": (["s.a", "s.b", "s.c", "s.d"], ())}


def test_a_model_of_two_groups_is_in_the_first() -> None:
    assert tasks({"low": "+s.b", "all": "*"}) == {
        "low": (["s.a", "s.b"], ()),
        "all": (["s.c", "s.d"], ("low",)),
    }


def test_a_group_whose_models_a_merge_has_removed_has_no_task() -> None:
    assert tasks({"none": "tag:nothing", "gone": "s.gone"}).keys() == {"s.a", "s.b", "s.c", "s.d"}
