"""How a project is opened: by arguments, else by the environment; what may hold a password is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

import mergeplan
from mergeplan.planner.errors import RequestError
from mergeplan.planner.parsing.files.schema import StateConfig
from mergeplan.planner.session.settings import SessionSettings, settings_of, url_of


def test_the_environment_says_what_no_argument_does(tmp_path: Path) -> None:
    said = {"MERGEPLAN_HOME": "/data", "MERGEPLAN_STATE_URL": "postgresql://a:secret@b/c", "MERGEPLAN_PROJECT": "shop"}

    settings = settings_of(said, tmp_path, "spark")

    assert (settings.folder, settings.state_project, settings.gateway) == (Path("/data"), "shop", "spark")
    assert "secret" not in repr(settings)
    assert SessionSettings(tmp_path).folder == tmp_path / ".mergeplan"


def test_standard_input_is_the_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPLAN_STATE_URL", "-")

    with pytest.raises(RequestError, match="MERGEPLAN_STATE_URL is `-`"):
        mergeplan.open(tmp_path)
    mergeplan.open(tmp_path, state_url="sqlite://").close()


def test_a_described_database_has_an_address(tmp_path: Path) -> None:
    described = StateConfig(type="postgres", host="h", user="a b", password="p@w", database="d")  # noqa: S106

    assert url_of(described, tmp_path) == "postgresql+psycopg://a%20b:p%40w@h/d"
