"""`kill -9` of the service with the planner itself at work: Spark and all are found and ended, the work is finished."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.records import PullState
from mergeplan.planner.isolation.processes import birth
from mergeplan.planner.state.tables import intervals
from tests.bot.conftest import SHOP, until
from tests.bot.test_crash import Scene
from tests.bot.test_real_planner import EXAMPLE, rows
from tests.planner.conftest import new_postgresql, postgresql  # noqa: F401 - fixtures

pytestmark = pytest.mark.prove

PATIENCE = 900.0
MODEL = "models/incremental_model.sql"
DAYS = 100  # in a batch of the pull request's own table


@pytest.fixture(name="scene", params=["sqlite", "postgresql"])
def _scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    if request.param == "postgresql":
        scene.url = request.getfixturevalue("new_postgresql")()
        scene.environ["MERGEPLAN_STATE_URL"] = scene.url
    del scene.environ["MERGEPLAN_PLANNER_COMMAND"]
    scene.environ["MERGEPLAN_WARM"] = "true"
    scene.start()
    yield scene
    scene.end()


def test_kill_9_during_a_build_and_during_a_promotion_ends_with_prod_whole(scene: Scene) -> None:
    """Behaviour 17: the next start finishes, batches that were recorded are not run again, and nothing is left over."""
    files = {path.relative_to(EXAMPLE).as_posix(): path.read_text() for path in EXAMPLE.rglob("*") if path.is_file()}
    scene.populate(files)
    until(lambda: scene.prod().revision == 1, PATIENCE, "prod")
    before = count_days(scene)
    text = files[MODEL].replace("  item_id,\n", "  item_id,\n  'z' AS more,\n").replace(
        "time_column event_date", f"time_column event_date, batch_size {DAYS}"
    )  # fmt: skip
    number = scene.open({MODEL: text})
    until(lambda: new_days(scene, before) >= 2 * DAYS, PATIENCE, "two batches")
    scene.kill()
    kept = new_days(scene, before)
    _rise(scene)
    until(lambda: scene.record(number).state is PullState.PLANNED, PATIENCE, "the environment")
    whole = new_days(scene, before)
    assert kept < whole, "the kill came too late to show anything"
    assert 0 < batches_of_the_last_run(scene, number) <= -(-(whole - kept) // DAYS)

    scene.github.merge(SHOP, number, author="ann")
    until(lambda: prod_is_run(scene), PATIENCE, "the promotion's run")
    scene.kill()
    _rise(scene)
    until(lambda: scene.record(number).state is PullState.PROMOTED, PATIENCE, "the promotion")
    until(lambda: scene.statuses(number) == {"completed"}, what="the checks")
    until(lambda: scene.prod().revision == 2, what="prod's revision")
    assert rows(scene.home / SHOP, "SELECT DISTINCT more FROM sqlmesh_example.incremental_model") == [["z"]]
    assert rows(scene.home / SHOP, "SELECT count(*) > 0 FROM sqlmesh_example.full_model") == [[True]]


def count_days(scene: Scene) -> dict[str, int]:
    """How many days of each physical table the planner's state says are computed."""
    own = f"sqlite:///file:{scene.home / SHOP / 'state.db'}?mode=ro&uri=true"
    url = scene.environ.get("MERGEPLAN_STATE_URL", own).replace("postgresql://", "postgresql+psycopg://")
    engine, days = sa.create_engine(url, poolclass=sa.NullPool), Counter[str]()
    with closing(engine.connect()) as state:
        for row in state.execute(sa.select(intervals)):
            days[row.table_name] += (row.end_at - row.start_at).days
    return days


def new_days(scene: Scene, before: dict[str, int]) -> int:
    """How many days of the tables that came since."""
    return sum(days for name, days in count_days(scene).items() if name not in before)


def batches_of_the_last_run(scene: Scene, number: int) -> int:
    """How many batches the run that made the plan shown has computed, as it said itself."""
    events = json.loads(scene.record(number).run.lines)["lines"]
    result = next(event for event in events if event["event"] == "result")
    return int(result["backfill"]["batches"])


def prod_is_run(scene: Scene) -> bool:
    with closing(Inbox(scene.url)) as inbox:
        return any(run.key.endswith("@prod") for run in inbox.runs.open())


def _rise(scene: Scene) -> None:
    with closing(Inbox(scene.url)) as inbox:
        left = inbox.runs.open()
    scene.start()
    until(lambda: all(birth(run.pid) != run.birth for run in left), PATIENCE, "the end of what was left")
