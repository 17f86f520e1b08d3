"""What an edit of a seed's file does, down to who reads which of its columns."""

from pathlib import Path

import pytest

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model, Seed
from mergeplan.planner.plan.change import Category, Change
from mergeplan.planner.project.seeds import load_seed
from tests.planner.building import change_of, model, project

ROWS = "id,name,price\n1,tea,5\n2,milk,\n3,tea,7\n"


def seed_models(folder: Path, text: str) -> dict[str, Model]:
    """A seed of this text, one model that reads its prices and one that reads its names."""
    (folder / "items.csv").write_text(text)
    seed = load_seed(folder, model("s.items", kind=Kind.SEED, seed=Seed("items.csv", "", ())))
    prices = model("s.prices", "SELECT id, price FROM s.items")
    names = model("s.names", "SELECT name, COUNT(*) AS n FROM s.items GROUP BY name")
    return project(seed, prices, names)


def change_seed(folder: Path, text: str) -> dict[str, Change]:
    return change_of(seed_models(folder, ROWS), seed_models(folder, text))


def test_the_order_of_rows_and_the_layout_of_the_file_do_not_matter(tmp_path: Path) -> None:
    assert change_seed(tmp_path, 'id,name,price\r\n"3","tea",7\n\n2,milk,\n1,tea,5\n') == {}


def test_changed_cells_touch_only_who_reads_their_column(tmp_path: Path) -> None:
    changes = change_seed(tmp_path, ROWS.replace("5", "6"))

    assert (changes["s.items"].rule, changes["s.items"].columns.altered) == ("seed-content", {"price"})
    assert changes["s.prices"].recomputed
    assert changes["s.names"].category is Category.INDIRECT_NON_BREAKING


def test_an_added_column_touches_nobody_who_does_not_read_it(tmp_path: Path) -> None:
    changes = change_seed(tmp_path, "id,name,price,kind\n1,tea,5,a\n2,milk,,b\n3,tea,7,a\n")

    assert changes["s.items"].category is Category.NON_BREAKING
    assert [name for name, change in changes.items() if change.recomputed] == ["s.items"]


def test_a_row_that_ends_early_has_null_in_the_rest(tmp_path: Path) -> None:
    assert change_seed(tmp_path, ROWS.replace("2,milk,", "2,milk")) == {}


@pytest.mark.parametrize(
    "text",
    [
        ROWS + "4,tea,5\n",
        ROWS.replace("2,milk", "4,milk"),
        ROWS.replace("milk,\n", 'milk,""\n') + "5,x,\n",
        "id,name,price\n1,milk,5\n2,tea,\n3,tea,7\n",  # the same names, each of them beside another price
    ],
)
def test_rows_that_came_went_or_hold_other_names_reach_who_reads_them(tmp_path: Path, text: str) -> None:
    changes = change_seed(tmp_path, text)

    assert changes["s.items"].recomputed
    assert changes["s.prices"].recomputed or changes["s.names"].recomputed
