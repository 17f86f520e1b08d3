"""`git:REF` against a real repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.project.loader import Project, load_project
from mergeplan.planner.project.scaffold import Wishes, write_project
from mergeplan.planner.session.use_cases.git_changes import git_change_finder
from tests.planner.shop import NOW


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The example project, committed on `main`, one folder below the repository's root."""
    write_project(tmp_path / "shop", Wishes())
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
    return tmp_path / "shop"


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, timeout=30)


def project(root: Path) -> Project:
    return load_project(root, NOW)


def test_git_selects_models_whose_files_changed_or_are_new(repository: Path) -> None:
    with (repository / "seeds/seed_data.csv").open("a") as file:
        file.write("8,1,2020-01-07\n")
    (repository / "models/new.sql").write_text("MODEL (name shop.new, kind FULL);\nSELECT 1 AS x")

    assert git_change_finder(project(repository))("main") == {"shop.new", "sqlmesh_example.seed_model"}


@pytest.mark.parametrize("ref", ["nowhere", "--output=x"])
def test_a_ref_that_git_does_not_know_is_told(ref: str, repository: Path) -> None:
    with pytest.raises(RequestError, match=r"^git cannot tell what changed: "):
        git_change_finder(project(repository))(ref)
    assert not (repository / "x").exists()


@pytest.mark.parametrize("common", ["", "logs"])
def test_a_repository_among_a_projects_own_files_runs_nothing(common: str, repository: Path, tmp_path: Path) -> None:
    """A pull request may hold a folder that git takes for a repository, with a configuration that names programs."""
    ran, inner = tmp_path / "ran", repository / common
    inner.mkdir(exist_ok=True)
    git(repository, "clone", "-q", "--bare", "..", str(tmp_path / "bare"))
    git(tmp_path / "bare", "read-tree", "main")
    for path in (tmp_path / "bare").iterdir():
        path.rename((repository if path.name in ("HEAD", "index") else inner) / path.name)
    settings = f"\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {tmp_path}\n"
    (inner / "config").write_text(f'[core]\n{settings}[filter "evil"]\n\tclean = "touch {ran}; cat"\n')
    (tmp_path / ".gitattributes").write_text("* filter=evil\n")
    if common:
        (repository / "commondir").write_text(f"{common}\n")

    with pytest.raises(RequestError, match="holds what git takes for a repository of its own"):
        git_change_finder(project(repository))("main")

    assert not ran.exists()
