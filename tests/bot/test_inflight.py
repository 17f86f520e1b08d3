"""What else is in flight: where plans meet, what one takes back, and whom a move of prod concerns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.bot.inflight import (
    EVERYTHING,
    Meeting,
    Move,
    Undoing,
    build_move,
    find_meeting,
    find_undoing,
    is_concerned,
)
from mergeplan.planner.contract.plan import ColumnChanges, ModelChange, PlanView
from tests.bot.conftest import COLUMN, FILTER, PROJECT, SHOP, Bench


def plan(*models: ModelChange) -> PlanView:
    return PlanView(id="p", environment="pr_1", base="prod", models=models)


def edit_change(name: str, diff: str = "", columns: tuple[str, ...] = (), parents: tuple[str, ...] = ()) -> ModelChange:
    change = ColumnChanges(altered=columns)
    return ModelChange(name=name, change="direct", recomputed=True, diff=diff, columns=change, parents=parents)


def test_two_plans_meet_in_models_and_columns() -> None:
    """Both edit it, in a column that both touch; or one edits what the other computes."""
    below = ModelChange(name="b", change="indirect", recomputed=True)
    mine, other = (
        plan(edit_change("a", columns=("x", "y")), below),
        plan(edit_change("a", columns=("y",)), edit_change("b")),
    )

    assert find_meeting(7, mine, other) == Meeting(7, ("a",), ("b",), ("a.y",))
    assert find_meeting(7, mine, plan(edit_change("c"))) is None


def test_a_plan_that_takes_a_merge_back_is_known_by_its_lines() -> None:
    """Whole, in part, or not at all."""
    there, back = "--- a\n+++ b\n-1\n+2\n", "--- a\n+++ b\n-2\n+1\n"
    merged = plan(edit_change("a", there), ModelChange(name="n", change="added"))

    assert find_undoing(41, plan(edit_change("a", back), ModelChange(name="n", change="removed")), merged) == Undoing(
        41, ("a", "n"), True
    )
    assert find_undoing(41, plan(edit_change("a", back)), merged) == Undoing(41, ("a",), False)
    assert find_undoing(41, plan(edit_change("a", there)), merged) is None


@pytest.mark.parametrize(
    ("moves", "concerned"),
    [
        ((Move(2, ("z",)),), False),
        ((Move(2, ("a",)),), True),
        ((Move(2, ("up",)),), True),  # what the plan reads
        ((Move(2, ("z",), ("a",)),), True),  # prod reads what the plan changes
        ((Move(2, (EVERYTHING,)),), True),
        ((), True),  # nobody knows what moved
    ],
)
def test_prods_moves_concern_a_plan_or_pass_it_by(moves: tuple[Move, ...], concerned: bool) -> None:
    """Behaviour 22: in doubt it is made again."""
    assert is_concerned(plan(edit_change("a", parents=("up",))), moves, 1, 2) is concerned
    assert build_move(3, None).models == (EVERYTHING,)


def test_pull_requests_on_one_model_know_of_each_other(copy_bench: Callable[..., Bench]) -> None:
    """In both comments, until one is closed."""
    bench = copy_bench()
    first, second = bench.open(COLUMN, "one"), bench.open(FILTER, "two")
    bench.idle()
    assert f"#{second} edits `shop.orders` too" in bench.plan(first)
    assert f"#{first} edits `shop.orders` too" in bench.plan(second)
    bench.github.close(SHOP, second, author="wim")
    bench.idle()

    assert "change the same models" not in bench.plan(first)


def test_a_revert_is_called_one_and_a_merge_elsewhere_makes_no_plan_again(copy_bench: Callable[..., Bench]) -> None:
    """Behaviours 13, 22: what prod's move does not concern stays planned, and is promoted for nothing."""
    bench = copy_bench()
    merged = bench.open({"models/more.sql": "SELECT 3 AS x\n"}, "more")
    other = bench.open(COLUMN, "one")
    bench.idle()
    bench.github.merge(SHOP, merged, author="ann")
    bench.idle()
    assert len(bench.calls("plan", f"pr_{other}")) == 1
    assert "base `prod` revision 2" in bench.plan(other)
    bench.github.merge(SHOP, other, author="ann")
    bench.idle()
    assert "nothing was computed" in bench.plan(other)

    back = bench.open({"models/orders.sql": PROJECT["models/orders.sql"]}, "back")
    bench.idle()
    assert f"This reverts #{other}: `shop.orders` is as it was before that merge." in bench.plan(back)


def test_edits_that_differ_only_in_comment_lines_are_no_reverts_of_each_other() -> None:
    """A removed `-- one` is `--- one` in a diff, and looks like the name of a file."""
    head = "--- a/m.sql\n+++ b/m.sql\n@@ -1,2 +1,2 @@\n"
    merged = plan(edit_change("a", f"{head}+-- one\n+SELECT 1"))

    assert find_undoing(7, plan(edit_change("a", f"{head}--- one\n-SELECT 1")), merged) == Undoing(7, ("a",), True)
    assert find_undoing(7, plan(edit_change("a", f"{head}--- two\n-SELECT 1")), merged) is None
