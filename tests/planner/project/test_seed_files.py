"""Seed files as tools and people write them: what Spark holds in the end is what the file says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Seed
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.project.seeds import load_seed
from mergeplan.planner.state.store import StateStore
from tests.planner.building import model
from tests.planner.shop import FILES, NOW, plan_and_apply, rows

BIG = 9223372036854775807
# name -> the file, the settings and columns of its model, its rows
SEEDS: dict[str, tuple[bytes, str, list[tuple[Any, ...]]]] = {
    "mark": (b"\xef\xbb\xbfid,x\n1,\xc3\xa9\n", "", [(1, "é")]),
    "mark_by_alias": (b"\xef\xbb\xbfid,x\n1,\xc3\xa9\n", "csv_settings (encoding = 'U8')", [(1, "é")]),
    "wide": ("id,x\n1,é\n".encode("utf-16"), "csv_settings (encoding = 'utf-16')", [(1, "é")]),
    "wide_marked": ("\ufeffid,x\n1,é\n".encode("utf-16-le"), "csv_settings (encoding = 'utf-16-le')", [(1, "é")]),
    "latin": ("id,x\n1,café\n".encode("latin-1"), "csv_settings (encoding = 'latin-1')", [(1, "café")]),
    "windows": (b"id,x\r\n1,a\r\n\r\n2,b\r\n", "", [(1, "a"), (2, "b")]),
    "classic": (b"id,x\r1,a\r2,b\r", "", [(1, "a"), (2, "b")]),
    "lines": (b'id,x\n1,"a\nb"\n2,"a\r\nb"\n3,"say ""hi"""\n', "", [(1, "a\nb"), (2, "a\r\nb"), (3, 'say "hi"')]),
    "zero": (b"id,x\n1,a\0b\n", "", [(1, "a\0b")]),
    "long": (b"id,x\n1," + b"y" * 200_000 + b"\n", "", [(1, "y" * 200_000)]),
    "big": (f"id,x\n1,{BIG}\n2,{-BIG - 1}\n3,+5\n".encode(), "", [(1, BIG), (2, -BIG - 1), (3, 5)]),
    "bigger": (f"id,x\n1,{BIG + 1}\n2,7\n".encode(), "", [(1, str(BIG + 1)), (2, "7")]),
    "mixed": (b"id,x\n1,1.5\n2,2\n3,1e3\n4,\n", "", [(1, 1.5), (2, 2.0), (3, 1000.0), (4, None)]),
    "zeros": (b"id,x\n1,007\n2,010\n", "columns (id INT, x STRING)", [(1, "007"), (2, "010")]),
    "booleans": (b"id,x\n1,True\n2,FALSE\n3,\n", "", [(1, True), (2, False), (3, None)]),
    "spelled": (
        b"id,x\n1,yes\n2,n\n3,1\n4,F\n", "columns (id INT, x BOOLEAN)", [(1, True), (2, False), (3, True), (4, False)]
    ),
    "nulls": (b'id,x\n1,\n2,""\n3,NULL\n4\n5,Null\n', "", [*((n, None) for n in (1, 2, 3, 4)), (5, "Null")]),
    "no_number": (b"id,x\n1,NA\n2,7\n3,null\n", "", [(1, None), (2, 7), (3, None)]),
    "of_dbt": (b"id,x\n1,1e5\n2,null\n3,$7\n4,7.0\n", "dbt_seed true), columns (id INT, x BIGINT", [
        (1, 100000), (2, None), (3, 7), (4, 7)
    ]),
    "texts": (b'id,x\n1,\n2,""\n', "csv_settings (keep_default_na = false)", [(1, ""), (2, "")]),
    "head": (b' Id ,"X"\n1,a\n', "columns (id INT, x STRING)", [(1, "a")]),
}  # fmt: skip


@pytest.mark.prove
def test_spark_holds_what_the_file_says(tmp_path: Path, engine: SparkEngine, store: StateStore) -> None:
    for name, (content, settings, _) in SEEDS.items():
        kind, columns = (settings, "") if settings.startswith(("csv", "dbt")) else ("", settings)
        text = f"MODEL (name shop.{name}, kind SEED (path '../seeds/{name}.csv'{', ' * bool(kind)}{kind}), {columns});"
        write(tmp_path / "seeds" / f"{name}.csv", content)
        write(tmp_path / "models" / f"{name}.sql", text.replace(", );", ");").encode())
    write(tmp_path / "config.yaml", FILES["config.yaml"].encode())

    plan_and_apply(load_project(tmp_path, NOW), engine, store)

    held = {name: rows(engine, f"SELECT id, x FROM shop.{name} ORDER BY id") for name in SEEDS}
    assert held == {name: wanted for name, (_, _, wanted) in SEEDS.items()}


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"id,x,\n1,2,\n", "A column of the header has no name"),
        (b"id,x\n1,2,\n", "This row has 3 cells, the header has 2"),
        (b"id,ID\n1,2\n", "The column `id` occurs twice"),
        (b"id,id\n1,2\n", "The column `id` occurs twice"),
        (b"\n\n", "The seed file is empty"),
        (b"id,x\n1,caf\xe9\n", "not encoded as utf-8"),
        ("id,x\n1,2\n".encode("utf-16"), "not encoded as utf-8"),
        ("id,x\n1,2\n".encode("utf-16-le"), "has a NUL character"),
        (b'id,x\n1,"open\n', "This is not CSV"),
        (b"id;x\n1;2\n", r"one column with `;` in its name. Set the delimiter .*delimiter = ';'"),
        (b"PK\x03\x04\xff\xfe", "one of a spreadsheet or a zip file. Save it as CSV"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", "a pointer of Git LFS"),
        (b"../data/items.csv", "a symbolic link to `../data/items.csv`"),
    ],
)
def test_a_file_that_says_nothing_certain_is_refused(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/items.csv").write_bytes(b"id\n1\n")
    (tmp_path / "seeds/items.csv").write_bytes(content)

    with pytest.raises(ProjectError, match=says):
        load_seed(tmp_path, model("s.items", kind=Kind.SEED, seed=Seed("seeds/items.csv", "", ())))
