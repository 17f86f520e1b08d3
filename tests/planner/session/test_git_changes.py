"""`git:REF` against a real repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from planner.errors import RequestError
from planner.project.loader import Project, load_project
from planner.project.scaffold import write_example
from planner.session.git_changes import changed_since
from tests.planner.shop import NOW


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The example project, committed on `main`, one folder below the repository's root."""
    write_example(tmp_path / "shop")
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

    assert changed_since(project(repository))("main") == {"shop.new", "sqlmesh_example.seed_model"}


@pytest.mark.parametrize("ref", ["nowhere", "--output=x"])
def test_a_ref_that_git_does_not_know_is_told(ref: str, repository: Path) -> None:
    with pytest.raises(RequestError, match=r"^git cannot tell what changed: "):
        changed_since(project(repository))(ref)
    assert not (repository / "x").exists()
