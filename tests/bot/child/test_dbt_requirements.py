"""What a dbt project asks for is read without running it, and what would choose an address is refused at its line."""

from __future__ import annotations

import pytest

from mergeplan.bot.child.dbt_requirements import DbtRequirements, dbt_requirements_of
from mergeplan.bot.child.reader import RepositoryReader
from mergeplan.planner.errors import ProjectError

PROJECT = {"dbt_project.yml": "name: shop\nversion: '1.0'\n"}
HUB = "packages:\n  - package: acme/rates\n    version: ['>=1.0.0', '<2.0.0']\n"


def test_packages_of_the_hub_and_folders_of_the_project_are_taken() -> None:
    texts = {**PROJECT, "packages.yml": f"{HUB}  - local: ./shared/tools\n", "package-lock.yml": HUB}

    assert RepositoryReader().dbt_requirements(texts) == DbtRequirements(
        "packages.yml", "dbt_packages", ("shared/tools",)
    )


@pytest.mark.parametrize(
    "texts",
    [
        {},
        PROJECT,
        {"packages.yml": HUB},
        {**PROJECT, "packages.yml": "packages: []\n", "package-lock.yml": HUB},
        {**PROJECT, "dependencies.yml": "projects: [{name: finance}]\n"},
    ],
)
def test_a_project_that_asks_for_nothing_needs_nothing(texts: dict[str, str]) -> None:
    assert dbt_requirements_of(texts.get) is None


@pytest.mark.parametrize("path", ["packages.yml", "dependencies.yml", "package-lock.yml"])
@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("git: https://example.com/x.git", "A package by `git` is not fetched here"),
        ("tarball: http://10.0.0.1/x.tgz", "A package by `tarball` is not fetched here"),
        ("package: acme/../x", "This is not a package of dbt's hub"),
        ("package: \"{{ env_var('X') }}/y\"", "A template in the name or version"),
        ("local: ../shared", "The folder `../shared` is not below the project's"),
        ("local: /etc", "The folder `/etc` is not below the project's"),
    ],
)
def test_what_would_choose_an_address_is_not_taken(path: str, entry: str, why: str) -> None:
    texts = {**PROJECT, "packages.yml": HUB, path: f"{HUB}  - {entry}\n"}

    wanted = RepositoryReader().dbt_requirements(texts)

    assert wanted is not None
    assert wanted.wrong is not None
    assert wanted.wrong.message.startswith(why)
    assert (wanted.wrong.path, wanted.wrong.line, wanted.local) == (path, 4, ())


@pytest.mark.parametrize("folder", ["../../other", "/etc", "a/.git/hooks", "'{{ var(1) }}'", "."])
def test_packages_lie_in_the_projects_folder_alone(folder: str) -> None:
    project = f"name: shop\npackages-install-path: {folder}\n"
    with pytest.raises(ProjectError, match="is not below the project's"):
        dbt_requirements_of({"dbt_project.yml": project, "packages.yml": HUB}.get)
