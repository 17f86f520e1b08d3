"""One file read anew comes to what loading the whole folder comes to, or says that it does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.errors import ProjectError, ProjectErrors
from mergeplan.planner.project.loader import LoadOptions, load_project
from mergeplan.planner.project.reread import NeedsLoad, reread_file
from tests.planner.shop import FILES, NOW, write_shop

PATH, TEXT = "models/daily.sql", FILES["models/daily.sql"].lstrip()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (PATH, TEXT.replace("price FROM", "price, price + 1 AS more FROM")),
        (PATH, TEXT.replace("batch_size 1", "batch_size 2")),
        (PATH, TEXT.replace("shop.daily", "shop.weekly")),
        ("models/added.sql", "MODEL (name shop.added, kind FULL); SELECT total FROM shop.total"),
        ("models/items.sql", FILES["models/items.sql"].replace("price INT", "price BIGINT")),
    ],
)
def test_a_file_read_anew_is_as_in_a_loaded_project(tmp_path: Path, path: str, text: str) -> None:
    before = write_shop(tmp_path)
    whole = load_project(tmp_path, NOW, options=LoadOptions(strict=False, proposed={path: text}))

    assert reread_file(before, path, text).models == whole.models


def test_an_error_of_the_text_has_its_place(tmp_path: Path) -> None:
    project = write_shop(tmp_path)

    with pytest.raises(ProjectError) as caught:
        reread_file(project, PATH, TEXT.replace("kind INC", "kind ENC"))
    assert str(caught.value.place) == "models/daily.sql:3"


def test_a_reader_whose_macro_asks_for_columns_needs_the_whole_project(tmp_path: Path) -> None:
    project = write_shop(tmp_path, star="MODEL (name shop.star); SELECT @STAR(shop.daily) FROM shop.daily")

    with pytest.raises(NeedsLoad):
        reread_file(project, PATH, TEXT.replace("price FROM", "price, 1 AS one FROM"))
    assert reread_file(project, PATH, TEXT + " AND price > 1").models.keys() == project.models.keys()


def test_a_circle_is_an_error(tmp_path: Path) -> None:
    project = write_shop(tmp_path)

    with pytest.raises(ProjectError, match="in a cycle"):
        reread_file(project, "models/total.sql", "MODEL (name shop.total, kind FULL); SELECT total FROM shop.shown")


@pytest.mark.parametrize("path", ["macros/m.py", "models/m.py", "signals/s.py", "config.py", "dbt_project.yml"])
def test_python_is_refused_where_no_code_may_run(tmp_path: Path, path: str) -> None:
    write_shop(tmp_path)
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    if path == "config.py":
        (tmp_path / "config.yaml").unlink()
    options = LoadOptions(strict=False, runs_code=False)

    if path in ("config.py", "dbt_project.yml"):
        with pytest.raises(ProjectError, match="until the folder is trusted"):
            load_project(tmp_path, NOW, options=options)
    else:
        (refusal,) = load_project(tmp_path, NOW, options=options).refused.refusals
        assert (refusal.path, "until the folder is trusted" in refusal.errors[0].message) == (path, True)
        with pytest.raises(ProjectErrors):
            load_project(tmp_path, NOW, options=replace(options, strict=True))
    assert not (tmp_path / "ran").exists()
