"""Exposures: who uses models outside of the project, as its files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.model.exposure import Exposure
from mergeplan.planner.project.loader import LoadOptions, load_project
from tests.planner.shop import NOW, write_shop

REPORT = "- name: Weekly report\n  type: dashboard\n  owner: Ann\n  models: [shop.total]\n"


def test_a_project_says_who_uses_its_models(tmp_path: Path) -> None:
    write_shop(tmp_path)
    (tmp_path / "exposures.yaml").write_text(REPORT)
    (tmp_path / "exposures").mkdir()
    (tmp_path / "exposures/app.yml").write_text("- name: App\n  url: https://app\n  models: [shop.items, shop.total]\n")

    assert load_project(tmp_path, NOW).exposures == (
        Exposure("Weekly report", ("shop.total",), "dashboard", "Ann"),
        Exposure("App", ("shop.items", "shop.total"), url="https://app"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\n", "exposures.yaml:1: Expected a list of exposures here."),
        ("- name: x\n", "exposures.yaml:1: An exposure needs a `name` and `models`."),
        ("- name: x\n  models: [shop.totl]\n", "exposures.yaml:2: `shop.totl` is no model of this project."),
        ("- name: x\n  ownr: y\n  models: []\n", "exposures.yaml:2: `ownr` is not a key of an exposure."),
        ("- name: x\n  owner: [y]\n  models: []\n", "exposures.yaml:2: `owner` must be a string."),
        ("- name: x\n  url: 'javascript:x'\n  models: []\n", "exposures.yaml:2: `url` must begin with"),
        ("- name: x\n  models: [3]\n", "exposures.yaml:2: `models` must be a list of names."),
    ],
)
def test_what_is_wrong_with_an_exposure_is_said_at_its_line(tmp_path: Path, text: str, message: str) -> None:
    write_shop(tmp_path)
    (tmp_path / "exposures.yaml").write_text(text)

    with pytest.raises(ProjectErrors) as caught:
        load_project(tmp_path, NOW)
    assert message in str(caught.value)


def test_an_exposure_of_a_model_that_cannot_be_opened_is_no_error_of_its_own(tmp_path: Path) -> None:
    write_shop(tmp_path)
    (tmp_path / "exposures.yaml").write_text(REPORT)
    (tmp_path / "models/total.sql").write_text("MODEL (name shop.total, kind FULL); SELECT (")

    project = load_project(tmp_path, NOW, options=LoadOptions(strict=False))
    assert [exposure.name for exposure in project.exposures] == ["Weekly report"]
