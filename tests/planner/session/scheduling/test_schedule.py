"""The schedule of an environment: a document from the state alone, as published."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest

import mergeplan
from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.contract.schedule import Schedule, ScheduledModel, schedule_schema
from mergeplan.planner.errors import ProjectError, RequestError
from mergeplan.planner.model.model import Column
from tests.planner.apply.test_janitor import Quiet
from tests.planner.cli.conftest import CommandLine
from tests.planner.shop import make_plan, write_shop

PUBLISHED = Path(__file__).parents[4] / "docs" / "schema" / "schedule.json"


@pytest.fixture
def promoted(tmp_path: Path) -> CommandLine:
    """The shop in prod, and its models gone."""
    shop = CommandLine(tmp_path)
    project, store = write_shop(tmp_path), shop.state
    environment = make_plan(project, store).new
    for snapshot in environment.snapshots.values():
        if snapshot.kind.has_view:
            store.tables.register(snapshot.table, (Column("id", "int"),))
    with store.leases.hold("prod", "test") as lease:
        promote_views(store, Quiet(), lease, Wanted(store.environments.get("prod"), environment), emit=ignore_event)  # type: ignore[arg-type]
    store.close()
    for path in (tmp_path / "models").iterdir():
        path.unlink()
    return shop


def by_name(schedule: Schedule) -> dict[str, ScheduledModel]:
    return {model.name: model for model in schedule.models}


def test_the_models_of_prod_are_read_without_their_files(promoted: CommandLine) -> None:
    schedule = Schedule.model_validate_json(promoted("schedule").out)
    models = by_name(schedule)

    assert list(models) == ["shop.apart", "shop.items", "shop.daily", "shop.total", "shop.shown"]
    daily = models["shop.daily"]
    assert (daily.parents, daily.cron, daily.interval_unit, daily.computed) == (("shop.items",), "@daily", "day", True)
    assert (daily.view, [column.type for column in daily.columns or ()]) == ("shop.daily", ["int"])
    assert [(audit.name, audit.blocking) for audit in daily.audits] == [("not_null", None)]
    assert not models["shop.items"].computed
    assert not models["shop.shown"].computed


def test_a_schedule_is_written_as_published_and_reads_as_the_same(promoted: CommandLine) -> None:
    target = promoted.root / "out.json"
    ran = promoted("schedule", "--to", str(target))
    document = json.loads(target.read_text())

    assert (ran.code, ran.out) == (0, "")
    assert jsonschema_rs.validator_for(schedule_schema()).is_valid(document)
    assert json.loads(PUBLISHED.read_text()) == schedule_schema(), (
        "mergeplan schema schedule > docs/schema/schedule.json"
    )
    assert json.loads(promoted("schedule").out) == document  # until the next promotion
    assert [path.name for path in promoted.root.glob(".out*")] == []


def test_with_the_address_of_the_state_no_file_of_the_project_is_read(promoted: CommandLine) -> None:
    (promoted.root / "config.yaml").unlink()
    url = f"sqlite:///{promoted.root}/.mergeplan/state.db"

    assert mergeplan.read_schedule("/nowhere", state_url=url, project="").revision == 1
    with pytest.raises(ProjectError, match=r"There is no config\.yaml"):
        mergeplan.read_schedule(promoted.root, state_url=url)


def test_what_is_not_there_is_named_and_not_created(promoted: CommandLine, tmp_path: Path) -> None:
    ran = promoted("schedule", "dev")
    elsewhere = tmp_path / "none.db"

    assert (ran.code, ran.err.startswith("Error: There is no environment `dev`.")) == (1, True)
    with pytest.raises(RequestError, match="There is no state database at"):
        mergeplan.read_schedule(state_url=f"sqlite:///{elsewhere}", project="")
    assert not elsewhere.exists()


def test_reading_a_schedule_imports_no_spark(promoted: CommandLine) -> None:
    code = f"import mergeplan, sys; mergeplan.read_schedule({str(promoted.root)!r}); print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)

    assert done.stdout == "False\n"
