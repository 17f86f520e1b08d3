"""GitHub's workflows and the Action: pinned by commit, no more rights than needed, a cache no project touches."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
OURS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
COPIED = sorted((ROOT / "docs" / "workflows").glob("*.yml"))
ACTION = ROOT / "action.yml"
USES = re.compile(r"uses: (\S+)(.*)")
RELEASE: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]


@pytest.mark.parametrize("path", [*OURS, *COPIED, ACTION], ids=lambda path: path.name)
def test_what_others_wrote_is_pinned_by_commit_with_its_version(path: Path) -> None:
    used = [match.groups() for match in USES.finditer(path.read_text())]
    others = [(name, comment) for name, comment in used if not name.startswith(("./", "your-organization/"))]

    assert [name for name, _ in others if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []
    assert [comment for _, comment in others if not re.fullmatch(r" # v\d+\.\d+\.\d+", comment)] == []


def test_one_action_is_pinned_at_one_version() -> None:
    pins: dict[str, set[str]] = {}
    for path in (*OURS, *COPIED, ACTION):
        for name, _ in USES.findall(path.read_text()):
            action, _, commit = name.partition("@")
            pins.setdefault("/".join(action.split("/")[:2]), set()).add(commit)

    assert {action: commits for action, commits in pins.items() if len(commits) > 1} == {}


def test_a_release_writes_only_where_a_job_publishes() -> None:
    writes = {
        job: {right for right, level in work["permissions"].items() if level == "write"}
        for job, work in RELEASE.items()
    }

    assert {job: rights for job, rights in writes.items() if rights} == {
        "attest": {"id-token", "attestations"},
        "pypi": {"id-token"},
        "image": {"packages"},
        "github": {"contents"},
        "action": {"contents"},
        "pages": {"pages", "id-token"},
    }


def test_what_publishes_waits_for_the_tests_and_runs_no_code_of_a_dependency() -> None:
    def before(job: str) -> set[str]:
        needs = RELEASE[job].get("needs", [])
        direct = {needs} if isinstance(needs, str) else set(needs)
        return direct.union(*(before(name) for name in direct))

    for job in ("pypi", "image", "github", "openvsx", "action", "pages"):
        assert {"check", "test", "dist"} <= before(job)
    for job in ("attest", "pypi", "pages"):
        assert not [step for step in RELEASE[job]["steps"] if "run" in step]


def test_the_action_saves_its_cache_before_anything_of_a_project_is_read() -> None:
    """And installs nothing that a project could choose: only the last step sees inputs about packages and secrets."""
    steps = yaml.safe_load(ACTION.read_text())["runs"]["steps"]
    (saved,) = [place for place, step in enumerate(steps) if "cache/save" in step.get("uses", "")]
    (restored,) = [step for step in steps if "cache/restore" in step.get("uses", "")]
    (last,) = [place for place, step in enumerate(steps) if step.get("id") == "mergeplan"]

    assert saved < last == len(steps) - 1
    assert "restore-keys" not in restored["with"]  # an environment of another source is no beginning
    assert steps[saved]["with"]["path"] == restored["with"]["path"]
    earlier = yaml.safe_dump(steps[:last])
    assert [name for name in ("token", "state-url", "package-", "project-path") if f"inputs.{name}" in earlier] == []
    assert steps[last]["run"].splitlines()[-1].startswith("exec mergeplan action")


def test_the_action_and_the_image_install_in_the_same_way() -> None:
    """At the locked versions, by one script."""
    assert '"$ACTION_PATH/release/install" "$DISTRIBUTION" "$ENVIRONMENT"' in ACTION.read_text()
    assert 'release/install "$DISTRIBUTION"' in (ROOT / "Dockerfile").read_text()
    assert "requirements.lock" in (ROOT / "release" / "install").read_text()


def name_source(action_path: Path, folder: Path, distribution: str) -> tuple[int, str]:
    """The exit code of the step that names what is installed, as a runner calls it, and its outputs."""
    (step,) = [step for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if step.get("id") == "source"]
    own = {"ACTION_PATH": action_path, "DISTRIBUTION": distribution, "PYTHON_VERSION": "3.11", "RUNNER_TEMP": folder}
    environ = {**os.environ, **{name: str(text) for name, text in own.items()}, "GITHUB_OUTPUT": str(folder / "output")}
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    code = subprocess.run(command, env=environ, check=False, capture_output=True, timeout=60).returncode
    return code, (folder / "output").read_text() if (folder / "output").exists() else ""


def test_each_version_and_distribution_is_installed_into_a_folder_of_its_own(tmp_path: Path) -> None:
    """Two in one job: the second would find the first one's command, and run that."""
    code, full = name_source(ROOT, tmp_path, "mergeplan")
    (tmp_path / "output").unlink()

    assert code == 0
    assert re.fullmatch(rf"digest=(\w{{32}})\nenvironment={tmp_path}/mergeplan-3\.11-\1\n", full)
    assert name_source(ROOT, tmp_path, "mergeplan-client")[1] == full.replace("/mergeplan-", "/mergeplan-client-")


def test_a_source_that_cannot_be_named_restores_no_environment_of_another(tmp_path: Path) -> None:
    """The step fails: an empty digest would be one name for every version whose source cannot be read."""
    code, outputs = name_source(tmp_path / "nowhere", tmp_path, "mergeplan")

    assert code != 0
    assert outputs == ""
