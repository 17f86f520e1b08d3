"""Kills at random moments: whatever is cut off, the next verb finishes it, and a reader never notices.

Verbs on prod are killed with their whole process group, at a random time or at a random step, over SQLite and over
PostgreSQL, while a reader joins two views that always change together; where promotions are atomic (over PostgreSQL) he
never sees the one changed and the other not. MERGEPLAN_KILLS says how many kills there are
to be (`make prove`: 220), MERGEPLAN_SEED where the random choices begin.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine
from mergeplan.planner.intervals import Interval, Timeline, subtract_intervals
from mergeplan.planner.state.store import StateStore
from tests.conftest import FORMAT
from tests.planner.killing import Ended, Reader, Step, Zygote, warm_spark

pytestmark = pytest.mark.prove

KILLS = int(os.environ.get("MERGEPLAN_KILLS", "4"))
CASE = os.environ.get("MERGEPLAN_CASE", "")  # the seed that a failure names: only that one is tried
SEED = int(os.environ.get("MERGEPLAN_SEED", "9"))
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 3  # at the beginning; a run brings one more
EVERY_DAY = "SELECT explode(sequence(DATE '2026-01-01', DATE '2027-12-31')) AS day"
MODELS = {
    "daily": "MODEL (name {schema}.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 1));\n"
    f"SELECT day, {{daily}} AS v FROM ({EVERY_DAY}) WHERE day BETWEEN @start_date AND @end_date",
    "keyed": "MODEL (name {schema}.keyed, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key day, batch_size 1));\n"
    "SELECT day, v FROM {schema}.daily WHERE day BETWEEN @start_date AND @end_date",
    "log": "MODEL (name {schema}.log, kind INCREMENTAL_UNMANAGED);\n"
    "SELECT day, v FROM {schema}.daily WHERE day BETWEEN @start_date AND @end_date",
    # Each batch adds one to the day before: one that is computed from its own rows would add two.
    "again": "MODEL (name {schema}.again, kind INCREMENTAL_BY_PARTITION, partitioned_by (day));\n"
    "SELECT day, v + 1 AS v FROM {schema}.again WHERE day = date_sub(@start_date, 1)\n"
    "UNION ALL SELECT day, v * 0 AS v FROM {schema}.daily WHERE day BETWEEN @start_date AND @end_date",
    "a": "MODEL (name {schema}.a, kind FULL);\nSELECT {v} AS v",
    "m": "MODEL (name {schema}.m, kind VIEW);\nSELECT {v} AS v",
    "n": "MODEL (name {schema}.n, kind VIEW);\nSELECT {v} AS v",
    "z": "MODEL (name {schema}.z, kind VIEW);\nSELECT {v} AS v",
}
DAILY = ("daily", "keyed", "log", "again")
ATOMIC = "post"  # the shop whose promotions move all views at one moment
CONFIG = "gateways:\n  local:\n    connection: {type: spark, concurrent_tasks: 2}\ndefault_gateway: local\n"
CONFIG += f"model_defaults: {{dialect: spark, start: 2026-01-01{f', table_format: {FORMAT}' if FORMAT else ''}}}\n"
PROMOTING = [
    ("Promotions.begin", 1),
    ("Promotions.record_steps", 1),
    ("Promotions.finish", 1),
    ("Environments.expire", 1),
    ("Plans.close", 1),
]
WRITING = [("PhysicalTables.register", 3), ("KnownContents.forget", 4), ("Intervals.record", 4), ("Costs.record", 4)]
SWAPPING = [("SparkCatalog.swap_view", 9)]
VERBS = ("replace", "replace_interval", "merge", "replace_partitions", "overwrite")
COMPUTING = [(f"SparkTables.{verb}", 2) for verb in VERBS]
STEPS = {  # what a verb does: the steps of the state and of Spark at which it is killed, and how often each comes
    "promote": (PROMOTING + WRITING[:1] + [("Plans.save", 1)], SWAPPING + COMPUTING[:1]),
    "plan dev": (PROMOTING + WRITING, SWAPPING + COMPUTING[:1]),
    "apply": (PROMOTING + WRITING[:2], SWAPPING + COMPUTING[:1]),
    "rebuild": (PROMOTING + WRITING, SWAPPING + COMPUTING),
    "rollback": (PROMOTING[:3], SWAPPING),
    "run": (WRITING[1:], COMPUTING[1:]),
    "restate": ([("Restatements.begin", 1), *WRITING[1:]], COMPUTING[1:]),
}
WEIGHTS = {"promote": 8, "rollback": 6, "apply": 3, "plan dev": 3, "run": 4, "restate": 3, "rebuild": 1}


@dataclass
class Shop:
    """A project with its state, and what its prod should show."""

    schema: str
    folder: Path
    home: Path
    url: str
    v: int = 0
    daily: int = 0
    days: int = DAYS
    took: dict[str, float] = field(default_factory=dict)  # verb -> seconds, when nobody kills it

    @property
    def environ(self) -> dict[str, str]:
        return {"MERGEPLAN_HOME": str(self.home), "MERGEPLAN_STATE_URL": self.url}

    @property
    def at(self) -> tuple[str, str]:
        return "--execution-time", str(FIRST + timedelta(days=self.days, hours=5))[:19]

    def write(self) -> None:
        (self.folder / "models").mkdir(parents=True, exist_ok=True)
        atomic = "promotion: {atomic: true, wait_seconds: 1}\n" if self.schema == ATOMIC else ""
        (self.folder / "config.yaml").write_text(CONFIG + atomic)
        for name, text in MODELS.items():
            filled = text.format(schema=self.schema, v=self.v, daily=self.daily)
            (self.folder / f"models/{name}.sql").write_text(filled)

    def store(self) -> StateStore:
        return StateStore(self.url, "")


@dataclass
class Tally:
    """What came of all the kills."""

    kills: Counter[str] = field(default_factory=Counter)
    missed: int = 0  # the verb came to its end first
    pending: int = 0  # a kill left a promotion half done
    twice: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = ", ".join(f"{name} {number}" for name, number in sorted(self.kills.items()))
        return f"{self.kills.total()} kills ({told}), {self.missed} came too late, {self.pending} left a promotion"


@dataclass
class Scene:
    """Two shops on one Spark, and who reads them."""

    zygote: Zygote
    reader: Reader
    engine: SparkEngine
    shops: tuple[Shop, ...]
    tally: Tally = field(default_factory=Tally)

    def call(self, shop: Shop, *arguments: str, **kill: Any) -> Ended:
        return self.zygote.call(arguments, shop.folder, shop.environ, **kill)

    def rows(self, sql: str) -> tuple[tuple[object, ...], ...]:
        return self.engine.fetch(sql).rows


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("kills")
    urls = {"lite": f"sqlite:///{folder}/state.db"}
    if KILLS > 4:
        urls["post"] = request.getfixturevalue("postgresql")
    shops = tuple(Shop(name, folder / name, folder / "home", url) for name, url in urls.items())
    zygote = Zygote()
    with warm_spark(folder / "home"):
        for shop in shops:
            shop.write()
            first = zygote.call(["plan", "--auto-apply", *shop.at], shop.folder, shop.environ)
            assert first.code == 0, first
        engine = open_engine(Connection(), folder / "home", wait=0)
        reader = Reader(folder / "home", [shop.schema for shop in shops])
        reader.round()
        reader.start()
        yield Scene(zygote, reader, engine, shops)
        reader.close()
        engine.close()
    zygote.close()
    shutil.rmtree(folder, ignore_errors=True)


def test_whatever_is_killed_the_next_verb_recovers_and_no_reader_notices(scene: Scene) -> None:
    choose = random.Random(SEED)  # noqa: S311
    number = 0
    while scene.tally.kills.total() < KILLS:
        seed, number = int(CASE) if CASE else choose.getrandbits(32), number + 1
        assert number < 10 * KILLS + 20, scene.tally
        one_case(scene, random.Random(seed), f"case {number} (seed {seed})")  # noqa: S311

    sys.stderr.write(f"\n{scene.tally}; {len(scene.reader.reads)} reads, {len(scene.reader.reads_failed)} failed\n")
    assert scene.reader.reads_failed == []
    assert [read for read in scene.reader.reads if read[0] == ATOMIC and read[1] != read[2]] == []
    assert scene.tally.twice == []


def one_case(scene: Scene, choose: random.Random, case: str) -> None:
    """A verb, killed on its way, maybe again while it recovers; the next one; and then all must be as if nobody had
    been killed."""
    shop = choose.choice(scene.shops)
    verb = choose.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    call, again, expected = ASKED[verb](scene, shop)
    what = f"{case}: {verb} on {shop.schema}"
    for number in range(choose.choice([1, 1, 2, 3])):
        what += one_kill(scene, shop, verb, again if number else call, choose, what)
    with closing(shop.store()) as store:
        held = {
            table: timeline
            for table, timeline in store.intervals.load_timelines(store.tables.all()).items()
            if timeline
        }
        pending = store.promotions.pending()
    scene.tally.pending += bool(pending)

    after = scene.call(shop, *again)

    what += f"; then {' '.join(again)}: {after}"
    assert after.code == 0, what
    assert ("recovered" in after.result) == bool(pending), what
    scene.tally.twice += [f"{case}: {batch}" for batch in batches_twice(after, held)]
    with closing(shop.store()) as store:
        assert store.promotions.pending() == (), what
    assert scene.reader.round()[shop.schema] == [expected, expected], what
    shop.v = expected
    check_rows(scene, shop, what)


def one_kill(scene: Scene, shop: Shop, verb: str, call: tuple[str, ...], choose: random.Random, what: str) -> str:
    """A verb that is killed, unless it comes to its end first; the sentence about it."""
    moment = _moment(choose, verb, shop)
    killed = scene.call(shop, *call, **moment)
    told = f"; {' '.join(call)}, {moment}: {killed}"
    if killed.was_killed or killed.code in (130, -signal.SIGTERM):  # SIGTERM may come before anybody hears it
        scene.tally.kills[f"{verb} on {shop.schema}"] += 1
        return told
    assert killed.code == 0, what + told
    scene.tally.missed += 1
    shop.took[verb] = killed.seconds
    return told


def batches_twice(after: Ended, held: dict[str, Timeline]) -> list[str]:
    """The batches that the next verb computed though they had been recorded."""
    plans = [event["plan"] for event in after.events if event["event"] == "plan"]
    tables = {model["name"]: model["table"] for plan in plans for model in plan["models"]}
    batches = []
    for event in after.events:
        if event["event"] == "batch":
            start, end = (datetime.fromisoformat(moment).replace(tzinfo=UTC) for moment in event["interval"])
            if not subtract_intervals((Interval(start, end),), held.get(tables[event["model"]], ())):
                batches.append(f"{event['model']} {event['interval']}")
    return batches


def check_rows(scene: Scene, shop: Shop, what: str) -> None:
    """All that prod shows, in one query: each day is there, once, in each table that is filled day by day."""
    names = {name: "day" if name in DAILY else "DATE '2000-01-01'" for name in MODELS}
    reads = (f"SELECT '{name}' name, {day} day, v FROM {shop.schema}.{name}" for name, day in names.items())
    contents = scene.rows(f"SELECT * FROM ({' UNION ALL '.join(reads)}) ORDER BY name, day, v")
    assert [(name, v) for name, _, v in contents if name not in DAILY] == [(n, shop.v) for n in "amnz"], what
    days = [(FIRST + timedelta(days=number)).date() for number in range(shop.days)]
    for name in DAILY:
        shown = [(day, v) for model, day, v in contents if model == name]
        assert [day for day, _ in shown] == days, f"{name}: {shown}; {what}"
        if name == "again":
            assert [v for _, v in shown] == [1] * (len(days) - 1) + [0], f"{name}: {shown}; {what}"
            continue
        # What is appended is kept: an edit of what it reads leaves the rows of `log` as they are.
        assert name == "log" or {v for _, v in shown} == {shop.daily}, f"{name}: {shown}; {what}"


def _moment(choose: random.Random, verb: str, shop: Shop) -> dict[str, Any]:
    """When the verb is killed: after some time, or at a step."""
    if choose.random() < 0.4:
        number = signal.SIGTERM if choose.random() < 0.15 else signal.SIGKILL
        return {"clock": (choose.uniform(0, 1.05) * shop.took.get(verb, 3.0), number)}
    of_spark = choose.choice([False, False, True])
    method, times = choose.choice(STEPS[verb][of_spark])
    return {"step": Step(method, choose.randint(1, times), choose.random() < 0.5)}


Asked = tuple[tuple[str, ...], tuple[str, ...], int]  # the verb that is killed, the next one, what prod shows then


def promote(_scene: Scene, shop: Shop) -> Asked:
    shop.v = _fresh(shop)
    shop.write()
    call = ("plan", "--auto-apply", *shop.at)
    return call, call, shop.v


def rebuild(_scene: Scene, shop: Shop) -> Asked:
    shop.v = _fresh(shop)
    shop.daily += 1
    shop.write()
    call = ("plan", "--auto-apply", *shop.at)
    return call, call, shop.v


def apply(scene: Scene, shop: Shop) -> Asked:
    """The plan is made in peace; the next verb is a plan, since a plan that was applied cannot be applied again."""
    shop.v = _fresh(shop)
    shop.write()
    made = scene.call(shop, "plan", "--no-prompts", *shop.at)
    assert made.code == 0, made
    return ("apply", made.result["plan"]["id"]), ("plan", "--auto-apply", *shop.at), shop.v


def plan_dev(_scene: Scene, shop: Shop) -> Asked:
    """Another environment is planned: prod goes on as it was, and the files go back."""
    before, shop.v = shop.v, _fresh(shop)
    shop.write()
    call = ("plan", "dev", "--auto-apply", *shop.at)
    return call, call, before


def rollback(_scene: Scene, shop: Shop) -> Asked:
    with closing(shop.store()) as store:
        now, rows = store.environments.get("prod"), store.environments.history("prod")
        daily, z = (now.snapshots[f"{shop.schema}.{name}"] for name in ("daily", "z"))
        others = [store.environments.get_revision("prod", row.revision) for row in rows[1:6]]
    same = [other for other in others if other.snapshots[daily.name] == daily and other.snapshots[z.name] != z]
    if not same:
        return promote(_scene, shop)
    call = ("rollback", "prod", "--to", str(same[0].revision))
    model = same[0].snapshots[z.name].model
    assert model.sql is not None
    return call, call, int(str(model.sql).split()[1])


def run(_scene: Scene, shop: Shop) -> Asked:
    shop.days += 1
    call = ("run", *shop.at)
    return call, call, shop.v


def restate(_scene: Scene, shop: Shop) -> Asked:
    """What a restatement that was cut off has forgotten is missing, and a run computes it."""
    day = str((FIRST + timedelta(days=shop.days - 1)).date())
    call = ("plan", "--restate-model", f"{shop.schema}.daily", "--start", day, "--auto-apply", *shop.at)
    return call, ("run", *shop.at), shop.v


def _fresh(shop: Shop) -> int:
    shop.took.setdefault("fresh", shop.v)
    shop.took["fresh"] += 1
    return int(shop.took["fresh"])


ASKED: dict[str, Callable[[Scene, Shop], Asked]] = {
    "promote": promote,
    "rebuild": rebuild,
    "apply": apply,
    "plan dev": plan_dev,
    "rollback": rollback,
    "run": run,
    "restate": restate,
}
