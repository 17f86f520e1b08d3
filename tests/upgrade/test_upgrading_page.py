"""The steps of docs/guides/upgrading.md, there and back, on states of releases and with two versions."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.state.database import list_revisions
from tests.doc_commands import ROOT, Shell, blocks_of
from tests.planner.shop import write_shop
from tests.upgrade.conftest import RELEASES, Release
from tests.upgrade.dump import rows_of, schema_of
from tests.upgrade.make_fixture import PACKAGES

UPGRADING, BACKUP = "docs/guides/upgrading.md", "docs/guides/backup.md"
(MIGRATE,) = blocks_of(UPGRADING, "4. Migrate")
CHECK, _ = blocks_of(UPGRADING, "5. Check")
RESTORE_FOLDER, RESTORE_POSTGRESQL, *_ = blocks_of(BACKUP, "Restore")
NEXT = '''"""A table of the next version."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "r9998", "{last}"


def upgrade() -> None:
    op.create_table("of_tomorrow", sa.Column("id", sa.Integer))
'''


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("folder", RELEASES, ids=lambda path: path.name)
def test_the_state_of_a_release_is_upgraded_and_put_back(
    folder: Path, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    project = Path(shutil.copytree(folder / "planner/project", tmp_path / "project"))
    url = f"sqlite:///{project}/.mergeplan/state.db"
    back_up, restore = blocks_of(BACKUP, "Back up a folder")[0], RESTORE_FOLDER
    if kind == "postgresql":
        make: Callable[[], str] = request.getfixturevalue("new_postgresql")
        url, restore, (back_up,) = make(), RESTORE_POSTGRESQL, blocks_of(BACKUP, "Back up PostgreSQL")
    shell = Shell(project, {"MERGEPLAN_STATE_URL": url})
    Release(folder, url).load("planner")
    before = schema_of(url), rows_of(url)

    shell(back_up)
    shell(MIGRATE)
    output = shell(CHECK.replace("mergeplan doctor\n", ""))  # the release's tables are not here
    upgraded = schema_of(url)
    shell(restore)

    assert "No changes to plan" in output
    assert upgraded != before[0]
    assert (schema_of(url), rows_of(url)) == before


def write_next_version(folder: Path) -> Path:
    """Copy this code with one more migration of the planner's state; return the folder of its `mergeplan`."""
    for name in ("mergeplan", "planner", "bot"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    versions = folder / "planner/state/migrations/versions"
    (versions / "r9998_tomorrow.py").write_text(NEXT.format(last=list_revisions(PACKAGES["planner"])[-1]))
    program = folder / "bin/mergeplan"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} -m mergeplan "$@"\n')
    program.chmod(0o755)
    return program.parent


@pytest.mark.prove
def test_two_versions_take_turns_and_nothing_is_computed_again(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    write_shop(project, daily="", shown="", total="MODEL (name shop.total, kind FULL);\nSELECT id FROM shop.items")
    old = Shell(project)
    new = replace(old, programs=(write_next_version(tmp_path / "next"), *old.programs))
    url = f"sqlite:///{project}/.mergeplan/state.db"
    old("mergeplan plan --auto-apply --skip-tests")
    made, before = schema_of(url), rows_of(url)

    old(blocks_of(BACKUP, "Back up a folder")[0])
    new(MIGRATE)
    output = new(CHECK)
    upgraded, refused = schema_of(url), old.run(CHECK)
    old(RESTORE_FOLDER)
    went_back = old(CHECK)

    assert " wrong " not in output + went_back
    assert output.count("No changes to plan") == went_back.count("No changes to plan") == 1
    assert "of_tomorrow" in upgraded
    assert refused.returncode == 1
    assert "The state database is of a newer version (r9998)" in refused.stdout + refused.stderr
    assert (schema_of(url), rows_of(url)) == (made, before)
