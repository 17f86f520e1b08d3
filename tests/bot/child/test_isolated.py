"""What the bot says and hands down of isolation: the operator's word, and for which runs it may be waived."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from mergeplan.bot.child import isolated
from mergeplan.bot.child.isolated import brings_code, confinement_words, isolation_words
from mergeplan.bot.child.planner_process import Task, start_child
from mergeplan.bot.settings import Settings, load_settings
from mergeplan.planner.errors import RequestError

ECHO = "import json, os; print(json.dumps({name: each for name, each in os.environ.items() if 'ISOLATION' in name}))"


def isolation_said(settings: Settings, folder: Path, *, own_code: bool) -> dict[str, str]:
    """What a planner is told of isolation."""
    with start_child(settings, Task((), folder, "ann/shop", "run-1", own_code=own_code), "run-1") as child:
        assert child.stdout is not None
        variables: dict[str, str] = json.loads(child.stdout.read())
    return variables


@pytest.mark.parametrize(
    ("isolation", "own_code", "how"),
    [("required", True, "required"), ("required", False, "available"), ("none", True, "none"), ("none", False, "none")],
)
def test_what_is_merged_goes_on_where_nothing_can_be_isolated(
    isolation: str, own_code: bool, how: str, tmp_path: Path
) -> None:
    fields = {"home": tmp_path / "home", "planner_command": (sys.executable, "-c", ECHO), "isolation": isolation}
    assert isolation_said(Settings(**fields), tmp_path, own_code=own_code)["MERGEPLAN_ISOLATION"] == how


def test_the_planner_is_told_what_no_code_may_read(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("key")
    settings = Settings(
        home=tmp_path / "home",
        github_private_key_path=tmp_path / "key.pem",
        state_url=SecretStr(f"sqlite:///{tmp_path}/state.db?timeout=3"),
        planner_command=(sys.executable, "-c", ECHO),
    )

    hidden = isolation_said(settings, tmp_path, own_code=True)["MERGEPLAN_ISOLATION_HIDDEN"]

    assert hidden == f"{tmp_path}/home:{tmp_path}/key.pem:{tmp_path}/state.db"
    assert settings.github_private_key.get_secret_value() == "key"  # read once: the file may go


@pytest.mark.parametrize(
    ("changed", "brings"),
    [
        (["models/a.sql", "seeds/b.CSV", "config.yaml", "docs/c.md"], False),
        (["models/a.sql", "models/b.py"], True),
        (["lib/words.so"], True),
        (["data.pickle"], True),
        (["Makefile"], True),
        ([], False),
    ],
)
def test_in_doubt_a_change_brings_code(changed: list[str], brings: bool, tmp_path: Path) -> None:
    assert brings_code(changed, tmp_path) is brings


@pytest.mark.parametrize(("changed", "brings"), [(["models/a.sql"], True), (["models/a.md"], True), ([], False)])
def test_each_file_of_a_dbt_project_is_code_that_dbt_runs(changed: list[str], brings: bool, tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: shop")
    assert brings_code(changed, tmp_path) is brings


def test_the_log_and_readyz_name_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "cannot", lambda: "")
    assert isolation_words(Settings()) == "required"
    assert isolation_words(Settings(isolation="none")).endswith("(MERGEPLAN_ISOLATION=none)")
    monkeypatch.setattr(isolated, "cannot", lambda: "this is darwin, not Linux")
    assert "not possible here (this is darwin, not Linux)" in isolation_words(Settings())


def test_another_word_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPLAN_ISOLATION", "off")
    with pytest.raises(RequestError, match="MERGEPLAN_ISOLATION is not usable"):
        load_settings()


def test_whether_spark_is_confined_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "cannot_confine", lambda: "")
    assert confinement_words(Settings()) == "confined"
    monkeypatch.setattr(isolated, "cannot_confine", lambda: "this is darwin, not Linux")
    assert confinement_words(Settings()) == "not possible here (this is darwin, not Linux)"
    assert confinement_words(Settings(isolation_spark="none")).endswith("(MERGEPLAN_ISOLATION_SPARK=none)")
    assert confinement_words(Settings(isolation="none")).endswith("(MERGEPLAN_ISOLATION=none)")


def test_a_planner_child_is_told_what_its_spark_may_reach() -> None:
    told = Settings(isolation_spark_addresses="db:5432", isolation_spark_folders="/data").spark_variables()

    assert told == {"MERGEPLAN_ISOLATION_SPARK_ADDRESSES": "db:5432", "MERGEPLAN_ISOLATION_SPARK_FOLDERS": "/data"}
    assert Settings().spark_variables() == {}
    assert Settings(isolation_spark_addresses="").spark_variables() == {"MERGEPLAN_ISOLATION_SPARK_ADDRESSES": ""}
