"""What a dbt project asks for is read without running it, and what would choose an address is refused at its line."""

from __future__ import annotations

import json

import pytest

from mergeplan.bot.child.dbt_requirements import DbtRequirements, dbt_requirements_of
from mergeplan.bot.child.reader import RepositoryReader
from mergeplan.planner.errors import ProjectError

PROJECT = {"dbt_project.yml": "name: shop\nversion: '1.0'\n"}
RATES = [{"package": "acme/rates", "version": [">=1.0.0", "<2.0.0"]}]
HUB = "packages:\n  - package: acme/rates\n    version: ['>=1.0.0', '<2.0.0']\n"


def test_packages_of_the_hub_and_folders_of_the_project_are_taken() -> None:
    texts = {**PROJECT, "packages.yml": f"{HUB}  - local: ./shared/tools\n", "package-lock.yml": HUB}
    wanted = RepositoryReader().dbt_requirements(texts)

    assert isinstance(wanted, DbtRequirements)
    assert (wanted.path, wanted.install_path, wanted.local) == ("packages.yml", "dbt_packages", ("shared/tools",))
    assert (wanted.wrong, wanted.unread) == (None, ("shared/tools",))


def test_dbt_reads_what_was_judged_and_no_text_of_the_repository() -> None:
    texts = {
        **PROJECT,
        "packages.yml": f"# {{{{ env_var('X') }}}}\n{HUB}  - {{local: tools, name: other}}\n",
        "package-lock.yml": f"{HUB}sha1_hash: abc1\n",
        "tools/dbt_project.yml": "name: tools\nversion: '7'\non-run-start: \"{{ env_var('X') }}\"\n",
        "tools/dependencies.yml": "packages: [{local: deeper}]\nprojects: [{name: \"{{ env_var('X') }}\"}]\n",
        "deeper/dbt_project.yml": "name: deeper\n",
    }
    wanted = RepositoryReader().dbt_requirements(texts)

    assert wanted is not None
    assert (wanted.wrong, wanted.local, wanted.unread) == (None, ("tools", "deeper"), ())
    assert {path: json.loads(text) for path, text in (wanted.files or {}).items()} == {
        "packages.yml": {"packages": [*RATES, {"local": "tools", "name": "other"}]},
        "package-lock.yml": {"packages": RATES, "sha1_hash": "abc1"},
        "tools/dbt_project.yml": {"name": "tools", "version": "1.0"},
        "tools/packages.yml": {"packages": [{"local": "deeper"}]},
        "deeper/dbt_project.yml": {"name": "deeper", "version": "1.0"},
        "deeper/packages.yml": {"packages": []},
    }


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
        ("package: \"{{ env_var('X') }}/y\"", "A template in the entry of a package"),
        (
            "{package: a/b, version: \"{% filter replace('x', env_var('X')) %}x{% endfilter %}\"}",
            "A template in the entry",
        ),
        ("{package: a/b, version: [1.0.0, '{# x #}1']}", "A template in the entry"),
        ("{package: a/b, \"{{ 'version' }}\": 1.0.0}", "A template in the entry"),
        ("{package: a/b, version: 1.0.0, unrendered: {version: '1'}}", "`unrendered` is no setting of a package"),
        ("{package: a/b, version: 'x/y'}", "`x/y` is no version"),
        ("{local: shared, name: ../up}", "`../up` is no name of a package"),
        ("local: ~root/x", "The folder `~root/x` is not below the project's"),
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


@pytest.mark.parametrize("path", ["sub/packages.yml", "sub/dependencies.yml", "deep/er/packages.yml"])
@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("{tarball: 'http://127.0.0.1:80/x.tgz', name: x}", "A package by `tarball` is not fetched here"),
        ("{git: 'https://example.com/x.git', revision: \"{{ env_var('X') }}\"}", "A template in the entry"),
        ("{package: a/b, version: \"{{ env_var('HTTPS_PROXY') }}\"}", "A template in the entry of a package"),
        ("local: ../outside", "The folder `../outside` is not below the project's"),
    ],
)
def test_a_folder_of_the_project_is_judged_as_the_project_is(path: str, entry: str, why: str) -> None:
    texts = {
        **PROJECT,
        "packages.yml": "packages: [{local: sub}]\n",
        "sub/dbt_project.yml": "name: sub\n",
        "sub/packages.yml": "packages: [{local: deep/er}]\n",
        "deep/er/dbt_project.yml": "name: deeper\n",
        **({"sub/packages.yml": ""} if path == "sub/dependencies.yml" else {}),
        path: f"packages:\n  - {entry}\n",
    }

    wanted = RepositoryReader().dbt_requirements(texts)

    assert wanted is not None
    assert wanted.wrong is not None
    assert wanted.wrong.message.startswith(why)
    assert (wanted.wrong.path, wanted.wrong.line) == (path, 2)


@pytest.mark.parametrize("name", ["'{{ 1 }}'", "../up", "[a]", "'a b'"])
def test_the_name_of_a_folders_project_is_a_name(name: str) -> None:
    texts = {**PROJECT, "packages.yml": "packages: [{local: sub}]\n", "sub/dbt_project.yml": f"name: {name}\n"}

    wanted = dbt_requirements_of(texts.get)

    assert wanted is not None
    assert wanted.wrong is not None
    assert (wanted.wrong.path, wanted.wrong.line) == ("sub/dbt_project.yml", 1)
    assert "is no name of a dbt project" in wanted.wrong.message


def test_a_chain_of_folders_ends() -> None:
    def read(path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        number = int(folder.removeprefix("f") or 0)
        texts = {"dbt_project.yml": f"name: p{number}\n", "packages.yml": f"packages: [{{local: f{number + 1}}}]\n"}
        return texts.get(name)

    wanted = dbt_requirements_of(read)

    assert wanted is not None
    assert wanted.wrong is not None
    assert "more than 200 folders" in wanted.wrong.message
