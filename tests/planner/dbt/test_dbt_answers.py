"""A plan of a dbt project is shown again, without dbt and without planning, while all that it follows from stays."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.cli import answers
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.project.dbt import node_columns
from mergeplan.planner.project.dbt.compile import compile_dbt
from mergeplan.planner.project.dbt.inputs import PYTHON, VARIABLES
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.python.isolation import NO_ISOLATION
from tests.planner.cli.test_answers import recalled, shown

from .recorded import ANSWER, SHOP, record, times_asked

Change = Callable[[Path, pytest.MonkeyPatch], object]
NO_TESTS = ("plan", "--no-prompts", "--skip-tests")


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


def test_a_plan_of_a_dbt_project_is_shown_again_without_dbt(shop: Path, tmp_path: Path) -> None:
    first = shown(shop, NO_TESTS)

    answer = recalled(shop, NO_TESTS)
    assert answer is not None
    assert answer.out + answer.err == first == shown(shop, NO_TESTS)
    assert "shop.total" in first
    assert times_asked(tmp_path / "venv/dbt/dbt-python") == 1


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
    "the profile in the home folder": write("../home/.dbt/profiles.yml", "shop: {target: dev}"),
    "a profile in the project": write("profiles.yml", "shop: {target: dev}"),
    "another dbt": lambda _, patched: patched.setenv(PYTHON, "/nowhere/python"),
    "a package of dbt's Python": lambda root, _: (root.parent / "venv/lib/python3.11/site-packages/new").mkdir(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_dbt_project_follows_from_makes_its_plan_anew(
    change: str, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown(shop, NO_TESTS)
    assert recalled(shop, NO_TESTS) is not None
    CHANGES[change](shop, monkeypatch)

    assert recalled(shop, NO_TESTS) is None


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


def link_to_packages(shop: Path, _: pytest.MonkeyPatch) -> None:
    (shop.parent / "shared").mkdir()
    (shop / "dbt_packages/shared").symlink_to(shop.parent / "shared")


def name_folder_elsewhere(shop: Path, _: pytest.MonkeyPatch) -> None:
    with (shop / "dbt_project.yml").open("a") as file:
        file.write('model-paths: ["models", "../shared/models"]\n')


def read_by_spark(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A template asks for the columns of a source without types; here the answer is that there is no such Spark."""
    answer = answer_of_dbt()
    question = {"kind": "exists", "subject": "source.shop.raw.items", "by": ""}
    answer["ok"]["nodes"] = [{**node, "asks": [question]} for node in answer["ok"]["nodes"]]
    record(shop.parent / "venv/dbt", answer, root=shop)


NEVER: dict[str, Change] = {
    "a link to a folder": link_to_packages,
    "a folder elsewhere": name_folder_elsewhere,
    "a question to Spark": read_by_spark,
    "a variable that a shell changes": lambda _, patched: patched.setenv(VARIABLES, "DBT_A, SHLVL"),
    "a profile that reads such a variable": write(
        "../home/.dbt/profiles.yml",
        "shop: {target: prod, outputs: {prod: {type: spark, schema: shop, host: \"{{ env_var('SHLVL') }}\"}}}",
    ),
    "configuration that is code": write("config.py", "from mergeplan import Config"),
}


@pytest.mark.parametrize("setting", NEVER)
def test_what_may_change_unseen_is_planned_each_time(setting: str, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    NEVER[setting](shop, monkeypatch)
    shown_or_refused(shop)

    assert recalled(shop, NO_TESTS) is None


def shown_or_refused(shop: Path) -> None:
    try:
        shown(shop, NO_TESTS)
    except AssertionError as error:
        assert str(error)


def test_an_edit_while_dbt_compiles_keeps_nothing(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first dbt said, of a text that it may not have read, does not stand for the second."""
    program = tmp_path / "venv/dbt/dbt-python"
    before = (shop / "models/total.sql").read_text()
    text = program.read_text()
    edit = f"pathlib.Path({str(shop / 'models/total.sql')!r}).write_text('select 2')\n        "
    program.write_text(text.replace("answer = json.loads(here", edit + "answer = json.loads(here"))
    shown(shop, NO_TESTS)
    (shop / "models/total.sql").write_text(before)
    program.write_text(text)
    shown(shop, NO_TESTS)

    assert times_asked(program) == 2


def test_an_answer_is_not_kept_when_the_profile_changes_meanwhile(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = iter(["before", "after"])
    with monkeypatch.context() as patched:
        patched.setattr(answers, "digest_outside", lambda *_: next(moved, "after"))
        shown(shop, NO_TESTS)

    assert recalled(shop, NO_TESTS) is None
    shown(shop, NO_TESTS)
    assert recalled(shop, NO_TESTS) is not None
    os.utime(tmp_path / "home/.dbt/profiles.yml")
    assert recalled(shop, NO_TESTS) is None
