"""A PostgreSQL that others use is migrated on purpose only: it locks earlier versions of mergeplan out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from mergeplan.bot.service.action import run_action
from mergeplan.planner.errors import RequestError
from mergeplan.planner.state.database import list_revisions, open_database, open_transaction, version_table
from mergeplan_sandbox.server import Sandbox
from tests.upgrade.conftest import Release
from tests.upgrade.dump import rows_of, schema_of
from tests.upgrade.make_fixture import PACKAGES
from tests.upgrade.test_downgrade import mergeplan


@pytest.fixture(name="database_url")
def _database_url(new_postgresql: Callable[[], str]) -> str:
    return new_postgresql()


def read_version(url: str, part: str) -> str:
    database = open_database(url)
    with open_transaction(database, read=True) as connection:
        version = connection.execute(sa.text(f"SELECT version_num FROM {version_table(PACKAGES[part])}")).scalar_one()
    database.dispose()
    return str(version)


@pytest.mark.parametrize("arguments", [("plan", "--no-prompts"), ("environments",), ("doctor",)])
def test_a_command_leaves_a_shared_state_of_an_earlier_version(
    arguments: tuple[str, ...], release: Release, project: Path
) -> None:
    release.load("planner")
    version, before = read_version(release.url, "planner"), (schema_of(release.url), rows_of(release.url))

    ran = mergeplan(project, {"MERGEPLAN_STATE_URL": release.url}, *arguments)

    latest = list_revisions(PACKAGES["planner"])[-1]
    assert ran.returncode == 1
    assert f"The state database is of an earlier version ({version}) than this mergeplan ({latest})." in (
        ran.stderr + ran.stdout
    )
    assert (schema_of(release.url), rows_of(release.url)) == before


@pytest.fixture(name="run")
def _run(release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Run the Action by a workflow of a ref, on the databases of a release; its token is not valid."""
    monkeypatch.setenv("MERGEPLAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MERGEPLAN_STATE_URL", release.url)
    for part in PACKAGES:
        release.load(part)
    event = tmp_path / "event.json"
    event.write_text("{}")

    def run(ref: str) -> int:
        variables = {"GITHUB_EVENT_NAME": "schedule", "GITHUB_EVENT_PATH": str(event), "GITHUB_REPOSITORY": "acme/shop"}
        with Sandbox(tmp_path / "github") as github:
            access = {"GITHUB_TOKEN": "no-token", "GITHUB_API_URL": github.url}
            return run_action({**variables, **access, "GITHUB_REPOSITORY_ID": "7", "GITHUB_REF": ref})

    return run


def test_the_action_migrates_in_a_workflow_of_a_branch(run: Callable[[str], int], release: Release) -> None:
    assert run("refs/heads/main") == 1

    versions = {part: read_version(release.url, part) for part in PACKAGES}
    assert versions == {part: list_revisions(package)[-1] for part, package in PACKAGES.items()}


@pytest.mark.parametrize("ref", ["refs/pull/7/merge", "refs/heads/gh-readonly-queue/main/pr-7-0123456", ""])
def test_the_action_does_not_migrate_before_its_version_is_merged(
    ref: str, run: Callable[[str], int], release: Release
) -> None:
    before = schema_of(release.url), rows_of(release.url)

    with pytest.raises(RequestError, match="The state database is of an earlier version"):
        run(ref)

    assert (schema_of(release.url), rows_of(release.url)) == before
