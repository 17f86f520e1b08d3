"""The quickstart, followed command by command: what the page shows is what is printed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import CommandLine, clear_tables
from tests.planner.cli.quickstart_page import PAGE, Reader, hide_times

TEXT = PAGE.read_text(encoding="utf-8")
TESTED = "Running 1 unit test...\n"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, shared_engine: SparkEngine) -> Iterator[Reader]:
    """Somebody who has typed every command of the page, in their order."""
    reader = Reader(CommandLine(tmp_path_factory.mktemp("sqlmesh-example"), shared_engine), shared_engine.jobs)
    with clear_tables(shared_engine):
        reader.follow(TEXT)
    yield reader


def test_the_page_shows_what_its_commands_print(reader: Reader) -> None:
    assert hide_times(reader.text) == hide_times(TEXT), "python -m tests.planner.cli.quickstart_page"


def test_prod_gets_the_edit_by_a_virtual_update_without_a_spark_job(reader: Reader) -> None:
    initial, update, repeated = (ran for command, ran in reader.ran if command == "mergeplan plan")

    assert initial.jobs
    assert (update.jobs, repeated.jobs) == (0, 0)
    assert repeated.out.endswith("\nNo changes to plan: the project matches the `prod` environment.\n")


def test_only_a_test_that_runs_and_an_error_are_on_standard_error(reader: Reader) -> None:
    errors = {command: ran.err for command, ran in reader.ran if ran.err not in ("", TESTED)}

    assert {command.split()[1]: text.partition(":")[0] for command, text in errors.items()} == {
        "plan": "Error",
        "aply": "Usage",
    }
