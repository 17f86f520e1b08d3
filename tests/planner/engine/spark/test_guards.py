"""A process that has lost its right to a table changes nothing in it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import LeaseHeld
from tests.planner.engine.spark.test_engine import DAILY, DAYS, ORDERS, days

ROW = "SELECT 2 id, 'b' name"
MARK = "0123456789abcdef"
VERBS: dict[str, Callable[[SparkEngine], object]] = {
    "replace": lambda engine: engine.tables.replace(ORDERS, ROW),
    "replace_fresh": lambda engine: engine.tables.replace(ORDERS, ROW, is_fresh=True),
    "replace_interval": lambda engine: engine.tables.replace_interval(DAILY, DAYS, days(2, 4)),
    "merge": lambda engine: engine.tables.merge(ORDERS, f"SELECT * FROM {{0}} UNION ALL {ROW}".format, MARK),
    "overwrite": lambda engine: engine.tables.overwrite(ORDERS, ROW, MARK),
    "unmerge": lambda engine: engine.tables.unmerge(ORDERS, "76543210fedcba98"),
    "drop": lambda engine: engine.tables.drop(ORDERS.name),
    "load": lambda engine: engine.tables.load(ORDERS, [("2", "b")]),
}


def lose_lease() -> None:
    raise LeaseHeld("The right to change it was lost.")


def test_no_verb_changes_a_table_whose_lease_was_lost(engine: SparkEngine) -> None:
    engine.tables.create(DAILY)
    engine.tables.create(ORDERS)
    engine.tables.replace(ORDERS, "SELECT 0 id, 'z' name")
    engine.tables.merge(ORDERS, lambda base: f"SELECT 1 id, name FROM {base}", "76543210fedcba98")

    for name, verb in VERBS.items():
        with engine.guarding(lose_lease), pytest.raises(LeaseHeld):
            verb(engine)
            pytest.fail(f"{name} was not refused")

    assert engine.fetch(f"SELECT * FROM {ORDERS.name}").rows == ((1, "z"),)
    assert engine.fetch(f"SELECT * FROM {DAILY.name}").rows == ()
    assert engine.tables.replace(ORDERS, ROW).rows == 1
    assert not engine.tables.expire(ORDERS.name, timedelta(days=9), days(1, 2).start).removed
