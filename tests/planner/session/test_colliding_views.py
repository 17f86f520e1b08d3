"""Two environments whose views would have one name: the second is refused, and the view of the first stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.planner.errors import Refused
from mergeplan.planner.session.session import Session
from tests.planner.shop import ALONE, FILES

TABLE = "environment_suffix_target: table\n"
HASHED = f"{TABLE}physical_table_naming_convention: hash_md5\n"


def full(name: str, number: int) -> str:
    return f"MODEL (name shop.{name}, kind FULL);\nSELECT {number} AS n"


def edit(folder: Path, name: str, number: int) -> None:
    (folder / f"models/{name}.sql").write_text(full(name, number))


@pytest.mark.parametrize("settings", [TABLE, HASHED], ids=["named", "hashed"])
def test_an_environment_takes_no_view_of_another_one(
    shop: Callable[..., Session], tmp_path: Path, settings: str
) -> None:
    config = FILES["config.yaml"] + settings
    session = shop(**ALONE, config=config, total=full("total", 1), total__a=full("total__a", 7))
    session.plan().apply()
    edit(tmp_path, "total__a", 8)
    session.plan("b").apply()

    edit(tmp_path, "total__a", 7)
    edit(tmp_path, "total", 2)
    with pytest.raises(Refused, match=r"`shop\.total__a__b` is the view of `shop\.total__a` in `b`"):
        session.plan("a__b").apply()

    assert session.fetch("SELECT n FROM shop.total__a__b").rows == ((8,),)
