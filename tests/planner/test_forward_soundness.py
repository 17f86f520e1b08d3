"""After any sequence of edits, forward-only or not, runs and rollbacks: a table that claims a query holds its rows.

Plans are carried out in SQLite, which is quick enough for many sequences: what is asked here is what plans decide.
MERGEPLAN_SEQUENCES says how many.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from mergeplan.planner.intervals import Interval, Timeline, merge_intervals, subtract_intervals
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.plan.build import Plan, Request, build_plan, build_run
from mergeplan.planner.plan.change import Category
from mergeplan.planner.plan.forward_only import ForwardOnly
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot

from .building import external, model, project

pytestmark = pytest.mark.sampled

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
RANGED = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "day", "start": START}
WHERE = "WHERE day BETWEEN @start_ds AND @end_ds"
PRICES = ("price", "price * 2", "price + id", "price * 3")
FILTERS = ("", " AND id <> 2", " AND price > 10")
EXTRAS = ("", ", id * 7 AS extra", ", price * 5 AS extra")


@dataclass
class World:
    """Prod and its tables."""

    db: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(":memory:"))
    prod: Environment = field(default_factory=lambda: Environment("prod"))
    timelines: dict[str, Timeline] = field(default_factory=dict)
    drifted: set[str] = field(default_factory=set)
    past: list[Environment] = field(default_factory=list)
    now: datetime = START + 3 * DAY

    def __post_init__(self) -> None:
        self.db.execute('CREATE TABLE "raw.t" (id, day, price)')
        for number in range(40):
            day = f"{START + (number % 13) * DAY:%Y-%m-%d}"
            self.db.execute('INSERT INTO "raw.t" VALUES (?, ?, ?)', (number % 4, day, number))

    @property
    def state_of_world(self) -> Loaded:
        shown = frozenset(s.table for s in self.prod.snapshots.values())
        return Loaded(dict(self.timelines), shown, frozenset(self.drifted))

    def apply(self, plan: Plan) -> None:
        for name in plan.new.snapshots:
            change = next((change for change in plan.changes if change.name == name), None)
            if change is None or change.new is None or not change.kind.is_stored:
                continue
            table, old = change.new.table, change.old.table if change.old else ""
            if table not in self.timelines and change.forward and change.keeps_rows:
                self.fill(change.new, change.forward.rows, plan.new, source=old)
            self.fill(change.new, subtract_intervals(change.missing, change.copies), plan.new)
            self.fill(change.new, change.copies, plan.new, source=old)
        self.prod = replace(plan.new, revision=self.prod.revision + 1)
        self.past.append(self.prod)
        self.drifted |= {s.table for s in plan.new.snapshots.values() if s.forced}

    def fill(self, snapshot: Snapshot, timeline: Timeline, environment: Environment, source: str = "") -> None:
        columns = snapshot.columns
        assert columns is not None
        self.db.execute(f'CREATE TABLE IF NOT EXISTS "{snapshot.table}" ({", ".join(columns)})')
        for interval in timeline:
            header, rows = self.rows(source, interval) if source else self.fetch_rows(snapshot, interval, environment)
            ranged = snapshot.kind is Kind.INCREMENTAL_BY_TIME_RANGE
            first, last = bounds(interval)
            where = f" WHERE day BETWEEN '{first}' AND '{last}'" if ranged else ""
            self.db.execute(f'DELETE FROM "{snapshot.table}"{where}')
            for row in rows:
                values = [dict(zip(header, row, strict=True)).get(name) for name in columns]
                marks = ", ".join("?" for _ in columns)
                self.db.execute(f'INSERT INTO "{snapshot.table}" VALUES ({marks})', values)
            self.timelines[snapshot.table] = merge_intervals((*self.timelines.get(snapshot.table, ()), interval))

    def rows(self, table: str, interval: Interval | None) -> tuple[list[str], list[tuple[object, ...]]]:
        cursor = self.db.execute(f'SELECT * FROM "{table}"')
        names, (first, last) = [column[0] for column in cursor.description], bounds(interval)
        at = names.index("day") if "day" in names else None
        return names, [row for row in cursor if interval is None or at is None or first <= str(row[at]) <= last]

    def fetch_rows(
        self, snapshot: Snapshot, interval: Interval, environment: Environment
    ) -> tuple[list[str], list[tuple[object, ...]]]:
        first, last = bounds(interval)
        sql = snapshot.model.sql.replace("@start_ds", f"'{first}'").replace("@end_ds", f"'{last}'")
        names = {
            name: '"raw.t"' if name == "raw.t" else f'"{version.table}"'
            for name, version in environment.snapshots.items()
        }
        cursor = self.db.execute(re.sub(r"\b(?:raw|s)\.\w+", lambda match: names[match[0]], sql))
        return [column[0] for column in cursor.description], cursor.fetchall()

    def check(self) -> None:
        for name, snapshot in self.prod.snapshots.items():
            if snapshot.kind.is_stored and not snapshot.forced:
                held = self.timelines[snapshot.table]
                rows = [row for period in held for row in self.fetch_rows(snapshot, period, self.prod)[1]]
                assert sorted(self.rows(snapshot.table, None)[1], key=repr) == sorted(rows, key=repr), name


def bounds(interval: Interval | None) -> tuple[str, str]:
    """The first and the last day of a stretch."""
    return (f"{interval.start:%Y-%m-%d}", f"{interval.end - DAY:%Y-%m-%d}") if interval else ("", "")


def models(edit: dict[str, int]) -> dict[str, object]:
    a = f"SELECT id, day, {PRICES[edit['price']]} AS price{EXTRAS[edit['extra']]} FROM raw.t {WHERE}"
    return project(
        external("raw.t", "id day price"),
        model("s.a", a + FILTERS[edit["where"]], **RANGED),
        model("s.b", f"SELECT id, day, price + {edit['b']} AS more FROM s.a {WHERE}", **RANGED),
        model("s.c", f"SELECT day, COUNT(*) + {edit['c']} AS n FROM s.a GROUP BY day"),
        model("s.d", "SELECT n FROM s.c UNION ALL SELECT more FROM s.b"),
    )


def step(world: World, edit: dict[str, int], chance: random.Random) -> str:
    """Something that happens to prod; what it was."""
    choice = chance.choice(("edit", "edit", "forward", "forward", "forward", "run", "rollback", "word"))
    if choice == "rollback" and len(world.past) > 1:
        world.prod = replace(chance.choice(world.past[:-1]), revision=world.prod.revision + 1)
        world.past.append(world.prod)
    if choice in ("run", "rollback"):
        world.now += DAY if world.now < START + 12 * DAY else 0 * DAY
        run = build_run(world.prod, world.state_of_world, Window(world.now))
        world.apply(run)
        return choice
    key = chance.choice(tuple(edit))
    edit[key] = chance.randrange(3)
    wanted = {"s.a": Category.FORWARD_ONLY} if choice == "word" else {}
    since = chance.choice((None, None, world.now - 2 * DAY))
    asked = ForwardOnly(choice == "forward", since if choice == "forward" else None, destructive=("s.*",))
    request = Request(Window(world.now), forward=asked)
    plan = build_plan(models(edit), world.prod, world.prod, world.state_of_world, request)  # type: ignore[arg-type]
    if any(c.name == "s.a" and c.change == "direct" for c in plan.changes) and wanted:
        request = replace(request, categories=wanted)
        plan = build_plan(models(edit), world.prod, world.prod, world.state_of_world, request)  # type: ignore[arg-type]
    if not plan.blockers:
        world.apply(plan)
    return f"{choice} {key}={edit[key]} since={asked.since}: " + ", ".join(
        f"{c.name} {c.category} {c.rule}" for c in plan.changes
    )


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    with closing(made.db):
        yield made


@pytest.mark.parametrize("seed", range(10, 10 + int(os.environ.get("MERGEPLAN_SEQUENCES", "5"))))
def test_a_table_that_claims_a_query_holds_its_rows(world: World, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # no secret
    edit = {"price": 0, "where": 0, "extra": 0, "b": 0, "c": 0}
    world.apply(build_plan(models(edit), world.prod, world.prod, world.state_of_world, Request(Window(world.now))))  # type: ignore[arg-type]
    done = []
    for _ in range(9):
        done.append(step(world, edit, chance))
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(done)) from None
    assert len(world.past) > 2
