"""The files by which GitHub, pre-commit and editors know the repository are valid, and name what there is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
FORMS = sorted(path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
SCHEMAS = {
    "github-issue-forms": FORMS,
    "github-issue-config": [ROOT / ".github/ISSUE_TEMPLATE/config.yml"],
    "github-workflows": sorted([*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob("docs/workflows/*.yml")]),
    "github-actions": [ROOT / "action.yml"],
    "dependabot": [ROOT / ".github/dependabot.yml"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_each_file_is_as_its_schema_says(schema: str) -> None:
    files = [str(path) for path in SCHEMAS[schema]]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert files
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["bug.yml", "category.yml"])
def test_a_report_asks_for_the_output_of_doctor(name: str) -> None:
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE" / name).read_text())

    assert [field["validations"] for field in form["body"] if field.get("id") == "doctor"] == [{"required": True}]


def test_the_security_policy_names_a_form_that_exists() -> None:
    names = {yaml.safe_load(path.read_text())["name"] for path in FORMS}
    policy = " ".join((ROOT / "SECURITY.md").read_text().split())

    assert set(re.findall(r"the form \*(.+?)\*", policy)) <= names


def test_every_path_with_an_owner_exists() -> None:
    rules = [line.split() for line in (ROOT / ".github/CODEOWNERS").read_text().splitlines() if line[:1] in "*/"]

    assert all(len(rule) >= 2 and rule[1].startswith("@") for rule in rules if rule)
    assert [rule[0] for rule in rules if rule and rule[0] != "*" and not (ROOT / rule[0].strip("/")).exists()] == []


def test_each_hook_runs_a_tool_of_the_project() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    lock = (ROOT / "requirements.lock").read_text()

    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    for hook in hooks:
        program = hook["entry"].split()[0]
        in_venv = program.startswith(".venv/bin/") and f"\n{Path(program).name}==" in lock
        assert in_venv or os.access(ROOT / program, os.X_OK), program


def test_the_dev_container_runs_targets_of_the_makefile() -> None:
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    makefile = (ROOT / "Makefile").read_text()
    targets = container["postCreateCommand"].removeprefix("make ").split()

    assert set(targets) <= {".venv/.ready", *re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE)}
    assert {str(port) for port in container["forwardPorts"]} == container["portsAttributes"].keys()


@pytest.mark.parametrize("environment", [".venv", ".venv-dbt", ".venv-dbt-1.12", ".venv-consumers", ".venv-dagster"])
def test_setting_up_says_what_it_creates_installs_and_has_installed(environment: str) -> None:
    command = ["make", "--dry-run", "--always-make", "--no-print-directory", f"{environment}/.ready"]
    environ = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}  # of the make that runs us
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, check=True)
    steps = re.findall(r'(?m)^echo "(.*)"$', done.stdout.partition(f"-m venv {environment}\n")[2])

    assert f'echo "Creating {environment} with Python' in done.stdout
    assert [step.split()[0] for step in steps[:2]] == [
        "Installing",
        "Installing" if environment == ".venv" else "Installed",
    ]
    assert steps[-1].startswith("Compiling") or steps[-1].endswith(f"packages in {environment}")
