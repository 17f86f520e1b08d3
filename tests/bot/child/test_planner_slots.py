"""How many planners run at the same time, and whose."""

from __future__ import annotations

from contextlib import ExitStack

from mergeplan.bot.child.planner_slots import PlannerSlots


def test_one_owner_does_not_hold_all_places_while_others_are_known() -> None:
    slots = PlannerSlots(2)
    with ExitStack() as running:

        def start(owner: str, *, only: bool = False) -> str:
            return running.enter_context(slots.take(owner, is_only_owner=only, should_stop=lambda: "full"))

        assert [start("ann"), start("ann"), start("bob"), start("bob", only=True)] == ["", "full", "", "full"]
    with slots.take("ann", is_only_owner=True, should_stop=lambda: "full") as stopped:
        assert not stopped
