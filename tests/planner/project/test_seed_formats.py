"""Cells of seeds as the libraries of their projects' formats read them: pandas for SQLMesh, agate for dbt."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from decimal import Decimal
from pathlib import Path

import pandas
import pytest

from mergeplan.planner.model.model import PANDAS_NULLS
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.change import Category
from mergeplan.planner.project.seeds import load_seed, read_seed
from tests.planner.building import NOW, change_of, project

NOT_NULL = ("Null", " null", "none", "na", "nil", "-", " ", "x", "0")
CELLS = (*PANDAS_NULLS, *NOT_NULL)
SETTINGS = {
    "": {},
    "csv_settings (na_values = ('-'))": {"na_values": ["-"]},
    "csv_settings (na_values = ('-'), keep_default_na = false)": {"na_values": ["-"], "keep_default_na": False},
    "csv_settings (keep_default_na = false)": {"keep_default_na": False},
}
DBT = Path(__file__).parents[3] / ".venv-dbt/bin/python"
AGATE = """
import json, os, sys
from dbt_common.clients import agate_helper
seeds = []
for name in sorted(os.listdir("seeds")):
    rows = agate_helper.from_csv(f"seeds/{name}", text_columns=["z"] if name.startswith("text") else []).rows
    seeds.append([None if row["c"] is None else str(row["c"]) for row in rows])
print(json.dumps(seeds))
"""
# name -> the type that dbt gives the column, cells as they stand in the file
DBT_SEEDS = {
    "bigint": (
        "bigint",
        ["1", "null", "NULL", " Null ", "", "007", "+5", "1e5", "1.0", '"1,000"', "$5", "5%", "1_000"],
    ),
    "boolean": ("boolean", ["true", "False", " TRUE", "null", '"tr,ue"', ""]),
    "date": ("date", ["2024-01-05", "2024-1-6", "NULL"]),
    "double": ("double", ["1.5", "-2", "null", '"-1,000.25"', "€7", "1e-2", ".5"]),
    "moment": ("timestamp", ["2024-01-05T10:00:00", "2024-01-05T11:00:00", "null"]),
    "string": ("string", ["a", "null", " NULL", '""', '" "', " b ", "NA", "None", "nan", "007", "yes"]),
    "lines": ("string", ["a", "\n", "b", "\n"]),
}


def read_cells(folder: Path, content: str, settings: str = "", columns: str = "") -> list[str | None]:
    """The cells of the column `c` of a seed with this content."""
    (folder / "s.csv").write_text(content)
    text = f"MODEL (name s.items, kind SEED (path '../s.csv'{f', {settings}' * bool(settings)}){columns});"
    model, _ = parse_model(text, "models/items.sql", Defaults(NOW))
    assert model is not None
    return [row[0] for row in read_seed(folder, load_seed(folder, model), ("c",))]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_cell_is_null_where_it_is_for_pandas(settings: str, tmp_path: Path) -> None:
    file = io.StringIO()
    csv.writer(file).writerows([["n", "c"], *enumerate(CELLS)])

    held = pandas.read_csv(io.StringIO(file.getvalue()), **SETTINGS[settings])["c"]  # type: ignore[call-overload]
    assert [cell is None for cell in read_cells(tmp_path, file.getvalue(), settings)] == list(held.isna())


@pytest.mark.skipif(not DBT.exists(), reason="no dbt")
def test_a_cell_of_a_dbt_project_is_what_it_is_for_agate(tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    files = {}
    for name, (_, cells) in sorted(DBT_SEEDS.items()):
        lines = [cell if cell == "\n" else f"{n},{cell}\n" for n, cell in enumerate(cells)]
        files[name] = (tmp_path / f"seeds/{name}.csv").write_text(content := "n,c\n" + "".join(lines)) and content
    command = [str(DBT), "-c", AGATE]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)

    for (name, (type_, _)), held in zip(sorted(DBT_SEEDS.items()), json.loads(run.stdout), strict=True):
        cells = read_cells(tmp_path, files[name], "dbt_seed true", f", columns (n BIGINT, c {type_})")
        assert [value_of(cell, type_) for cell in cells] == [value_of(cell, type_) for cell in held], name


@pytest.mark.parametrize("offset", ["", "Z", "z", "+02", "+0200", "+02:00", "-05:30", " +02:00"])
@pytest.mark.parametrize("time", ["10:00", "10:00:00", "10:00:00.123"])
def test_the_offset_of_a_moment_is_left_out(tmp_path: Path, time: str, offset: str) -> None:
    """dbt-spark sends the time as it is written, in which offset ever."""
    content = f"n,c\n1,2024-01-05T{time}{offset}\n"

    cells = read_cells(tmp_path, content, "dbt_seed true", ", columns (n BIGINT, c TIMESTAMP)")
    assert cells == [f"2024-01-05T{time}"]


def value_of(cell: str | None, type_: str) -> object:
    """What Spark's cast of a cell means: it takes spaces around a value, any case, and days without a zero."""
    if cell is None or type_ == "string":
        return cell
    if type_ in ("bigint", "double"):
        return Decimal(cell.strip())
    if type_ == "date":
        return tuple(map(int, cell.split("-")))
    return cell.strip().lower().replace("t", " ") if type_ == "timestamp" else cell.strip().lower()


def test_a_seed_that_means_other_values_now_is_a_change(tmp_path: Path) -> None:
    """A seed of a project that an earlier release read, where `NA` was a text."""
    (tmp_path / "s.csv").write_text("n,c\n1,NA\n2,b\n")
    text = "MODEL (name s.items, kind SEED (path '../s.csv'{}), columns (n INT, c STRING));"
    settings = (", csv_settings (na_values = (''), keep_default_na = false)", "")
    before, after = (
        load_seed(tmp_path, model)
        for model, _ in (
            parse_model(text.format(csv_settings), "models/items.sql", Defaults(NOW)) for csv_settings in settings
        )
        if model is not None
    )
    change = change_of(project(before), project(after))["s.items"]

    assert (change.category, change.rule, change.recomputed) == (Category.BREAKING, "seed-content", True)
    assert change.columns.altered == {"c"}
    assert "NULL" in change.reason


def test_a_seed_without_such_cells_is_the_one_that_it_was(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("n,c\n1,\n2,b\n")
    text = "MODEL (name s.items, kind SEED (path '../s.csv'{}), columns (n INT, c STRING));"
    settings = (", csv_settings (na_values = (''), keep_default_na = false)", "", ", dbt_seed true")
    models = [parse_model(text.format(csv_settings), "models/items.sql", Defaults(NOW))[0] for csv_settings in settings]
    seeds = [load_seed(tmp_path, model).seed for model in models if model is not None]

    assert len({seed.digest for seed in seeds if seed is not None}) == 1
