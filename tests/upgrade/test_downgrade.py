"""A database that a newer version has migrated is refused by an older one, which changes nothing in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import sqlalchemy as sa

from mergeplan.planner.state.database import (
    list_revisions,
    open_database,
    open_transaction,
    open_upgraded,
    version_table,
)
from tests.planner.shop import write_shop
from tests.upgrade.dump import rows_of, schema_of
from tests.upgrade.make_fixture import PACKAGES

NEWER = "r9999"
SENTENCE = "The state database is of a newer version ({}) than this mergeplan ({}). Install the newer mergeplan."


def sentence(part: str) -> str:
    return SENTENCE.format(NEWER, list_revisions(PACKAGES[part])[-1])


def newer(url: str, package: str) -> None:
    """The database of a package as some later version leaves it: migrated further, with a table of its own."""
    database = open_upgraded(url, package)
    with open_transaction(database) as connection:
        connection.execute(sa.text(f"UPDATE {version_table(package)} SET version_num = '{NEWER}'"))
        connection.execute(sa.text("CREATE TABLE of_tomorrow (a int)"))
    database.dispose()


def mergeplan(folder: Path, variables: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "MERGEPLAN_CACHE": os.environ["MERGEPLAN_CACHE"], **variables}
    command = [sys.executable, "-m", "mergeplan", *arguments]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--no-prompts"),
        ("migrate",),
        pytest.param(("environments",), marks=pytest.mark.prove),
        pytest.param(("janitor",), marks=pytest.mark.prove),
    ],
)
def test_a_command_refuses_the_state_of_a_newer_version(
    arguments: tuple[str, ...], database_url: str, tmp_path: Path
) -> None:
    write_shop(tmp_path / "shop")
    newer(database_url, PACKAGES["planner"])
    before = schema_of(database_url), rows_of(database_url)

    ran = mergeplan(tmp_path / "shop", {"MERGEPLAN_STATE_URL": database_url}, *arguments)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.strip() == f"Error: {sentence('planner')}"
    assert (schema_of(database_url), rows_of(database_url)) == before


def test_the_service_does_not_start_on_the_database_of_a_newer_version(database_url: str, tmp_path: Path) -> None:
    newer(database_url, PACKAGES["bot"])
    before = schema_of(database_url), rows_of(database_url)
    variables = {
        "MERGEPLAN_STATE_URL": database_url,
        "MERGEPLAN_HOME": str(tmp_path / "home"),
        "MERGEPLAN_WEBHOOK_SECRET": "no-secret",
        "MERGEPLAN_GITHUB_TOKEN": "no-token",
        "MERGEPLAN_GITHUB_API_URL": "http://127.0.0.1:9",
        "MERGEPLAN_PORT": "0",
    }

    ran = mergeplan(tmp_path, variables, "serve")

    assert ran.returncode == 1
    assert sentence("bot") in ran.stderr
    assert "Traceback" not in ran.stderr
    assert (schema_of(database_url), rows_of(database_url)) == before


def test_the_tables_of_the_two_packages_have_versions_of_their_own(database_url: str) -> None:
    """What one part migrated does not keep the other one from its tables."""
    newer(database_url, PACKAGES["planner"])

    open_upgraded(database_url, PACKAGES["bot"]).dispose()

    database = open_database(database_url)
    with open_transaction(database, read=True) as connection:
        assert sa.inspect(connection).has_table("bot_pulls")
    database.dispose()
