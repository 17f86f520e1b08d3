"""Random edits of dbt projects, applied: what is kept holds the rows of dbt's runs of the edited project.

Families of models stand beside each other in one project, each with an edit of its own. The project is built on one day
and run on the next, edited and applied; beside it the edited project is built and run on the same days, and, where that
differs, built at once on the second day, as a table is that was computed again. MERGEPLAN_CASES says how many, in tens
(`make prove` runs 200), MERGEPLAN_SEED where they begin.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.executor import ApplyOptions
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.plan.build import Plan, Request, build_plan, build_run
from mergeplan.planner.plan.change import Category, Change
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.state.store import StateStore
from tests.conftest import empty
from tests.planner.generating.dbt_projects import Family, choose_family, write_project
from tests.planner.shop import carry_out, rows

from .test_real_dbt import DBT
from .test_real_dbt import pytestmark as marks

pytestmark = [*marks, pytest.mark.timeout(3600)]
BLOCK = 10
CASES = int(os.environ.get("MERGEPLAN_CASES", "2000")) // 10
SEED = int(os.environ.get("MERGEPLAN_SEED", "1"))
FIRST, LAST = datetime(2026, 1, 2, 5, tzinfo=UTC), datetime(2026, 1, 3, 5, tzinfo=UTC)
CREATE = (
    "CREATE TABLE raw.items (id INT, day DATE, code STRING, price INT) USING parquet",
    "CREATE TABLE raw.people (id INT, name STRING, at TIMESTAMP) USING parquet",
)
ITEMS = {
    FIRST: "(1, DATE'2026-01-01', 'EUR', 2), (2, DATE'2026-01-01', 'USD', 3), (3, DATE'2026-01-01', NULL, 9)",
    LAST: "(4, DATE'2026-01-02', 'EUR', 4), (5, DATE'2026-01-02', 'eur', 7), (6, DATE'2026-01-02', NULL, 5)",
}
PEOPLE = {
    FIRST: "(1, 'a', TIMESTAMP'2026-01-01'), (2, 'b', TIMESTAMP'2026-01-01'), (3, 'c', TIMESTAMP'2026-01-01')",
    LAST: "(1, 'x', TIMESTAMP'2026-01-02'), (2, 'b', TIMESTAMP'2026-01-02'), (4, 'd', TIMESTAMP'2026-01-02')",
}
KEEPS = (Category.EQUIVALENT, Category.METADATA, Category.INDIRECT_NON_BREAKING)
Rows = dict[str, object]


@dataclass
class DbtProject:
    """A project of families in a schema of its own."""

    root: Path
    engine: SparkEngine
    schema: str

    def __post_init__(self) -> None:
        self.store = StateStore(f"sqlite:///{self.root}.db")

    def apply(self, families: list[Family], now: datetime) -> Plan:
        """Apply a plan for these families, or run what is due if there is nothing to plan."""
        project = load_project(write_project(self.root, self.schema, families), now)
        prod = self.store.environments.get("prod")
        tables = frozenset(snapshot.table for snapshot in prod.snapshots.values())
        loaded = Loaded(self.store.intervals.load_timelines(self.store.tables.all()), tables)
        plan = build_plan(project.models, prod, prod, loaded, Request(Window(now)), ())
        if not plan.changes:
            plan = build_run(prod, loaded, Window(now))
        outcome = carry_out(plan, project, self.engine, self.store, ApplyOptions(now, ignore_event, "ann"))
        outcome.raise_failure()
        return outcome.plan or plan

    def read_rows(self, model: str) -> object:
        """Return the columns and rows of a model in prod; ids and times of versions are those of the run."""
        columns = [c for c in self.engine.schema(f"SELECT * FROM {self.schema}.{model}") if "dbt_" not in c.name]
        names = ", ".join(column.name for column in columns)
        table_rows = rows(self.engine, f"SELECT {names} FROM {self.schema}.{model} ORDER BY ALL")
        return [(column.name, column.type) for column in columns], table_rows


@pytest.fixture(autouse=True)
def _dbt(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(PYTHON, str(DBT))
    yield


def set_day(engine: SparkEngine, day: datetime) -> None:
    """Let the sources hold what they hold on a day."""
    items = ", ".join(values for moment, values in ITEMS.items() if moment <= day)
    engine.fetch(f"INSERT OVERWRITE raw.items VALUES {items}")
    engine.fetch(f"INSERT OVERWRITE raw.people VALUES {PEOPLE[day]}")


def is_kept(change: Change | None) -> bool:
    return change is None or (change.category in KEEPS and not change.recomputed)


def list_wrong(family: Family, changes: dict[str, Change], sides: tuple[Rows, Rows, Rows]) -> Iterator[str]:
    """Yield each model of a family in which prod holds what no build of the edited project holds."""
    prod, replayed, fresh = sides
    is_open = False  # below an edit after which rows of the old text stay, as they do for dbt
    for name in family.models:
        change = changes.get(name)
        is_open = is_open or (change is not None and change.category is Category.FORWARD_ONLY)
        is_open = is_open or (name.startswith("past") and not is_kept(change))
        kept_itself = name.startswith(("inc", "past")) and is_kept(change)
        builds = (replayed[name],) if kept_itself else (replayed[name], fresh.get(name))
        if not is_open and prod[name] not in builds:
            verdict = "no change" if change is None else f"{change.category} ({change.rule})"
            yield f"{name}, {verdict}, {family.strategy}, {family.edits}:\n{prod[name]}\n{replayed[name]}"
        if name.startswith("shown"):
            is_open = False  # what follows reads nothing of these


@pytest.mark.parametrize("block", range(max(CASES // BLOCK, 1)))
def test_what_is_kept_after_a_random_edit_is_what_dbts_runs_make(
    tmp_path: Path, engine: SparkEngine, block: int
) -> None:
    numbers = range(block * BLOCK, (block + 1) * BLOCK)
    pairs = [choose_family(number, SEED * 100_000 + number) for number in numbers]
    old, new = [before for before, _ in pairs], [after for _, after in pairs]
    prod, replay, fresh = (DbtProject(tmp_path / name, engine, name) for name in ("shop", "replay", "fresh"))
    engine.fetch("CREATE DATABASE raw")
    for text in CREATE:
        engine.fetch(text)
    for day in (FIRST, LAST):
        set_day(engine, day)
        prod.apply(old, day)
        replay.apply(new, day)

    changes = {change.name.partition(".")[2]: change for change in prod.apply(new, LAST).changes}
    shown, replayed = ({m: side.read_rows(m) for f in new for m in f.models} for side in (prod, replay))
    others = [family for family in new if any(shown[name] != replayed[name] for name in family.models)]
    if others:
        fresh.apply(others, LAST)
    built = {name: fresh.read_rows(name) for family in others for name in family.models}

    wrong = [text for family in new for text in list_wrong(family, changes, (shown, replayed, built))]
    rebuilt = [name for name, change in changes.items() if change.recomputed and name in shown]  # what is compared
    needless = [name for name in rebuilt if shown[name] == replayed[name]]
    print(f"\nVERDICTS {Counter(c.rule for c in changes.values())} others {len(others)}, same rows {len(needless)}")  # noqa: T201
    assert wrong == []
    empty(engine)
