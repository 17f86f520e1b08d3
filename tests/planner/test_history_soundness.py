"""Prod and pull requests over the same tables, through any sequence of edits, merges, runs, restatements, rollbacks and
sweeps: what prod shows holds the rows of its queries, and nobody but prod changes a table that prod shows.

Carried out in SQLite like `test_forward_soundness`. MERGEPLAN_SEQUENCES says how many.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.intervals import Interval, Timeline, subtract_intervals
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan, Request, build_plan, build_run
from mergeplan.planner.plan.change import Category
from mergeplan.planner.plan.forward_only import ForwardOnly
from mergeplan.planner.plan.restatement import Past
from mergeplan.planner.plan.restatement_plan import build_restatement
from mergeplan.planner.plan.schedule import Window, out_of_order
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot

from .building import external, model, project
from .test_forward_soundness import DAY, EXTRAS, FILTERS, PRICES, RANGED, START, WHERE, World

pytestmark = pytest.mark.sampled

KEYED = {"kind": Kind.INCREMENTAL_BY_UNIQUE_KEY, "unique_key": ("id",), "start": START}
FORMATS = ("parquet", "orc")


@dataclass
class Worlds(World):
    """Prod, pull requests and the tables of both."""

    requests: dict[str, Environment] = field(default_factory=dict)
    built: dict[str, Snapshot] = field(default_factory=dict)
    emptied: set[str] = field(default_factory=set)
    wanted: dict[str, dict[str, object]] = field(default_factory=dict)  # of a pull request, and of its merge

    @property
    def past_maps(self) -> Past:
        maps = [("prod", environment is self.past[-1], environment.snapshots) for environment in self.past]
        maps += [(name, True, environment.snapshots) for name, environment in self.requests.items()]
        mapped = {s.table for _, _, shown in maps for s in shown.values()}
        return Past(tuple(maps), {name: self.built.get(name) for name in self.timelines.keys() - mapped})

    def carry_out(self, plan: Plan) -> None:
        """Fill the plan's tables and show them in its environment."""
        for name in plan.parents:
            change = next((change for change in plan.changes if change.name == name), None)
            if change is None or change.new is None:
                continue
            if change.kind is Kind.VIEW:
                self.show(change.new, plan.new)
            if not change.kind.is_stored:
                continue
            new, old = change.new, change.old.table if change.old else ""
            self.built.setdefault(new.table, new)
            if not self.timelines.get(new.table) and change.keeps_rows and change.forward:
                self.fill(new, change.forward.rows, plan.new, source=old)
            held = self.timelines.get(new.table, ())
            if out_of_order(new.model, subtract_intervals(change.missing, held), held):
                self.timelines[new.table] = ()
            for interval in change.recorded:
                self.emptied.add(new.table)
                self.fill_nothing(new, interval)
            self.fill(new, subtract_intervals(change.missing, change.copies), plan.new)
            self.fill(new, change.copies, plan.new, source=old)
        shown = replace(plan.new, revision=plan.new.revision + 1)
        self.drifted |= {s.table for s in plan.new.snapshots.values() if s.forced}
        if plan.environment == "prod":
            self.prod = shown
            self.past.append(shown)
        else:
            self.requests[plan.environment] = shown

    def show(self, snapshot: Snapshot, environment: Environment) -> None:
        """Make a physical view: once, as it then is."""
        sql = re.sub(r"\bs\.\w+", lambda match: f'"{environment.snapshots[match[0]].table}"', snapshot.model.sql)
        self.db.execute(f'CREATE VIEW IF NOT EXISTS "{snapshot.table}" AS {sql}')

    def fill_nothing(self, snapshot: Snapshot, interval: Interval) -> None:
        assert snapshot.columns is not None
        self.db.execute(f'CREATE TABLE IF NOT EXISTS "{snapshot.table}" ({", ".join(snapshot.columns)})')
        self.timelines[snapshot.table] = (*self.timelines.get(snapshot.table, ()), interval)

    def fill(self, snapshot: Snapshot, timeline: Timeline, environment: Environment, source: str = "") -> None:
        for interval in timeline:
            kept: list[tuple[object, ...]] = []
            if snapshot.kind.is_order_dependent and not source:
                assert snapshot.columns is not None
                at = snapshot.columns.index("id")
                new = {row[0] for row in self.fetch_rows(snapshot, interval, environment)[1]}
                held = self.rows(snapshot.table, None)[1] if self.timelines.get(snapshot.table) else []
                kept = [row for row in held if row[at] not in new]
            super().fill(snapshot, (interval,), environment, source)
            for row in kept:
                self.db.execute(f'INSERT INTO "{snapshot.table}" VALUES ({", ".join("?" for _ in row)})', row)

    def restate(self, *selectors: str, start: timedelta | None = None) -> None:
        window = Window(self.now, START + start if start else None)
        plan = build_restatement(self.prod, self.state_of_world, window, selectors, self.past_maps)
        assert plan.restatement
        for table, gone in plan.restatement.forgets.items():
            self.timelines[table] = subtract_intervals(self.timelines.get(table, ()), gone)
        self.carry_out(plan)

    def sweep(self) -> None:
        shown = {
            s.table
            for environment in (self.prod, *self.past[-3:], *self.requests.values())
            for s in environment.snapshots.values()
        }
        for table in self.timelines.keys() - shown:
            self.db.execute(f'DROP TABLE IF EXISTS "{table}"')
            del self.timelines[table]
            self.built.pop(table, None)
            self.emptied.discard(table)

    @contextmanager
    def prod_unchanged(self) -> Iterator[None]:
        """What prod shows is the same before and after."""

        def prod_rows() -> dict[str, object]:
            tables = sorted(s.table for s in self.prod.snapshots.values() if self.timelines.get(s.table))
            return {t: (self.timelines.get(t), sorted(self.rows(t, None)[1], key=repr)) for t in tables}

        before = prod_rows()
        yield
        assert prod_rows() == before, "a pull request changed prod"

    def check(self) -> None:
        for name, snapshot in self.prod.snapshots.items():
            if not snapshot.kind.is_stored or snapshot.forced or snapshot.table in self.emptied:
                continue
            assert not snapshot.is_preview, name
            held = self.timelines.get(snapshot.table, ())
            if snapshot.kind.is_order_dependent:
                continue
            if not held:
                continue  # what it reads was restated, and holds no day yet
            rows = [row for period in held for row in self.fetch_rows(snapshot, period, self.prod)[1]]
            assert sorted(self.rows(snapshot.table, None)[1], key=repr) == sorted(rows, key=repr), (
                f"{name} {snapshot.table}"
            )


EDITS = {"price": 0, "where": 0, "extra": 0, "b": 0, "c": 0, "k": 0, "format": 0, "e": 0, "start": 0}


def models(edit: dict[str, int]) -> dict[str, Model]:
    a = f"SELECT id, day, {PRICES[edit['price']]} AS price{EXTRAS[edit['extra']]} FROM raw.t {WHERE}"
    fmt = {"storage_format": FORMATS[edit["format"] % 2]}
    later = {"start": START + (edit["start"] % 2) * DAY}
    key = f"SELECT id, MAX(price) + {edit['k']} AS price FROM s.a {WHERE} GROUP BY id"
    return project(
        external("raw.t", "id day price"),
        model("s.a", a + FILTERS[edit["where"]], **RANGED | fmt),
        model("s.b", f"SELECT id, day, price + {edit['b']} AS more FROM s.a {WHERE}", **RANGED | later),
        model(
            "s.c",
            f"SELECT day, COUNT(*) + {edit['c']} AS n FROM s.a GROUP BY day",
            storage_format=FORMATS[edit["c"] % 2],
        ),
        model("s.d", "SELECT n FROM s.c UNION ALL SELECT more FROM s.b"),
        model("s.k", key, **KEYED | {"storage_format": FORMATS[edit["format"] // 2 % 2]}),
        model("s.e", f"SELECT id, price + {edit['e']} AS price FROM s.k"),
        model("s.v", "SELECT id, day, price FROM s.a", Kind.VIEW),
        model("s.f", f"SELECT id, price FROM s.v WHERE id <> {edit['e']}"),
    )


def asking(chance: random.Random, world: Worlds, pr: bool) -> dict[str, object]:
    options: dict[str, object] = {}
    how = {chance.choice(("plain", "forward", "since", "word", "empty"))}
    if pr:
        how.add(chance.choice(("plain", "plain", "start", "min")))
    if how & {"forward", "since"}:
        since = world.now - 2 * DAY if "since" in how else None
        options["forward"] = ForwardOnly(True, since, destructive=("s.*",))
    if "empty" in how:
        options["empty_backfill"] = True
    if how & {"start", "min"}:
        start = chance.choice((START + 2 * DAY, world.now - DAY))
        options["window"] = Window(world.now, start, min_intervals=4 if "min" in how else 0)
    if "word" in how:
        name = chance.choice(("s.a", "s.a", "s.c", "s.f"))
        options["categories"] = {name: chance.choice((Category.FORWARD_ONLY, Category.BREAKING))}
    return options


def make_plan(world: Worlds, edit: dict[str, int], environment: str, options: dict[str, object]) -> Plan:
    target = world.prod if environment == "prod" else world.requests.get(environment, Environment(environment))
    options = {"window": Window(world.now), "forward": ForwardOnly(destructive=("s.*",)), **options}
    try:
        return build_plan(models(edit), target, world.prod, world.state_of_world, Request(**options))  # type: ignore[arg-type]
    except RequestError:
        options.pop("categories", None)
        return build_plan(models(edit), target, world.prod, world.state_of_world, Request(**options))  # type: ignore[arg-type]


def step(world: Worlds, edits: dict[str, dict[str, int]], chance: random.Random) -> str:
    choice = chance.choice(("pr", "pr", "pr", "merge", "merge", "prod", "run", "rollback", "late", "sweep", "revert"))
    where = chance.choice(("pr_1", "pr_2"))
    if choice in ("pr", "prod"):
        edit = edits[where] if choice == "pr" else edits["prod"]
        key = chance.choice(tuple(edit))
        edit[key] = chance.randrange(4 if key == "format" else 3)
        environment = where if choice == "pr" else "prod"
        options = asking(chance, world, choice == "pr")
        world.wanted[environment] = {key: options[key] for key in ("forward", "categories") if key in options}
        plan = make_plan(world, edit, environment, options)
        if not plan.blockers:
            if choice == "pr":
                with world.prod_unchanged():
                    world.carry_out(plan)
            else:
                world.carry_out(plan)
        return f"{environment} {key}={edit[key]} {options}" + plan_text(plan)
    if choice == "merge":
        edits["prod"] = dict(edits[where])
        plan = make_plan(world, edits["prod"], "prod", world.wanted.get(where, {}))
        if not plan.blockers:
            world.carry_out(plan)
        return f"merge {where}" + plan_text(plan)
    if choice == "revert":
        edits[where] = dict(EDITS)
        return "revert " + where
    if choice == "rollback":
        world.prod = replace(chance.choice(world.past[-3:]), revision=world.prod.revision + 1)
        world.past.append(world.prod)
    if choice in ("run", "rollback"):
        world.now += DAY if world.now < START + 12 * DAY else 0 * DAY
        world.carry_out(build_run(world.prod, world.state_of_world, Window(world.now)))
        for request in world.requests.values():
            with world.prod_unchanged():
                world.carry_out(build_run(request, world.state_of_world, Window(world.now), world.prod))
        return choice
    if choice == "late":
        day = START + chance.randrange(3) * DAY
        world.db.execute('INSERT INTO "raw.t" VALUES (?, ?, ?)', (chance.randrange(4), f"{day:%Y-%m-%d}", 100))
        world.restate("raw.t")
        return f"late {day}"
    world.sweep()
    return "sweep"


def plan_text(plan: Plan) -> str:
    said = (
        f"\n      {c.name} {c.category} {c.rule} {c.new.version if c.new else ''} shares={c.shares}"
        f" missing={len(c.missing)} copies={len(c.copies)} preview={c.preview} forced={c.new and c.new.forced}"
        for c in plan.changes
    )
    return "".join(said) + "".join(f"\n      BLOCKED {b.message}" for b in plan.blockers)


@pytest.fixture
def world() -> Iterator[Worlds]:
    made = Worlds()
    with closing(made.db):
        yield made


@pytest.mark.parametrize("seed", range(int(os.environ.get("MERGEPLAN_SEQUENCES", "5"))))
def test_prod_holds_the_rows_of_its_queries_whatever_pull_requests_do(world: Worlds, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # no secret
    edits = {name: dict(EDITS) for name in ("prod", "pr_1", "pr_2")}
    world.carry_out(make_plan(world, edits["prod"], "prod", {}))
    done = []
    for _ in range(12):
        try:
            done.append(step(world, edits, chance))
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(done)) from None
