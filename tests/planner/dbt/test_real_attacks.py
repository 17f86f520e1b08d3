"""What a dbt project may hold that is hostile, or two things at once: each is a sentence at its file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.dbt.nodes import DbtProject
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.project.dbt.compile import compile_dbt
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from mergeplan.planner.python.dbt_code import child
from mergeplan.planner.python.isolation import NO_ISOLATION
from tests.planner.shop import NOW

from .recorded import SHOP
from .test_real_dbt import DBT, pytestmark  # noqa: F401 - the marks too

LOOP = "{% for NAME in range(90000) %}"
FOREVER = (
    LOOP.replace("NAME", "a") + LOOP.replace("NAME", "b") + "{% if a > b + 90000 %}x{% endif %}{% endfor %}{% endfor %}"
)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(PYTHON, str(DBT))
    root = Path(shutil.copytree(SHOP, tmp_path / "shop"))
    (root / "models/asks.sql").unlink()
    return root


def compiled(root: Path) -> DbtProject:
    return compile_dbt(Folder(root, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))


def load(root: Path) -> Project:
    return load_project(root, NOW, options=LoadOptions(strict=False))


def test_a_template_that_never_ends_stops_its_model(shop: Path) -> None:
    (shop / "models/loops.sql").write_text(f"select {{% if execute %}}{FOREVER}{{% endif %}} 1 as a")

    errors = {node.name: node.error for node in compiled(shop).nodes if node.error}
    assert errors == {"loops": f"Its template does not end: dbt was stopped after {child.COMPILING:.0f} seconds"}


def test_two_models_with_one_alias_are_an_error_that_names_both(shop: Path) -> None:
    (shop / "models/twin.sql").write_text("{{ config(alias='total') }} select 1 as a")

    with pytest.raises(ProjectError) as error:
        load(shop)
    assert "shop.total" in str(error.value)
    assert "models/twin.sql" in str(error.value)


def test_names_in_upper_case_are_one_name(shop: Path) -> None:
    (shop / "models/Upper.sql").write_text("select 1 as a")
    (shop / "models/reads.sql").write_text("select a from {{ ref('Upper') }}")
    project = load(shop)

    assert not project.refused
    assert project.models["shop.upper"].path == "models/Upper.sql"
    assert "shop.upper" in project.models["shop.reads"].depends_on


def test_two_names_that_differ_by_case_alone_are_an_error(shop: Path) -> None:
    (shop / "models/Total.sql").write_text("select 1 as a")
    (shop / "models/other").mkdir()

    try:
        said = [str(error) for error in load(shop).refused.errors]
    except ProjectError as error:
        said = [str(error)]
    assert any("shop.total" in text.lower() and "Total.sql" in text for text in said), said


def test_a_model_that_is_disabled_in_prod_is_no_model(shop: Path) -> None:
    (shop / "models/dev.sql").write_text("{{ config(enabled=target.name == 'dev') }} select 1 as a")
    project = load(shop)

    assert "shop.dev" not in project.models
    assert not project.refused

    (shop / "models/reads.sql").write_text("select a from {{ ref('dev') }}")
    with pytest.raises(ProjectError) as error:
        load(shop)
    assert "depends on a node named 'dev' which is disabled" in str(error.value)
    assert str(error.value).startswith("models/reads.sql:1: ")
