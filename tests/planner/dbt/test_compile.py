"""What dbt says of a project is remembered, and asked again once anything that it follows from has changed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.project.dbt import node_columns
from mergeplan.planner.project.dbt.compile import compile_dbt
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.python.isolation import NO_ISOLATION

from .recorded import ANSWER, SHOP, record, times_asked

Change = Callable[[Path, pytest.MonkeyPatch], object]
PROFILE = "shop: {target: dev, outputs: {dev: {type: spark, schema: other, host: none}}}"


def answer_of_dbt() -> dict[str, Any]:
    """What dbt says of the shop without the model that asks the warehouse."""
    project = json.loads(ANSWER.read_text())
    nodes = [node for node in project["nodes"] if node["name"] != "asks"]
    files = [name for name in project["files"] if not name.endswith("asks.sql")]
    return {"ok": project | {"nodes": nodes, "files": files, "unit_tests": []}}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shop in an old folder, whose dbt is a recorded one and whose profiles.yml is the user's own."""
    root = Path(shutil.copytree(SHOP, tmp_path / "shop"))
    (root / "models/asks.sql").unlink()
    (root / "dbt_packages/more/models").mkdir(parents=True)
    (root / "dbt_packages/more/models/m.sql").write_text("select 1 as a")
    (tmp_path / "home/.dbt").mkdir(parents=True)
    (root / "profiles.yml").rename(tmp_path / "home/.dbt/profiles.yml")
    for name in ("dbt", "lib/python3.11/site-packages"):
        (tmp_path / "venv" / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(PYTHON, str(record(tmp_path / "venv/dbt", answer_of_dbt(), root=root)))
    monkeypatch.setenv("MERGEPLAN_CACHE", str(tmp_path / "cache"))
    return root


def write(name: str, text: str = "select 1 as a") -> Change:
    """A new file, or another text of one."""

    def change(root: Path, _: pytest.MonkeyPatch) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)

    return change


CHANGES: dict[str, Change] = {
    "a model": write("models/total.sql"),
    "a macro": write("macros/cents.sql"),
    "a seed": write("seeds/rates.csv", "code,rate,since\n"),
    "a package": write("dbt_packages/more/models/m.sql", "select 2 as a"),
    "a package's settings": write("dbt_packages/more/dbt_project.yml", "name: more"),
    "what dbt ignores": write(".dbtignore", "models/total.sql\n"),
    "what dbt ignores of a package": write("dbt_packages/more/.dbtignore", "models\n"),
    "a file in a hidden folder": write("models/.drafts/m.sql"),
    "a file in a folder with the name of dbt's own": write("models/logs/m.sql"),
    "the variables": write("config.yaml", "dbt: {vars: {a: 1}}\n"),
    "a variable that templates read": lambda _, patched: patched.setenv("DBT_SHOP_SCHEMA", "other"),
    "the profile in the home folder": write("../home/.dbt/profiles.yml", PROFILE),
    "a profile in the project": write("profiles.yml", PROFILE),
    "a package of dbt's Python": lambda root, _: (root.parent / "venv/lib/python3.11/site-packages/new").mkdir(),
}


def plan_shop(root: Path) -> int:
    return run(VERBS, ["plan", "-p", str(root), "--no-prompts", "--skip-tests"])


@pytest.mark.parametrize("change", CHANGES)
def test_dbt_is_asked_again_once_a_dependency_has_changed(
    change: str, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "venv/dbt/dbt-python"
    assert [plan_shop(shop), plan_shop(shop), times_asked(program)] == [0, 0, 1]
    CHANGES[change](shop, monkeypatch)

    plan_shop(shop)

    assert times_asked(program) == 2


def test_columns_that_follow_from_the_files_alone_are_sought_once(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = {"kind": "columns", "subject": "model.shop.daily", "by": ""}
    answer = answer_of_dbt()
    answer["ok"]["nodes"] = [{**node, "asks": [question] * (node["name"] == "shown")} for node in answer["ok"]["nodes"]]
    monkeypatch.setenv(PYTHON, str(record(shop.parent / "venv/dbt", answer, root=shop)))
    read = list[str]()
    parse = node_columns.parse_model
    monkeypatch.setattr(node_columns, "parse_model", lambda *args: (read.append(args[1]), parse(*args))[1])
    cache = Cache(shop.parent / "cache")

    def compile_shop() -> list[str]:
        read.clear()
        project = compile_dbt(Folder(shop, cache), DbtConfig(), os.environ, NO_ISOLATION, cache)
        assert project.by_id["model.shop.shown"].error == ""
        return sorted(read)

    assert compile_shop() == ["models/daily.sql", "models/stg_items.sql"]
    assert compile_shop() == []
    (shop / "models/daily.sql").write_text("select 1 as a")
    assert compile_shop() == ["models/daily.sql", "models/stg_items.sql"]


def test_an_edit_while_dbt_compiles_is_not_remembered(shop: Path, tmp_path: Path) -> None:
    program = tmp_path / "venv/dbt/dbt-python"
    before, text = (shop / "models/total.sql").read_text(), program.read_text()
    edit = f"pathlib.Path({str(shop / 'models/total.sql')!r}).write_text('select 2')\n        "
    program.write_text(text.replace("answer = json.loads(here", edit + "answer = json.loads(here"))
    plan_shop(shop)
    (shop / "models/total.sql").write_text(before)
    program.write_text(text)
    plan_shop(shop)

    assert times_asked(program) == 2
