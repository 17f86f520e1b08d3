"""A project over one table that others write, filled run by run: what its tables hold after each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from mergeplan.planner.apply.events import Emit, ignore_event
from mergeplan.planner.apply.executor import ApplyOptions, apply
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.model.model import Column
from mergeplan.planner.plan.build import Request, build_plan, build_run
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.state.store import StateStore
from tests.conftest import FORMAT

CONFIG = """
gateways:
  local:
    connection: {type: spark, concurrent_tasks: 1}
default_gateway: local
model_defaults: {dialect: spark, start: 2026-01-01}
""".replace("01}", f"01, table_format: {FORMAT}}}" if FORMAT else "01}")


@dataclass
class Daily:
    """The project; its table `raw.items` has a day for each row, so that a query may ask for those of a stretch."""

    root: Path
    engine: Engine
    store: StateStore
    columns: str = "id int, name string, at date"
    external: str = ""  # more of external_models.yaml

    def has(self, *rows: str) -> None:
        """Let `raw.items` hold these rows, each as SQL: `1, 'a', date'2026-01-01'`."""
        pairs = [tuple(column.strip().split(" ")) for column in self.columns.split(",")]
        table = Table("raw.items", tuple(Column(name, kind) for name, kind in pairs))
        self.engine.tables.create(table)
        names = ", ".join(name for name, _ in pairs)
        casts = ", ".join(f"cast({name} as {kind}) {name}" for name, kind in pairs)
        values = ", ".join(f"({row})" for row in rows)
        self.engine.tables.replace(table, f"SELECT {casts} FROM VALUES {values} AS t({names})")

    def run(self, on: str, *models: str, emit: Emit = ignore_event, engine: Engine | None = None) -> Outcome:
        """Apply a plan for these models (files' texts), or if there is nothing to plan run what is due, at five o'clock
        of a day."""
        now = datetime.fromisoformat(on).replace(tzinfo=UTC, hour=5)
        (self.root / "models").mkdir(parents=True, exist_ok=True)
        (self.root / "config.yaml").write_text(CONFIG)
        declared = "".join(f"\n    {column.strip().replace(' ', ': ')}" for column in self.columns.split(","))
        (self.root / "external_models.yaml").write_text(f"- name: raw.items\n  columns:{declared}\n{self.external}")
        for number, model in enumerate(models):
            (self.root / f"models/t{number}.sql").write_text(model)
        project = load_project(self.root, now)
        prod = self.store.environments.get("prod")
        loaded = Loaded(
            self.store.intervals.load_timelines(self.store.tables.all()),
            frozenset(s.table for s in prod.snapshots.values()),
        )
        plan = build_plan(project.models, prod, prod, loaded, Request(Window(now)), ())
        if not plan.changes:
            plan = build_run(prod, loaded, Window(now))
        with self.store.leases.hold("prod", "test") as lease:
            return apply(plan, project, engine or self.engine, self.store, lease, ApplyOptions(now, emit, "ann"))

    def rows(self, table: str = "shop.t", columns: str = "*") -> list[tuple[object, ...]]:
        """What prod shows of a table, sorted; moments as short texts."""
        table_rows = self.engine.fetch(f"SELECT {columns} FROM {table} ORDER BY ALL").rows
        return [tuple(map(_plain, row)) for row in table_rows]


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return f"{value:%m-%d %H}" if value.year > 1970 else "ever"
    return f"{value:%m-%d}" if isinstance(value, date) else value
