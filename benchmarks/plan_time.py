"""How long a plan takes: it should follow the size of the change, not of the project. Prints ratios.

make bench-plan                  200 and 1,000 models
python benchmarks/plan_time.py 5000
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.plan.build import Request, build_plan
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.semantics.columns import tables_of
from mergeplan.planner.snapshot.environment import Environment

NOW = datetime(2026, 1, 10, tzinfo=UTC)
ROUNDS = 3


def project(size: int) -> dict[str, Model]:
    """A graph of `size` models in which each reads one or two of the thirty before it."""
    rng = random.Random(1)  # noqa: S311 # reproducible, not secret
    columns = tuple(Column(name, "bigint") for name in ("id", "x", "d"))
    models = {"raw.events": Model("raw.events", Kind.EXTERNAL, "external_models.yaml", 1, "", columns=columns)}
    for number in range(size):
        before = range(max(0, number - 30), number)
        parents = [f"big.m{n}" for n in rng.sample(before, min(2, len(before)))] or ["raw.events"]
        joined = f" JOIN {parents[1]} AS b ON a.id = b.id AND b.x > {number}" if len(parents) > 1 else ""
        sql = f"SELECT a.id, a.x, a.d, {number} AS c{number} FROM {parents[0]} AS a{joined} WHERE a.d >= 7"
        name = f"big.m{number}"
        reads = tuple(sorted(tables_of(spark_tree(sql))))
        models[name] = Model(name, Kind.FULL, f"models/m{number}.sql", 1, sql, sql, depends_on=reads)
    return models


def seconds(work: Callable[[], object]) -> float:
    """The fastest of a few runs."""
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def count_changes(models: Mapping[str, Model], base: Environment, table_state: Loaded) -> int:
    plan = build_plan(models, replace(base, name="dev", revision=0), base, table_state, Request(Window(NOW)))
    return len(plan.changes)


def measure_plans(size: int) -> dict[str, float]:
    """Seconds of plans over a project of this size: nothing changed, the last model changed, the first changed."""
    models = project(size)
    empty = Environment("prod")
    started = time.perf_counter()
    first = build_plan(models, empty, empty, Loaded({}), Request(Window(NOW)))
    whole = time.perf_counter() - started
    base = replace(first.new, revision=1)
    loaded = Loaded({c.new.table: c.needed for c in first.changes if c.new})

    def edit_model(name: str) -> dict[str, Model]:
        model = models[name]
        return {**models, name: replace(model, sql=model.sql.replace("SELECT ", "SELECT 1 AS extra, ", 1))}

    leaf, root = edit_model(f"big.m{size - 1}"), edit_model("big.m0")
    return {
        "first plan": whole,
        "nothing changed": seconds(lambda: count_changes(models, base, loaded)),
        "a leaf changed": seconds(lambda: count_changes(leaf, base, loaded)),
        "the root changed": seconds(lambda: count_changes(root, base, loaded)),
    }


def start_seconds(arguments: list[str]) -> float:
    """Seconds of a Python process with these arguments."""
    return seconds(lambda: subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True))


def main(sizes: list[int]) -> None:
    """Print a table of seconds, and the ratios that matter."""
    results = {size: measure_plans(size) for size in sizes}
    names = list(next(iter(results.values())))
    print(f"{'seconds':<20}" + "".join(f"{f'{size:,} models':>16}" for size in sizes))
    for name in names:
        print(f"{name:<20}" + "".join(f"{results[size][name]:>16.3f}" for size in sizes))
    small, large = results[sizes[0]], results[sizes[-1]]
    print(
        f"\na leaf's change / the first plan, {sizes[-1]:,} models: {large['a leaf changed'] / large['first plan']:.3f}"
    )
    ratio = large["nothing changed"] / small["nothing changed"]
    print(f"nothing changed, {sizes[-1]:,} / {sizes[0]:,} models: {ratio:.1f}")
    help_time, floor = start_seconds(["-m", "mergeplan.bot.main", "--help"]), start_seconds(["-c", "pass"])
    print(f"mergeplan --help: {help_time:.3f} s, {help_time / floor:.1f} times an empty Python")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [200, 1000])
