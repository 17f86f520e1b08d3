"""The editor's extension is of the same version as the wheel, and claims the files that the language server reads."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from mergeplan.planner.lsp import project_files

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "editors" / "vscode"
PACKAGE: dict[str, Any] = json.loads((FOLDER / "package.json").read_text())
LOCK: dict[str, Any] = json.loads((FOLDER / "package-lock.json").read_text())
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_extension_has_the_version_of_the_wheel() -> None:
    """Without `rc1`: a version of an extension is three numbers."""
    version = re.sub(r"(a|b|rc)\d+$", "", PROJECT["version"])

    assert PACKAGE["version"] == LOCK["version"] == LOCK["packages"][""]["version"] == version


def test_the_extension_is_of_the_organization_of_pyproject() -> None:
    repository = PROJECT["urls"]["Repository"]

    assert PACKAGE["repository"]["url"] == repository
    assert PACKAGE["publisher"] == repository.split("/")[-2]
    assert PACKAGE["license"] == PROJECT["license"]


def test_the_extension_claims_what_the_server_reads() -> None:
    layout = json.loads((FOLDER / "src" / "layout.json").read_text())

    assert layout == {
        "configs": list(project_files.CONFIGS),
        "foreign": [name for name in project_files.CONFIGS if name not in project_files.OWN_CONFIGS],
        "texts": list(project_files.TEXTS),
        "folders": list(project_files.FOLDERS),
        "codeFolders": list(project_files.CODE_FOLDERS),
    }
    started = {event.removeprefix("workspaceContains:**/") for event in PACKAGE["activationEvents"]}
    assert started >= set(project_files.CONFIGS)


def test_dependencies_are_pinned_and_named_without_a_registry() -> None:
    packages = [package for path, package in LOCK["packages"].items() if path]
    pins = {**PACKAGE["dependencies"], **PACKAGE["devDependencies"]}

    assert [name for name, pin in pins.items() if not re.fullmatch(r"\d+\.\d+\.\d+", pin)] == []
    assert [package for package in packages if "resolved" in package or "integrity" not in package] == []


def test_an_untrusted_folder_names_no_program() -> None:
    untrusted = PACKAGE["capabilities"]["untrustedWorkspaces"]

    assert untrusted["supported"] == "limited"
    assert untrusted["restrictedConfigurations"] == ["mergeplan.command"]
    assert PACKAGE["extensionKind"] == ["workspace"]


def test_every_command_is_registered_and_every_page_of_the_walkthrough_exists() -> None:
    source = (FOLDER / "src" / "extension.ts").read_text()
    commands = [command["command"] for command in PACKAGE["contributes"]["commands"]]
    steps = PACKAGE["contributes"]["walkthroughs"][0]["steps"]

    assert [command for command in commands if f'add("{command}"' not in source] == []
    assert [step["id"] for step in steps if not (FOLDER / step["media"]["markdown"]).is_file()] == []
