"""What applying a plan costs, beside the same work in hand-written Spark statements. Prints ratios.

make bench-apply                          every case
python -m benchmarks.apply tables views   only cases with one of these words in their name

Both sides work in turn in one process, on one Spark: CPU seconds are those of Python, of Java, and of the processes
that these start. A plan makes tables and the views of prod over them; `with views` is both by hand. Before it computes
anything, a plan lets Spark analyse every query, over empty tables; `as safe` is that by hand: every table is created,
every query is analysed, then rows are inserted and views created.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.executor import ApplyOptions, apply
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.classic_session import ClassicSession
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.spark.open_session import open_session
from mergeplan.planner.engine.spark.process.java import profile_of
from mergeplan.planner.engine.table import Table
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.plan.build import Request, build_plan
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.store import StateStore

WARMUP, ROUNDS = 1, 3
START = datetime(2025, 1, 1, tzinfo=UTC)
NOW = START + timedelta(days=365, hours=5)
CONFIG = """
gateways:
  local:
    connection: {type: spark, concurrent_tasks: 4}
default_gateway: local
model_defaults: {dialect: spark, start: 2025-01-01}
"""
EVENTS = "SELECT id, DATE'2025-01-01' + INT(id % 365) AS day, id * 3 AS amount FROM RANGE(10000)"
EXTERNAL = "- name: source.events\n  columns: {id: bigint, day: date, amount: bigint}\n"
ALL_DAYS = "day BETWEEN DATE'2025-01-01' AND DATE'2025-12-31'"
Work = Callable[[], object]


@dataclass(frozen=True)
class Scene:
    """One Spark, and a folder for projects and state databases."""

    session: ClassicSession
    engine: SparkEngine
    folder: Path

    def cpu(self) -> float:
        """CPU seconds of this process, of Java and of what they started, so far."""
        return sum(_cpu(pid) for pid in (os.getpid(), self.session.jvm.process.pid))

    def sql(self, text: str) -> None:
        """Run a statement as somebody would who writes it by hand."""
        self.session.spark.sql(text)


# (ours, by hand, perhaps the views by hand and all of it as safely by hand), each to be run once
Case = Callable[[Scene, int], Iterator[tuple[Work, ...]]]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def tables(count: int) -> dict[str, str]:
    """Small aggregates of one source, none of which reads another."""
    return {
        f"m{n}": "SELECT id % 10 AS k, sum(amount) AS total, count(*) AS n FROM source.events "
        f"WHERE id % {count} = {n} GROUP BY 1"
        for n in range(count)
    }


def layers(count: int, width: int = 10) -> dict[str, str]:
    """A graph in layers: each model joins two of the layer before."""
    models = tables(width)
    for n in range(width, count):
        base = n // width * width - width
        left, right = base + n % width, base + (n + 1) % width
        models[f"m{n}"] = (
            f"SELECT a.k, a.total + b.total AS total, a.n + b.n AS n FROM {{schema}}.m{left} AS a "
            f"JOIN {{schema}}.m{right} AS b ON a.k = b.k"
        )
    return models


def compute(scene: Scene, rounds: int, name: str, models: dict[str, str], kind: str = "FULL", clause: str = "") -> Any:
    """The models as a plan, and as CREATE TABLE AS in the order in which they are written here; the views by hand, and
    all by hand with dry runs first, are timed apart."""
    for number in range(rounds):
        schema, hand = f"{name}{number}", f"{name}_by_hand{number}"
        scene.sql(f"CREATE SCHEMA {hand}")
        scene.sql(f"CREATE SCHEMA {hand}_views")
        scene.sql(f"CREATE SCHEMA {hand}_safe")
        scene.sql(f"CREATE SCHEMA {hand}_safe_views")

        def create_by_hand(schema: str = hand) -> None:
            for model, sql in models.items():
                text = sql.format(schema=schema, days=ALL_DAYS)
                scene.sql(f"CREATE TABLE {schema}.{model} USING parquet{clause} AS {text}")

        def views(schema: str = hand) -> None:
            for model in models:
                scene.sql(f"CREATE VIEW {schema}_views.{model} AS SELECT * FROM {schema}.{model}")

        def create_safely(schema: str = f"{hand}_safe") -> None:
            texts = {model: sql.format(schema=schema, days=ALL_DAYS) for model, sql in models.items()}
            for model, text in texts.items():
                columns = scene.session.sql(text).schema
                listed = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in columns)
                scene.sql(f"CREATE TABLE {schema}.{model} ({listed}) USING parquet{clause}")
            for model, text in texts.items():
                scene.sql(f"INSERT INTO {schema}.{model} {text}")
            for model in models:
                scene.sql(f"CREATE VIEW {schema}_views.{model} AS SELECT * FROM {schema}.{model}")

        yield prepare(scene, schema, models, kind), create_by_hand, views, create_safely


def prepare(scene: Scene, schema: str, models: dict[str, str], kind: str) -> Work:
    """A project of these models, planned and ready to be applied."""
    root = scene.folder / schema
    (root / "models").mkdir(parents=True)
    (root / "config.yaml").write_text(CONFIG)
    (root / "external_models.yaml").write_text(EXTERNAL)
    for model, sql in models.items():
        text = sql.format(schema=schema, days="day BETWEEN @start_date AND @end_date")
        (root / f"models/{model}.sql").write_text(f"MODEL (name {schema}.{model}, kind {kind});\n{text}")
    project, empty = load_project(root, NOW), Environment("prod")
    plan = build_plan(project.models, empty, empty, Loaded({}), Request(Window(NOW)))

    def work() -> None:
        with closing(StateStore(f"sqlite:///{root}/state.db")) as store, store.leases.hold("prod", "bench") as lease:
            done = apply(plan, project, scene.engine, store, lease, ApplyOptions(NOW, ignore_event))
            assert done.promoted is not None, done.failures

    return work


def promote_rounds(
    scene: Scene, rounds: int, count: int, *, new: bool = False, changed: int | None = None
) -> Iterator[tuple[Work, ...]]:
    """Views that come, or of which all or the first few that `changed` go back and forth between two tables each."""
    columns = (Column("id", "int"), Column("total", "bigint"), Column("day", "date"))
    name, moving = f"views{count}{'new' if new else ''}", range(changed or count)
    with closing(StateStore(f"sqlite:///{scene.folder}/{name}.db")) as store:
        versions = [dict.fromkeys(range(count), 0) | dict.fromkeys(moving, n) for n in range(1 if new else 2)]
        maps = [build_map(scene, store, f"{name}_v0", columns, version) for version in versions]
        if not new:
            run_promotion(scene, store, maps[0])
            if not scene.session.spark.catalog.databaseExists(f"{name}_by_hand"):  # otherwise a case before has made it
                swap_by_hand(scene, f"{name}_by_hand", maps[0], columns)
        for number in range(rounds):
            shown = maps[0] if new else maps[(number + 1) % 2]
            target = Environment(f"r{number}", shown.snapshots, shown.views) if new else shown
            hand = f"{name}_by_hand{number if new else ''}"
            scene.sql(f"CREATE SCHEMA IF NOT EXISTS {hand}")

            def ours(target: Environment = target) -> None:
                run_promotion(scene, store, target)

            names = {f"{name}_v0.m{n}" for n in moving}
            swapped = replace(shown, snapshots={key: shown.snapshots[key] for key in shown.snapshots if key in names})

            def raw(hand: str = hand, environment: Environment = swapped) -> None:
                swap_by_hand(scene, hand, environment, columns)

            yield ours, raw


def build_map(
    scene: Scene, store: StateStore, schema: str, columns: tuple[Column, ...], versions: dict[int, int]
) -> Environment:
    """A map of prod whose tables are there, empty."""
    models = {}
    for n, version in versions.items():
        text = f"SELECT CAST({version} AS int) AS id, CAST({version} AS bigint) AS total, {n} AS n"
        models[f"{schema}.m{n}"] = Model(f"{schema}.m{n}", Kind.FULL, "m.sql", 1, text, text)
    empty = Environment("prod")
    new = build_plan(models, empty, empty, Loaded({}), Request(Window(NOW))).new
    for snapshot in new.snapshots.values():
        if store.tables.get(snapshot.table) is None:
            scene.engine.tables.create(Table(snapshot.table, columns))
            store.tables.register(snapshot.table, columns)
    return new


def run_promotion(scene: Scene, store: StateStore, target: Environment) -> None:
    """The environment shows this map from now on; as in a plan, what stays is taken from the map that it shows."""
    with store.leases.hold(target.name, "bench") as lease:
        old = store.environments.get(target.name)
        stays = {name: shown for name, shown in old.snapshots.items() if shown.table == target.snapshots[name].table}
        new = replace(target, snapshots={**target.snapshots, **stays})
        promote_views(store, scene.engine, lease, Wanted(old, new), emit=ignore_event)


def swap_by_hand(scene: Scene, schema: str, target: Environment, columns: tuple[Column, ...]) -> None:
    """The same views as statements."""
    scene.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    names = ", ".join(f"`{column.name}`" for column in columns)
    for name, snapshot in target.snapshots.items():
        view = name.rpartition(".")[2]
        scene.sql(f"CREATE OR REPLACE VIEW {schema}.{view} AS SELECT {names} FROM {snapshot.table}")


DAYS = {"daily": "SELECT id, amount, day FROM source.events WHERE {days}"}
CASES: dict[str, Case] = {
    "20 tables": lambda scene, rounds: compute(scene, rounds, "twenty", tables(20)),
    "a DAG of 50 tables": lambda scene, rounds: compute(scene, rounds, "dag", layers(50)),
    "365 days": lambda scene, rounds: compute(
        scene, rounds, "year", DAYS, "INCREMENTAL_BY_TIME_RANGE (time_column day)", " PARTITIONED BY (day)"
    ),
    "50 views swapped": lambda scene, rounds: promote_rounds(scene, rounds, 50, new=False),
    "200 views swapped": lambda scene, rounds: promote_rounds(scene, rounds, 200, new=False),
    "50 views new": lambda scene, rounds: promote_rounds(scene, rounds, 50, new=True),
    "200 views new": lambda scene, rounds: promote_rounds(scene, rounds, 200, new=True),
    "1 of 5,000 swapped": lambda scene, rounds: promote_rounds(scene, rounds, 5000, changed=1),
    "10 of 5,000 swapped": lambda scene, rounds: promote_rounds(scene, rounds, 5000, changed=10),
    "all of 5,000 swapped": lambda scene, rounds: promote_rounds(scene, min(rounds, WARMUP + 1), 5000),
}


def measure(scene: Scene, work: Work) -> tuple[float, float]:
    """Seconds on the wall and of the CPU."""
    cpu, wall = scene.cpu(), time.perf_counter()
    work()
    return time.perf_counter() - wall, scene.cpu() - cpu


def add_runs(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """What two works took together, round by round."""
    return [(a[0] + b[0], a[1] + b[1]) for a, b in zip(one, other, strict=True)]


def format_row(name: str, ours: list[tuple[float, float]], hand: list[tuple[float, float]]) -> str:
    """A line with the medians and the medians of the ratios round by round."""
    (wall, cpu), (hand_wall, hand_cpu) = (
        tuple(median(part) for part in zip(*side, strict=True)) for side in (ours, hand)
    )
    ratios = [median(a[i] / b[i] for a, b in zip(ours, hand, strict=True)) for i in (0, 1)]
    return f"{name:<22}{wall:>8.2f}{hand_wall:>9.2f}{ratios[0]:>8.2f} x{cpu:>10.2f}{hand_cpu:>9.2f}{ratios[1]:>8.2f} x"


def main(words: list[str]) -> None:
    """Each case: a round to warm up, then a few in turn; medians, and the median of the ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        connection = Connection(conf=(("spark.driver.memory", "2g"),), master="local[2]")
        profile = profile_of(os.environ.get("MERGEPLAN_BENCH_PROFILE", "backfill"))
        session = open_session(connection, folder / ".mergeplan", profile)
        assert isinstance(session, ClassicSession)
        with closing(SparkEngine(session)) as engine:
            scene = Scene(session, engine, folder)
            scene.sql("CREATE SCHEMA source")
            scene.sql(f"CREATE TABLE source.events USING parquet AS {EVENTS}")
            print(f"{'':<22}{'wall s':>8}{'by hand':>9}{'ratio':>10}{'CPU s':>10}{'by hand':>9}{'ratio':>10}")
            for case, pairs in CASES.items():
                if words and not any(word in case for word in words):
                    continue
                rounds = [[measure(scene, work) for work in works] for works in pairs(scene, WARMUP + ROUNDS)]
                ours, hand, *others = map(list, zip(*rounds[WARMUP:], strict=True))
                print(format_row(case, ours, hand), flush=True)
                if others:
                    print(format_row("  with views", ours, add_runs(hand, others[0])), flush=True)
                    print(format_row("  as safe", ours, others[1]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
