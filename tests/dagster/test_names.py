"""Owners, tags and groups as Dagster accepts them."""

from __future__ import annotations

import pytest

from mergeplan.dagster import names


@pytest.mark.parametrize(
    ("owner", "owners"),
    [
        ("ann@shop.org", ("ann@shop.org",)),
        ("Data Platform", ("team:Data_Platform",)),
        ("@org/data-team", ("team:org_data_team",)),
        ("  ", ()),
    ],
)
def test_an_owner_is_an_address_or_a_team(owner: str, owners: tuple[str, ...]) -> None:
    assert names.owners(owner) == owners


def test_a_tag_with_a_colon_is_a_key_and_a_value() -> None:
    assert names.tags(["pii", "layer:raw", "two words=x y", "dagster/kind", ":"]) == {
        "pii": "", "layer": "raw", "two_words": "x_y",
    }  # fmt: skip


def test_a_group_is_the_schema() -> None:
    assert [names.group(name) for name in ("lake.shop.orders", "shop.orders", "orders")] == ["shop", "shop", "default"]
