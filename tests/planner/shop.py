"""A small shop as a project on disk, and what the executor's and the janitor's tests do with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mergeplan.planner.apply.events import Event, ignore_event
from mergeplan.planner.apply.executor import ApplyOptions, apply
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.plan.build import Plan, Request, build_plan
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.project.loader import Project, load_project
from mergeplan.planner.state.store import StateStore

NOW = datetime(2026, 1, 6, 5, tzinfo=UTC)
FILES = {
    "config.yaml": """
gateways:
  local:
    connection: {type: spark, concurrent_tasks: 2}
default_gateway: local
model_defaults: {dialect: spark, start: 2026-01-01}
""",
    "seeds/items.csv": "id,day,price\n1,2026-01-01,10\n2,2026-01-02,20\n3,2026-01-04,30\n",
    "models/items.sql": """
MODEL (name shop.items, kind SEED (path '../seeds/items.csv'), columns (id INT, day DATE, price INT));
""",
    "models/daily.sql": """
MODEL (
  name shop.daily,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 1),
  audits (not_null(columns := (id)))
);
SELECT id, day, price FROM shop.items WHERE day BETWEEN @start_date AND @end_date
""",
    "models/total.sql": "MODEL (name shop.total, kind FULL);\nSELECT sum(price) AS total FROM shop.daily",
    "models/shown.sql": "MODEL (name shop.shown, kind VIEW);\nSELECT total FROM shop.total",
    "models/apart.sql": "MODEL (name shop.apart, kind FULL);\nSELECT 7 AS seven",
}
ALONE = dict.fromkeys(("items", "daily", "shown", "apart"), "")  # leaves `total`, for tests that need no more


def write_shop(root: Path, **changed: str) -> Project:
    """The shop at `root`; `changed` are files by their stem, '' takes one away."""
    by_stem = {Path(name).stem: name for name in FILES}
    files = FILES | {by_stem.get(stem, f"models/{stem}.sql"): text for stem, text in changed.items()}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if not text:
            path.unlink()
    return load_project(root, NOW)


def make_plan(
    project: Project, store: StateStore, environment: str = "prod", window: Window | None = None, **request: Any
) -> Plan:
    """The plan that makes an environment show the project, as things are."""
    prod = store.environments.get("prod")
    target = prod if environment == "prod" else store.environments.get(environment)
    shown = {s.table: e.name for e in store.environments.all() for s in e.snapshots.values()}
    tables = store.tables.all().keys()
    drifted, contents = store.snapshots.tables_with_drift(), store.contents.load(tables)
    loaded = Loaded(store.intervals.load_timelines(tables), frozenset(shown), drifted, contents, shown)
    return build_plan(project.models, target, prod, loaded, Request(window or Window(NOW), **request))


def plan_and_apply(
    project: Project,
    engine: Engine,
    store: StateStore,
    environment: str = "prod",
    emit: Callable[[Event], None] = ignore_event,
    plan: Plan | None = None,
) -> Outcome:
    """Plan and apply."""

    def make_again() -> Plan:
        return make_plan(project, store, environment)

    options = ApplyOptions(NOW, emit, "ann", replan=make_again)
    return carry_out(plan or make_again(), project, engine, store, options)


def carry_out(plan: Plan, project: Project, engine: Engine, store: StateStore, options: ApplyOptions) -> Outcome:
    """Apply with the lease of the plan's environment."""
    with store.leases.hold(plan.environment, "test") as lease:
        return apply(plan, project, engine, store, lease, options)


def rows(engine: Engine, sql: str) -> list[tuple[object, ...]]:
    """What a query returns."""
    return list(engine.fetch(sql).rows)
