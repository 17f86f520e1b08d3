"""The demo ends before it begins where its Spark cannot start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan_sandbox.demo import (
    ANN,
    BEN,
    REPOSITORY,
    SECRET,
    _service_environment,
    clone_address,
    plain_comment,
    run_demo,
)
from mergeplan_sandbox.git.repos import git
from mergeplan_sandbox.server import Sandbox


def test_a_spark_that_cannot_start_is_told_before_the_story_begins(tmp_path: Path) -> None:
    lacking = "table_format: delta\n      jars_dir: /nowhere"

    with pytest.raises(RequestError, match=r"Spark does not start: .*there is no folder `/nowhere`"):
        run_demo(tmp_path / "demo", keep=False, spark=lacking)


def test_the_checks_of_the_demo_lead_to_the_pages_of_its_service(tmp_path: Path) -> None:
    with Sandbox(tmp_path / "github", webhook_url="http://127.0.0.1:1/webhook", secret=SECRET) as github:
        environment = _service_environment(github, tmp_path, tmp_path / "key", 4321)

    assert environment["MERGEPLAN_PUBLIC_URL"] == "http://127.0.0.1:4321"


def test_the_address_that_the_demo_prints_may_push(tmp_path: Path) -> None:
    with Sandbox(tmp_path / "github", webhook_url="http://127.0.0.1:1/webhook", secret=SECRET) as github:
        for login in (ANN, BEN):
            github.add_user(login)
        github.create_repository(REPOSITORY, {"README.md": "A shop.\n"})
        github.set_permission(REPOSITORY, BEN, "write")
        git(tmp_path, "clone", "--quiet", clone_address(github), "shop")
        git(tmp_path / "shop", "push", "--quiet", "origin", "HEAD:refs/heads/more")

        assert github.head(REPOSITORY, "more") == github.head(REPOSITORY)


def test_a_terminal_keeps_the_lines_of_a_comment() -> None:
    table = "| x |\n| --- |\n| nothing<br>shared |"
    body = f"### a\n\n> [!TIP]\n> **Ready.** So.\n\n{table}\n<details>\n<summary>Diff</summary>"

    assert plain_comment(body).split("\n") == [
        "### a", "", "> **Ready.** So.", "", "| x |", "| --- |", "| nothing; shared |", "", "**Diff**",
    ]  # fmt: skip


@pytest.mark.parametrize("verb", ["demo", "sandbox"])
@pytest.mark.parametrize(
    ("installed", "reason"),
    [("", "."), ("types.SimpleNamespace(version='0.0.9')", ", and `mergeplan-sandbox` is 0.0.9 beside mergeplan 0.")],
)
def test_without_its_packages_the_verb_says_what_to_install(
    verb: str, installed: str, reason: str, tmp_path: Path
) -> None:
    code = (
        f"import importlib.metadata as m, sys, types\nm.distributions = lambda **_: iter([{installed}])\n"
        f"sys.argv[1:] = ['{verb}']\nfrom mergeplan.bot.main import main\nmain()"
    )
    argv = [sys.executable, "-c", code]
    ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)

    assert (ran.returncode, ran.stdout, list(tmp_path.iterdir())) == (1, "", [])
    assert f"needs the packages of `mergeplan[demo]`{reason}" in ran.stderr
    assert f"uvx 'mergeplan[demo]' {verb}" in ran.stderr


def test_the_service_and_the_action_import_nothing_of_the_sandbox() -> None:
    code = "import sys, mergeplan.bot.cli; print({'mergeplan_sandbox', 'graphql', 'nh3'} & set(sys.modules))"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
