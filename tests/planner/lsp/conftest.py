"""A shop whose prod is in the state alone, as if its tables had been computed, and an editor of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.lsp.editor import Editor
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.session.use_cases.planning import check_request, make_plan
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.state.environments import Cause
from tests.planner.session.conftest import refuse_engine
from tests.planner.shop import FILES

ORDERS = """MODEL (
  name shop.orders,
  kind FULL,
  grain id
);
WITH priced AS (
  SELECT id, day, price AS amount FROM shop.daily
)
SELECT id, day, amount, amount * 2 AS twice FROM priced
"""
TOTALS = """MODEL (name shop.totals, kind FULL);
SELECT o.day, sum(o.amount) AS amount, count(*) AS orders
FROM shop.orders AS o GROUP BY o.day
"""
LATEST = """MODEL (name shop.latest, kind VIEW);
SELECT id, twice FROM shop.orders WHERE day > DATE '2026-01-02'
"""
MODELS = {"models/orders.sql": ORDERS, "models/totals.sql": TOTALS, "models/latest.sql": LATEST}
TEST = """test_totals:
  model: shop.totals
  inputs:
    shop.orders:
    - {day: 2026-01-01, amount: 2}
    - {day: 2026-01-01, amount: 3}
  outputs:
    query:
    - {day: 2026-01-01, amount: 5, orders: 2}
"""


def write_files(root: Path, files: dict[str, str]) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def promote(settings: SessionSettings) -> None:
    """Record every table as computed, and the project as prod."""
    work = Workspace(settings)
    try:
        plan = make_plan(work, check_request(work, PlanOptions()), work.project.models)
        with work.store.leases.hold("prod", "test") as lease:
            for change in plan.changes:
                assert change.new is not None
                work.store.tables.register(change.new.table, ())
                for interval in change.missing:
                    work.store.intervals.record(change.new.table, interval, lease=lease)
                work.store.costs.record(change.new.table, work.now, units=1, rows=10, seconds=3.0)
            entry = work.store.promotions.begin(lease, plan.old, plan.new, Cause(plan.id))
            work.store.promotions.finish(lease, entry)
    finally:
        work.close()


@pytest.fixture
def settings(tmp_path: Path) -> SessionSettings:
    """The settings of the shop's folder, in which no Spark may be started."""
    write_files(tmp_path, {**FILES, **MODELS, "tests/test_totals.yaml": TEST})
    return SessionSettings(tmp_path.resolve(), open_engine=refuse_engine)


@pytest.fixture
def editor(settings: SessionSettings) -> Editor:
    """An editor of the shop as it is in prod, which is trusted."""
    promote(settings)
    opened = Editor(replace(settings), trusted=True)
    opened.live.load()
    return opened


def ask_effects(editor: Editor, path: str) -> list[str]:
    """What the editor says of a file's edit."""
    assert editor.view is not None
    effects = editor.effects(path, editor.view, lambda: True)
    assert effects is not None
    return [effect.text for effect in effects]


Ask = Callable[[Editor, str], list[str]]
