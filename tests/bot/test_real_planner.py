"""From pull request to prod with the planner itself: Spark builds, the bot shows, the merge promotes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bot.records import State
from planner import __file__ as planner_file
from tests.bot.conftest import SHOP, Bench

EXAMPLE = Path(planner_file).parent / "example"


def test_a_pull_request_is_planned_categorised_merged_and_promoted(make_bench: Callable[..., Bench]) -> None:
    """Behaviours 9, 32, 40: non-breaking keeps the child, and a merge executes nothing over data."""
    files = {path.relative_to(EXAMPLE).as_posix(): path.read_text() for path in EXAMPLE.rglob("*") if path.is_file()}
    bench = make_bench(project=files, planner_command=(), warm=True, patience=200.0)
    assert bench.desk.inbox.prod(SHOP).revision == 1
    model = files["models/incremental_model.sql"]
    number = bench.open(
        {"models/incremental_model.sql": model.replace("event_date,", "event_date,\n  'z' AS new_column,")}
    )
    bench.idle()
    assert "1 non-breaking, 1 indirect non-breaking" in bench.plan(number)
    assert "shared with `prod`" in bench.plan(number)

    bench.say(number, "/categorize breaking")
    assert "Downstream recomputed: `sqlmesh_example.full_model`" in bench.replies(number)[0]
    bench.say(number, "/categorize incremental_model non-breaking")
    assert "Downstream keeps its tables: `sqlmesh_example.full_model`" in bench.replies(number)[1]

    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    record = bench.record(number)
    assert record.state is State.PROMOTED
    assert record.promoted and record.promoted.promotion and record.promoted.promotion.is_free
    assert record.promoted_revision == 2
    assert "Nothing was computed: 0 Spark jobs." in bench.plan(number)
    assert not record.environment_exists
