"""A model waits for its signals: what they say is ready is computed, the rest is told and computed later."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from mergeplan.planner.apply.backfill.layout import Layout
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import MergeplanError, ProjectError
from mergeplan.planner.intervals import Interval, Timeline, batches, build_timeline, merge_intervals
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.schedule import SignalCall
from mergeplan.planner.python.running import open_runner
from mergeplan.planner.state.store import StateStore
from tests.planner.building import day, model
from tests.planner.python.test_models import NoSpark, project_with
from tests.planner.shop import FILES, NOW, plan_and_apply, rows

SIGNALS = """
import typing as t
from sqlmesh import DatetimeRanges, ExecutionContext, signal

@signal()
def until(batch: DatetimeRanges, context: ExecutionContext, last: str, strict=True) -> t.Union[bool, DatetimeRanges]:
    assert strict is True
    return [(start, end) for start, end in batch if start.date().isoformat() <= last]

@signal(name="Anything")
def anything(batch):
    return len(batch) > 0

@signal()
def nothing(batch, context):
    return False

@signal()
def odd(batch, **kwargs):
    return "yes"

@signal()
def reads(batch, context):
    return context.table("shop.items") == "physical" and context.var("low") == 1
"""
DAILY = FILES["models/daily.sql"].replace("  audits", "  signals (until(last := '2026-01-03')),\n  audits")
DAYS = batches(model("shop.a").cron, build_timeline(day("2026-01-01"), day("2026-01-05")), 1)


@pytest.mark.parametrize(
    ("signals", "last"),
    [
        ("until(last := '2026-01-02')", 2),
        ("anything", 4),
        ("until(last := '2026-01-03', strict := true), anything()", 3),
        ("anything, nothing", 0),
        ("reads()", 4),
    ],
)
def test_signals_say_what_of_a_batch_is_ready(signals: str, last: int, tmp_path: Path) -> None:
    kind = "INCREMENTAL_BY_TIME_RANGE (time_column day)"
    text = f"MODEL (name shop.a, kind {kind}, signals ({signals}));\nSELECT id, day FROM shop.items"
    config = f"{FILES['config.yaml']}variables: {{low: 1}}\n"
    project = project_with(tmp_path, {"signals/all.py": SIGNALS, "models/a.sql": text, "config.yaml": config})
    asked = project.models["shop.a"]

    with open_runner(project.code, NoSpark()) as python:
        ready = python.ready(asked.schedule.signals, DAYS, asked, {"shop.items": "physical"})

    assert ready == merge_intervals(DAYS[:last])


def test_a_signal_that_says_neither_is_told(tmp_path: Path) -> None:
    text = "MODEL (name shop.a, kind FULL, signals (odd()));\nSELECT 1 AS x"
    project = project_with(tmp_path, {"signals/all.py": SIGNALS, "models/a.sql": text})
    asked = project.models["shop.a"]

    with pytest.raises(MergeplanError) as error, open_runner(project.code, NoSpark()) as python:
        python.ready(asked.schedule.signals, DAYS, asked, {})

    assert str(error.value) == (
        "signals/all.py:18: The signal `odd` failed: TypeError: a signal returns True, False or intervals, not str."
    )


@pytest.mark.parametrize(
    ("signals", "told"),
    [
        ("utnil()", "There is no signal `utnil`. Did you mean `until`? Known: anything, nothing, odd, reads, until."),
        ("until(last := day)", "`day` is not a string, a number, true, false, NULL or a list of these."),
        ("until.last", "A signal is written `name` or `name(argument := value)`."),
    ],
)
def test_a_signal_that_is_asked_for_wrongly_is_told(signals: str, told: str, tmp_path: Path) -> None:
    text = f"MODEL (name shop.a, kind FULL,\n  signals ({signals}));\nSELECT 1 AS x"

    with pytest.raises(ProjectError) as error:
        project_with(tmp_path, {"signals/all.py": SIGNALS, "models/a.sql": text})

    assert str(error.value) == f"models/a.sql:2: {told}"


class Until:
    """Signals that say that all before a day is ready, but for one day."""

    def __init__(self, late: Iterable[int]) -> None:
        self.late = [DAYS[index] for index in late]

    def ready(self, _calls: object, batch: Timeline, *_: object) -> Timeline:
        units = batches(model("shop.a").cron, batch, 1)
        return merge_intervals(unit for unit in units if unit not in self.late)

    rows = stop = None


@pytest.mark.parametrize(
    ("kind", "late", "cut", "waits"),
    [
        (Kind.INCREMENTAL_BY_TIME_RANGE, [], [(0, 4)], []),
        (Kind.INCREMENTAL_BY_TIME_RANGE, [1], [(0, 1), (2, 4)], [(1, 2)]),
        (Kind.INCREMENTAL_BY_UNIQUE_KEY, [1], [(0, 1)], [(1, 4)]),
        (Kind.INCREMENTAL_BY_TIME_RANGE, [0, 1, 2, 3], [], [(0, 4)]),
        (Kind.FULL, [], [(0, 4)], []),
    ],
)
def test_what_is_ready_is_cut_anew(
    kind: Kind, late: list[int], cut: list[tuple[int, int]], waits: list[tuple[int, int]]
) -> None:
    def spans(pairs: list[tuple[int, int]]) -> tuple[Interval, ...]:
        return tuple(Interval(DAYS[first].start, DAYS[last - 1].end) for first, last in pairs)

    waiting = model("shop.a", "SELECT 1 AS x", kind, signals=(SignalCall("s"),))
    layout = Layout({}, {}, NOW, python=Until(late))  # type: ignore[arg-type]  # of which only `ready` is asked

    assert layout.check_signals(waiting, spans([(0, 4)]), ()) == (spans(cut), spans(waits))


def test_days_that_are_not_ready_wait_for_the_next_apply(tmp_path: Path, engine: SparkEngine) -> None:
    files = {"signals/all.py": SIGNALS, "models/daily.sql": DAILY}
    project = project_with(tmp_path, files)

    with closing(StateStore(f"sqlite:///{tmp_path}/state.db", "shop")) as store:
        failed = plan_and_apply(project, engine, store).failures
        later = project_with(tmp_path, {**files, "models/daily.sql": DAILY.replace("01-03", "01-09")})
        plan_and_apply(later, engine, store).raise_failure()

    assert [str(failure.error) for failure in failed] == [
        "models/daily.sql:5: shop.daily waits for `until`: 2026-01-04 - 2026-01-05 is not ready yet. Run again later."
    ]
    assert rows(engine, "SELECT id FROM shop.daily ORDER BY id") == [(1,), (2,), (3,)]
