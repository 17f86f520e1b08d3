"""`git:REF` against a real repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from planner.project.scaffold import write_example
from tests.planner.cli.conftest import CommandLine


@pytest.fixture
def repository(offline: CommandLine) -> CommandLine:
    """The example project, committed on `main`, one folder below the repository's root."""
    write_example(offline.root / "shop")
    git(offline.root, "init", "-q", "-b", "main")
    git(offline.root, "add", ".")
    git(offline.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
    return CommandLine(offline.root / "shop")


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, timeout=30)


def test_git_selects_models_whose_files_changed_or_are_new(repository: CommandLine) -> None:
    with (repository.root / "seeds/seed_data.csv").open("a") as file:
        file.write("8,1,2020-01-07\n")
    repository.write("models/new.sql", "MODEL (name shop.new, kind FULL);\nSELECT 1 AS x")

    ran = repository("dag", "git:main", "--output", "json")

    assert (ran.code, ran.err) == (0, "")
    assert [model["name"] for model in ran.result["models"]] == ["shop.new", "sqlmesh_example.seed_model"]


@pytest.mark.parametrize("ref", ["nowhere", "--output=x"])
def test_a_ref_that_git_does_not_know_is_told(ref: str, repository: CommandLine) -> None:
    ran = repository("dag", f"git:{ref}")

    assert ran.code == 1
    assert ran.err.startswith("Error: git cannot tell what changed: ")
    assert not (repository.root / "x").exists()
