"""Measure the second witness: its verdicts on kept models, and the time of a check.

make bench-witness                         the case book, a dbt project, 300 generated edits, and plans of 1,000 models
python -m benchmarks.witness 2000 1000     as many generated edits, and plans of as many models
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TypeVar

from benchmarks.plan_command import COLUMN, KEY
from benchmarks.projects import HUB, write_project
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine
from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.plan.witness.check import Check, CheckState
from mergeplan.planner.plan.witness.claims import claims_of
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import make_plan, promote
from tests.planner.casebook import cases
from tests.planner.dbt import edits
from tests.planner.generating import generate
from tests.planner.generating.data import TABLES, TYPES
from tests.planner.witnessing import Models, check_plan, find_columns, witness

SMALL = (("spark.driver.memory", "1500m"), ("spark.sql.shuffle.partitions", "2"))
NOW = datetime(2026, 1, 10, tzinfo=UTC)
ROUNDS = 5
REFUSED = "refuses it"
Edit = TypeVar("Edit")
# Edits of the hub's file: the text that is replaced, and its replacement.
HUB_EDITS = {"hub +1 column": COLUMN, "hub, other key": KEY, "hub, a comment": ("\nSELECT\n", "\nSELECT -- rows\n")}


def list_table_columns(model: Model) -> tuple[Column, ...]:
    """Return the columns of an external table of a generated project, which may be declared in part."""
    return tuple(Column(name, TYPES[kind]) for name, kind in TABLES[model.name].items())


def list_source_columns(model: Model) -> tuple[Column, ...]:
    """Return the columns of a source of the dbt project, of which some have no type."""
    return tuple(Column(column.name, column.type or "string") for column in model.columns)


def count_states(edits: Iterable[Edit], check_edit: Callable[[Edit], Mapping[str, Check]]) -> Counter[str]:
    """Count Spark's verdicts on the claims of each edit; a project that has no plan is left out."""
    states: Counter[str] = Counter()
    for edit in edits:
        try:
            checks = check_edit(edit)
        except ProjectErrors:
            continue
        for check in checks.values():
            states[_describe(check)] += 1
    return states


def _describe(check: Check) -> str:
    """Return the row of the table in which a check is counted."""
    if check.state is CheckState.EXPLAINED:
        return f"by rule: {check.detail}"
    if REFUSED in check.detail:
        return "refused by Spark"  # a build of it would fail
    return str(check.state)


def check_case_book(engine: SparkEngine) -> Counter[str]:
    return count_states(cases(), lambda case: witness(engine, case.before, case.after).checks)


def check_dbt_edits(engine: SparkEngine) -> Counter[str]:
    """Count the verdicts on the recorded edits of a dbt project."""
    with tempfile.TemporaryDirectory() as folder:
        before = edits.load_models(edits.copy_edited(Path(folder) / "base", {}))

        def check_edit(case: edits.EditCase) -> Mapping[str, Check]:
            after = edits.load_models(edits.copy_edited(Path(folder) / case.name, case.edit), case.name)
            return witness(engine, before, after, outside=list_source_columns).checks

        return count_states(edits.cases(), check_edit)


def check_generated(engine: SparkEngine, count: int) -> Counter[str]:
    def check_seed(seed: int) -> Mapping[str, Check]:
        case = generate(seed)
        return witness(engine, case.before, case.after, outside=list_table_columns).checks

    return count_states(range(1, count + 1), check_seed)


def edit_hub(root: Path, models: Models, before: str, after: str) -> Models:
    """Return the models with the text of the hub edited."""
    hub = models[HUB]
    path = root / hub.path
    text = path.read_text()
    assert before in text, f"{path} has no {before!r}"
    path.write_text(text.replace(before, after, 1))
    edited = load_project(root, NOW).models
    path.write_text(text)
    return edited


def measure_hub(engine: SparkEngine, size: int) -> Iterator[str]:
    """Yield a row for each edit of a hub: its kept models, and the times of the plan and of the check."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_project(root, size)
        models = load_project(root, NOW).models
        prod, loaded = promote(models)
        tables = find_columns(engine, make_plan(models, Environment("prod"), Environment("prod")))
        for name, (before, after) in HUB_EDITS.items():
            edited = edit_hub(root, models, before, after)
            taken = []
            for _ in range(ROUNDS):
                started = time.perf_counter()
                plan = make_plan(edited, Environment("dev"), prod, loaded)
                planned = time.perf_counter()
                checks = check_plan(engine, plan, tables)
                taken.append((planned - started, time.perf_counter() - planned))
            plans, checking = (median(values) for values in zip(*taken, strict=True))
            claim_count = len(claims_of(plan))
            agreed = sum(check.state is not CheckState.DISAGREES for check in checks.values())
            yield (
                f"{name:20} kept {claim_count:4}  agreed {agreed:4}  plan {plans:6.2f} s  check {checking:6.2f} s"
                f"  {1000 * checking / max(claim_count, 1):6.1f} ms each  ratio {(plans + checking) / plans:5.2f}"
            )


def print_states(title: str, states: Counter[str]) -> None:
    total = sum(states.values())
    print(f"\n{title}: {total} models that the rules keep")
    for state, count in states.most_common():
        print(f"  {count:6}  {count / max(total, 1):6.1%}  {state}")


def main(count: int = 300, size: int = 1000) -> None:
    with tempfile.TemporaryDirectory() as home:
        engine = open_engine(Connection(conf=SMALL, master="local[2]"), Path(home), wait=0)
        try:
            print_states("case book", check_case_book(engine))
            print_states("recorded edits of a dbt project", check_dbt_edits(engine))
            print_states(f"{count} generated edits", check_generated(engine, count))
            print(f"\n{size} models, the hub edited")
            for row in measure_hub(engine, size):
                print(f"  {row}")
        finally:
            engine.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
