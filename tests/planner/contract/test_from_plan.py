"""A plan as programs read it."""

from __future__ import annotations

from mergeplan.planner.contract.from_plan import plan_view
from mergeplan.planner.contract.plan import ColumnChanges
from tests.planner.building import external, make_plan, model, project, promote

RAW = external("raw.events", "id status amount")


def columns_after(before: str, after: str) -> ColumnChanges:
    """The columns that an edit of `shop.orders` touches, as the plan says."""
    prod, loaded = promote(project(RAW, model("shop.orders", before)))
    plan = make_plan(project(RAW, model("shop.orders", after)), base=prod, loaded=loaded)
    return plan_view(plan, {}).models[0].columns


def test_a_column_that_goes_is_named_though_the_rows_change_too() -> None:
    """A plan that waits for its cost or is blocked compares no tables: nothing else could say it."""
    before = "SELECT id, status FROM raw.events"

    changed = columns_after(before, "SELECT id, amount FROM raw.events WHERE id > 5")
    assert changed == ColumnChanges(added=("amount",), removed=("status",), every=True, lost_readers=(("status", ()),))
    assert columns_after(before, "SELECT id, STATUS FROM raw.events WHERE id > 5") == ColumnChanges(every=True)
    assert columns_after(before, "SELECT * FROM raw.unknown") == ColumnChanges(every=True)
