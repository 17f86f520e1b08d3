"""What the planner of a release remembered is there, and work goes on where it stood."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.database import open_database, open_transaction, version_table
from mergeplan.planner.state.store import StateStore
from mergeplan.planner.state.tables import plans
from tests.planner.cli.conftest import CommandLine, Ran
from tests.upgrade import story
from tests.upgrade.conftest import Release
from tests.upgrade.dump import schema_of
from tests.upgrade.make_fixture import PACKAGES

AT = ("--execution-time", story.AT, "--output", "json")


@dataclass
class OnState(CommandLine):
    """`mergeplan` with a state at an address, which each call takes out of the environment."""

    url: str = ""

    def __call__(self, *arguments: str, answer: str = "") -> Ran:
        os.environ["MERGEPLAN_STATE_URL"] = self.url
        return super().__call__(*arguments, answer=answer)


@pytest.fixture(name="mergeplan")
def _mergeplan(release: Release, project: Path) -> Iterator[OnState]:
    """`mergeplan` of this version on the project and the state of a release, where no Spark may be started."""
    release.load("planner")
    on_state = OnState(project, url=release.url)
    assert on_state("migrate").out.endswith("The state database is up to date.\n")
    yield on_state
    os.environ.pop("MERGEPLAN_STATE_URL", None)


def test_environments_and_their_history_are_as_they_were(mergeplan: OnState) -> None:
    shown = mergeplan("environments", "--output", "json").result["environments"]
    history = mergeplan("history", "prod", "--output", "json").result["revisions"]

    assert {row["name"]: row["revision"] for row in shown} == {"prod": 4, "pr_7": 1, "dev": 1}
    assert [row["action"] for row in history] == ["promoted", "rolled_back", "promoted", "promoted"]


def test_a_project_without_edits_computes_nothing(mergeplan: OnState) -> None:
    plan = mergeplan("plan", "--explain", *AT).result["plan"]

    assert (plan["models"], plan["blockers"]) == ([], [])


def test_an_environment_keeps_its_tables_and_the_category_that_a_person_chose(mergeplan: OnState) -> None:
    mergeplan.edit(*story.ONLY_DEAR)

    daily, *below = mergeplan("plan", "pr_7", "--explain", *AT).result["plan"]["models"]

    assert (daily["name"], daily["category"], daily["rule"]) == ("shop.daily", "non_breaking", "categorized")
    assert [model["intervals"] for model in (daily, *below)] == [[], [], []]


def test_a_promotion_that_was_cut_off_is_reported(mergeplan: OnState) -> None:
    said = mergeplan("environments")

    assert said.code == 0
    assert "dev" in said.err


def test_a_plan_that_waited_is_applied_and_a_promotion_that_was_cut_off_is_finished(
    mergeplan: OnState, release: Release, engine: SparkEngine
) -> None:
    mergeplan.engine = engine
    mergeplan.edit(*story.EIGHT)
    store = StateStore(release.url)
    make_tables(store, engine)

    with store.database.reading() as tx:
        (waiting,) = tx.execute(tx.select(plans).where(plans.c.environment == "later"))

    applied = mergeplan("apply", waiting.id)
    finished = mergeplan("plan", "dev", "--auto-apply", *AT)

    assert (applied.code, finished.code) == (0, 0), (applied, finished)
    assert engine.fetch("SELECT eight FROM shop__dev.apart").rows is not None
    assert store.promotions.pending() == ()
    store.close()


def make_tables(store: StateStore, engine: SparkEngine) -> None:
    """The release's physical tables, empty: no statement of these tests reads a row of them."""
    for name, table in store.tables.all().items():
        columns = ", ".join(f"`{column.name}` {column.type}" for column in table.columns)
        engine.fetch(f"CREATE SCHEMA IF NOT EXISTS {name.rpartition('.')[0]}")
        engine.fetch(f"CREATE TABLE {name} ({columns}) USING parquet")


@pytest.mark.parametrize("package", PACKAGES)
def test_the_migrations_of_a_release_make_the_tables_that_it_made(package: str, release: Release) -> None:
    """A migration that was released is never edited: databases are past it."""
    dialect = "sqlite" if release.url.startswith("sqlite") else "postgresql"
    rows = (release.folder / package / "rows.jsonl").read_text()
    revision = rows.partition('{"version_num": "')[2].partition('"')[0]

    migrate(release.url, PACKAGES[package], revision)

    assert schema_of(release.url) == (release.folder / package / f"schema.{dialect}.sql").read_text()


def migrate(url: str, package: str, revision: str) -> None:
    """The migrations of this code up to a revision, on an empty database."""
    config = Config()
    config.set_main_option("script_location", "mergeplan.planner.state:migrations")
    config.set_main_option("version_locations", f"{package}:migrations/versions")
    config.set_main_option("path_separator", "newline")
    database = open_database(url)
    with open_transaction(database) as connection:
        config.attributes.update(connection=connection, version_table=version_table(package))
        command.upgrade(config, revision)
    database.dispose()
