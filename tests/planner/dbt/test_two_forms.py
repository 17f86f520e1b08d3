"""Incremental models of two forms that replace partitions or keys: what an edit of either form computes."""

from __future__ import annotations

from typing import Any

import pytest

from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.dbt.texts import model_text
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.change import Category, Change
from tests.planner.building import NOW, change_of, external, model, project

from .test_texts import incremental

RAW, CHILD = external("raw.items", "id day price"), model("s.child", "SELECT day, price FROM s.t")
FIRST = "select id, day, price from raw.items"
LATER = f"{FIRST} where day >= (select max(day) from s.t)"
CLOCK = f"{FIRST} where day >= date_sub(current_date(), 3)"
BY_DAY: dict[str, Any] = {"strategy": "insert_overwrite", "partition_by": "day"}
BY_KEY: dict[str, Any] = {"strategy": "delete+insert", "unique_key": "day"}
WHOLE: dict[str, Any] = {"strategy": "insert_overwrite"}


def read(strategy: str, first: str = FIRST, later: str = CLOCK, **settings: Any) -> Model:
    """The model that a node of these forms is."""
    parsed, _ = parse_model(
        model_text(incremental(strategy, later, text=first, **settings)), "models/t.sql", Defaults(NOW)
    )
    assert parsed is not None
    return parsed


def edited(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Change]:
    return change_of(project(RAW, read(**before), CHILD), project(RAW, read(**after), CHILD))


def test_a_model_of_two_forms_reads_itself_also_where_its_query_does_not() -> None:
    assert [read(**way).reads_itself for way in (BY_DAY, BY_KEY, WHOLE)] == [True] * 3
    assert not read(**BY_DAY, later=f"{FIRST} -- again").reads_itself


@pytest.mark.parametrize("way", [BY_DAY, BY_KEY, WHOLE])
@pytest.mark.parametrize(
    "texts", [{"later": f"{CLOCK} -- again"}, {"first": f"{FIRST}\n /* all */"}, {"later": CLOCK.replace(" ", "\n ")}]
)
def test_a_comment_or_white_space_in_either_form_computes_nothing(way: dict[str, Any], texts: dict[str, str]) -> None:
    assert not any(change.recomputed for change in edited(way, way | texts).values())


@pytest.mark.parametrize("way", [BY_DAY, WHOLE])
@pytest.mark.parametrize(
    "texts", [{"later": LATER}, {"later": CLOCK.replace("3", "4")}, {"first": f"{FIRST} where price > 0"}]
)
def test_an_edit_of_either_form_keeps_the_rows_of_replaced_partitions(
    way: dict[str, Any], texts: dict[str, str]
) -> None:
    changes = edited(way, way | texts)

    assert changes["s.t"].category is Category.FORWARD_ONLY
    assert not any(change.recomputed and not change.forward for change in changes.values())


@pytest.mark.parametrize(
    "way", [BY_DAY, BY_KEY, WHOLE, {"strategy": "merge", "unique_key": "id"}, {"strategy": "append"}]
)
def test_an_edit_of_the_later_form_alone_says_so_and_keeps_all_rows(way: dict[str, Any]) -> None:
    changes = edited(way, way | {"later": CLOCK.replace("3", "4")})

    assert changes["s.t"].rule == "later-form"
    assert not any(change.recomputed and not change.forward for change in changes.values())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BY_KEY, BY_KEY | {"first": f"{FIRST} where price > 0"}),
        (BY_KEY, BY_KEY | {"unique_key": "id"}),
        (BY_KEY, BY_KEY | {"strategy": "merge"}),
        (BY_DAY, BY_DAY | {"partition_by": "id"}),
        (BY_DAY, {"strategy": "merge", "unique_key": "day"}),
        ({"strategy": "merge", "unique_key": "day"}, BY_DAY),
    ],
)
def test_another_key_way_or_partition_is_a_table_of_its_own(before: dict[str, Any], after: dict[str, Any]) -> None:
    changes = edited(before, after)

    assert (changes["s.t"].recomputed, changes["s.child"].recomputed) == (True, True)
