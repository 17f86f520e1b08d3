"""A pull request's config.yaml under the base branch's: the password of a gateway is no text for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import ProjectError
from planner.project.loader import LoadOptions, load_project
from tests.planner.project.test_loader import CONFIG, NOW, project_of

SECRET = "hunter2"  # noqa: S105  # nobody's
BASE = CONFIG + "      config:\n        spark.hadoop.password: \"{{ env_var('PASSWORD') }}\"\n"
OPEN = "variables:\n  stage: \"{{ env_var('STAGE') }}\"\n"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", SECRET)
    monkeypatch.setenv("STAGE", "blue")


def refused(tmp_path: Path, own: str) -> str:
    (tmp_path / "ruling.yaml").write_text(BASE + OPEN)
    root = project_of(tmp_path / "p", {"config.yaml": own})
    with pytest.raises(ProjectError) as error:
        load_project(root, NOW, options=LoadOptions(gateways_from=tmp_path / "ruling.yaml"))
    return str(error.value)


@pytest.mark.parametrize(
    "own",
    [
        BASE + "variables:\n  x: \"{{ env_var('PASSWORD') }}\"\n",
        BASE + "variables:\n  x: [\"a{{ env_var('PASSWORD', 'b') }}\"]\n",
        BASE.replace("hadoop.password: ", "hadoop.password: &it ") + "variables:\n  x: *it\n",
        BASE + "project: \"{{ env_var('PASSWORD') }}\"\n",
        BASE + "\"{{ env_var('PASSWORD') }}\": 1\n",
    ],
)
def test_what_the_base_branch_keeps_for_gateways_is_closed(own: str, tmp_path: Path) -> None:
    said = refused(tmp_path, own)

    assert "The environment variable `PASSWORD` is reserved for the gateways of the base branch." in said
    assert said.startswith("config.yaml:")
    assert SECRET not in said


@pytest.mark.parametrize(
    "own",
    [
        BASE.replace("type: spark", "type: \"{{ env_var('PASSWORD') }}\""),
        BASE + "default_gateway: \"{{ env_var('PASSWORD') }}\"\n",
    ],
)
def test_an_error_in_a_pull_requests_own_gateways_does_not_tell_it(own: str, tmp_path: Path) -> None:
    assert SECRET not in refused(tmp_path, own)


def test_other_variables_stay_open_and_the_base_branchs_gateways_hold(tmp_path: Path) -> None:
    (tmp_path / "ruling.yaml").write_text(BASE + OPEN)
    root = project_of(tmp_path / "p", {"config.yaml": BASE + OPEN})

    project = load_project(root, NOW, options=LoadOptions(gateways_from=tmp_path / "ruling.yaml"))

    assert project.defaults.variables == {"stage": "blue"}
    assert project.config.gateways["spark"].connection.config == {"spark.hadoop.password": SECRET}
