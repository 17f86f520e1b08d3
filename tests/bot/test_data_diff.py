"""Rows before and after, from the planner's words to the comment, and asked for with /diff."""

from __future__ import annotations

from tests.bot.conftest import FILTER, Bench


def test_the_comment_tells_what_happens_to_rows_and_its_first_line_that_none_changed(bench: Bench) -> None:
    """Behaviour 47: a breaking change without changed rows says so before anything else."""
    bench.knobs(rows_changed=0)
    number = bench.open(FILTER)
    bench.idle()

    first = bench.plan(number).splitlines()[1]
    (call,) = bench.calls("plan", f"pr_{number}")
    assert first == "### ✅ 1 breaking, 1 indirect breaking · 0 rows changed"
    assert "`shop.orders`, `shop.totals` hold the same rows as before." in bench.plan(number)
    assert "--data-diff=*=counts" in call["argv"]
    bench.knobs(rows_changed=4)
    bench.say(number, "/plan")
    assert "8 rows changed" in bench.plan(number).splitlines()[1]
    assert "| `shop.orders` | 10 → 10 | 0 | 0 | 4 (40 %) | `amount` 4 (40 %) | by `id` |" in bench.plan(number)
