"""Several projects in one repository have keys that never meet, and the first keeps the repository's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeplan.bot.projects import (
    ROOT,
    folder_of,
    inside,
    keep_their_prods,
    label_of,
    project_keys,
    read_folders,
    repository_of,
    title_of,
)
from mergeplan.bot.settings import load_settings
from mergeplan.planner.errors import RequestError

NAME = st.from_regex(r"[A-Za-z0-9._-]{1,8}", fullmatch=True).filter(lambda name: name not in (".", ".."))
FOLDERS = st.lists(st.lists(NAME, min_size=1, max_size=3).map("/".join), min_size=1, max_size=5, unique=True)


@given(FOLDERS)
def test_each_folder_has_a_key_of_its_own_and_the_key_leads_back_to_it(folders: list[str]) -> None:
    read = read_folders(", ".join(folders))
    keys = project_keys("ann/shop", read)
    assert len(set(keys)) == len(folders)
    assert keys[0] == "ann/shop"
    assert [folder_of(key, read) for key in keys] == list(read) == folders
    assert {repository_of(key) for key in keys} == {"ann/shop"}


def test_a_second_project_changes_nothing_of_the_first() -> None:
    assert project_keys("ann/shop", read_folders("dbt")) == project_keys("ann/shop", read_folders("dbt,ads"))[:1]
    assert (label_of("ann/shop"), title_of("ann/shop")) == ("", "ann/shop")
    assert title_of("ann/shop~ads~daily") == "ann/shop (ads/daily)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dbt,../x", "inside the repository"),
        ("/dbt", "inside the repository"),
        ("dbt,./dbt/", "twice"),
        ("dbt,.", "must come first"),
        ("dbt,a~b", "`a~b`"),
        ("my models,dbt", "`my models`"),
    ],
)
def test_a_list_that_makes_no_keys_is_refused(text: str, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        load_settings({"project_path": text})


def test_one_folder_may_be_named_as_before() -> None:
    assert [read_folders(text) for text in ("", ".", "./dbt/", "my models")] == [
        (ROOT,),
        (ROOT,),
        ("dbt",),
        ("my models",),
    ]
    assert inside(["ads/a.sql", "ads2/b.sql", "c.sql"], "ads") == ("a.sql",)


@pytest.mark.parametrize(
    ("folders", "why"),
    [
        (("ads", "dbt"), "every table of prod would be removed"),
        (("x", "dbt"), "every table of prod would be removed"),
        (("ads",), "while it was not the first"),
        (("ads", "x"), "while it was not the first"),
    ],
)
def test_no_order_of_the_folders_gives_a_project_the_prod_of_another(folders: tuple[str, ...], why: str) -> None:
    with pytest.raises(RequestError, match=why):
        keep_their_prods({"ann/shop": "dbt", "ann/shop~ads": "ads"}, folders)


@pytest.mark.parametrize("folders", [("dbt",), ("dbt", "ads"), ("dbt", "x", "ads"), ("moved", "ads"), ("moved",)])
def test_a_project_that_keeps_its_prod_or_moves_may_go_on(folders: tuple[str, ...]) -> None:
    keep_their_prods({"ann/shop": "dbt", "ann/shop~ads": "ads", "ann/old": ""}, folders)
