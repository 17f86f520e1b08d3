"""Rows before and after, from the planner's words to the comment, and asked for with /diff."""

from __future__ import annotations

from collections.abc import Callable

from tests.bot.conftest import COLUMN, FILTER, PROJECT, SHOP, Bench, until


def test_the_comment_tells_what_happens_to_rows_and_its_first_line_that_none_changed(bench: Bench) -> None:
    """Behaviour 47: a breaking change without changed rows says so before anything else."""
    bench.knobs(rows_changed=0)
    number = bench.open(FILTER)
    bench.idle()

    first = bench.plan(number).splitlines()[1]
    (call,) = bench.calls("plan", f"pr_{number}")
    assert first == "### ✅ Ready to merge · replaces 2 tables of prod · 0 rows changed"
    assert "`shop.orders`, `shop.totals` hold the same rows as before." in bench.plan(number)
    assert "--data-diff=*=counts" in call["argv"]
    bench.knobs(rows_changed=4)
    bench.say(number, "/plan")
    assert bench.plan(number).splitlines()[1].endswith(" · rows differ in 2 models")
    assert "| `shop.orders` | 10 | **4** changed (40%)<br>`amount` 40% |" in bench.plan(number)


def test_a_diff_is_asked_for_with_a_model_and_a_condition(bench: Bench) -> None:
    """Behaviour 47: the planner is asked, from prod's commit; nothing of the pull request changes."""
    bench.knobs(rows_changed=4)
    number = bench.open(FILTER)
    bench.idle()
    before = len(bench.calls("plan"))
    comment = bench.say(number, "/diff shop.orders --where amount > 1 AND `day` = '$(id)'")

    (call,) = bench.calls("data_diff")
    assert call["argv"][-4:] == [f"pr_{number}", "shop.orders", "--output", "json"]
    assert "--where=amount > 1 AND `day` = '$(id)'" in call["argv"]
    (reply,) = bench.replies(number)
    assert "**4 rows changed**" in reply
    assert "| `shop.orders` | 10 |" in reply
    assert bench.reactions(number, comment) == ["eyes", "rocket"]
    assert len(bench.calls("plan")) == before


def test_a_diff_needs_somebody_who_may_and_something_built(make_bench: Callable[..., Bench]) -> None:
    """Behaviour 3: rows are shown to nobody by somebody else's word; without tables there is nothing to compare."""
    bench = make_bench({**PROJECT, "config.yaml": "gateways: {}\ncicd_bot: {command_namespace: '#Warehouse'}\n"})
    number = bench.open(COLUMN)
    bench.idle()
    bench.say(number, "/warehouse diff shop.orders", author="rea")
    bench.say(number, "/warehouse diff shop.nothing")
    other = bench.say(number, "/diff")

    assert "needs the `write` permission" in bench.replies(number)[0]
    assert "`shop.nothing` has no table here that differs" in bench.replies(number)[1]
    assert bench.reactions(number, other) == []
    assert len(bench.replies(number)) == 2
    assert [call["argv"][-3] for call in bench.calls("data_diff")] == ["shop.nothing"]


def test_a_question_gives_way_to_a_push_and_is_answered_after_it(bench: Bench) -> None:
    """Behaviour 20: whoever asked need not ask again; on a pull request that is not open it is answered at once."""
    bench.knobs(rows_changed=1)
    number = bench.open(FILTER)
    bench.idle()
    bench.knobs(rows_changed=1, dawdle=True)
    bench.github.comment(SHOP, number, "/diff", author="wim")
    until(lambda: bench.calls("data_diff"), what="the question")
    bench.github.commit(SHOP, "change", COLUMN, "Another", author="wim")
    until(lambda: len(bench.calls("plan", "pr_1")) == 2, what="the plan of the push")
    bench.knobs(rows_changed=1)
    bench.idle()

    assert len(bench.calls("data_diff")) == 2
    assert "**1 row changed**" in bench.replies(number)[0]
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    bench.say(number, "/diff\n/lineage shop.orders")
    assert bench.replies(number)[1].count("This pull request is closed.") == 2
