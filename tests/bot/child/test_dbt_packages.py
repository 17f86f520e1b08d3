"""The packages of a dbt project are fetched once, apart, and lie where its dbt looks for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.bot.child.dbt_packages import lay_dbt_packages, read_dbt_requirements
from mergeplan.bot.child.reader import RepositoryReader
from mergeplan.bot.fetching.origins import HUB
from mergeplan.bot.settings import Settings
from mergeplan.planner.errors import Cancelled, ProjectError, RequestError
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.project.dbt.inputs import PYTHON

from .dbt_hub import serve_hub

DBT = Path(__file__).parents[3] / ".venv-dbt/bin/python"
ASKS = "packages: [{package: acme/rates, version: '1.0.0'}, {local: shared}]\n"
RATES = {"acme/rates": {"1.0.0": {"macros/rate.sql": "{% macro rate() %}7{% endmacro %}"}, "2.0.0": {}}}
real = pytest.mark.skipif(not DBT.exists(), reason="no dbt: `make .venv-dbt/.ready` installs it")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A dbt project that asks for a package of the hub, and for a folder of its own."""
    folder = tmp_path / "shop"
    (folder / "shared/macros").mkdir(parents=True)
    tmp_path.chmod(0o755)
    (folder / "dbt_project.yml").write_text("name: shop\nversion: '1.0'\n")
    (folder / "packages.yml").write_text(ASKS)
    (folder / "shared/dbt_project.yml").write_text("name: tools\nversion: '1.0'\n")
    (folder / "shared/macros/tool.sql").write_text("{% macro tool() %}1{% endmacro %}")
    (folder / "shared/passwords").symlink_to("/etc/passwd")
    return folder


def lay(project: Path, hub: str = "", should_stop: Callable[[], str] = lambda: "") -> list[str]:
    """The files of the packages."""
    home = project.parent / "home"
    settings = Settings(home=home, isolation="none" if cannot() else "required")
    environ = {PYTHON: str(DBT), HUB: hub, "SECRET": "x"}
    wanted = read_dbt_requirements(RepositoryReader(), project)
    lay_dbt_packages(settings, home, wanted, project, environ, should_stop)
    packages = project / "dbt_packages"
    return sorted(path.relative_to(packages).as_posix() for path in packages.rglob("*") if not path.is_dir())


@real
@pytest.mark.prove
def test_packages_are_fetched_once_for_each_lock(project: Path) -> None:
    with serve_hub(RATES) as hub:
        first = lay(project, hub)
        (project / "dbt_packages").rename(project.parent / "before")
    assert first == ["rates/dbt_project.yml", "rates/macros/rate.sql", "tools/dbt_project.yml", "tools/macros/tool.sql"]
    assert lay(project, hub) == first  # and the hub is gone

    (project / "dbt_packages").rename(project.parent / "later")
    (project / "packages.yml").write_text(ASKS.replace("1.0.0", "2.0.0"))
    with pytest.raises(ProjectError, match="dbt packages cannot be installed") as failed:
        lay(project, hub)
    assert str(failed.value.place) == "packages.yml"
    assert not (project / "dbt_packages").exists()


@real
@pytest.mark.prove
def test_what_is_not_in_the_hub_is_a_sentence_and_a_stop_is_obeyed(project: Path) -> None:
    (project / "packages.yml").write_text("packages: [{package: acme/none, version: '1.0.0'}]\n")
    with serve_hub(RATES) as hub:
        with pytest.raises(ProjectError, match="acme/none"):
            lay(project, hub)
        with pytest.raises(Cancelled, match="superseded"):
            lay(project, hub, lambda: "superseded")


def test_a_repository_by_its_address_is_an_error_at_its_line(project: Path) -> None:
    (project / "packages.yml").write_text("packages:\n- git: https://host.example/x.git\n")

    with pytest.raises(ProjectError, match="A package by `git` is not fetched here") as refused:
        lay(project)
    assert str(refused.value.place) == "packages.yml:2"


@pytest.mark.parametrize("asks", [ASKS, "packages: [{git: 'https://host.example/x.git'}]"])
def test_packages_that_the_repository_holds_are_left_alone(project: Path, asks: str) -> None:
    (project / "packages.yml").write_text(asks)
    (project / "dbt_packages/rates").mkdir(parents=True)
    (project / "dbt_packages/rates/dbt_project.yml").write_text("name: rates\n")

    assert lay(project) == ["rates/dbt_project.yml"]


def test_without_a_dbt_it_is_said_what_to_do(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.DBT", "")

    with pytest.raises(RequestError, match="there is no dbt to fetch its packages") as refused:
        lay(project)
    assert "MERGEPLAN_DBT_PYTHON" in refused.value.hint


@pytest.mark.parametrize("behind", ["dbt_project.yml", "packages.yml"])
def test_a_folder_behind_a_link_is_refused(project: Path, tmp_path: Path, behind: str) -> None:
    (tmp_path / "outside").mkdir()
    (project / "link").symlink_to(tmp_path / "outside")
    texts = {
        "dbt_project.yml": "name: shop\npackages-install-path: link/in\n",
        "packages.yml": ASKS.replace("shared", "link"),
    }
    (project / behind).write_text(texts[behind])

    with pytest.raises(ProjectError, match="is behind a link"):
        lay(project)
    assert os.listdir(tmp_path / "outside") == []
