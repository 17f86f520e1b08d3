"""`/restate --copy`: rows of unedited models in new tables, which the merge promotes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.bot.records import PullState
from mergeplan.bot.results import is_free
from tests.bot.conftest import COLUMN, SHOP, Bench
from tests.bot.test_real_planner import BARE, rows

DAILY = """MODEL (name shop.daily, start '2026-01-01', kind INCREMENTAL_BY_TIME_RANGE (time_column day), grain day);
SELECT day, rand() AS v FROM (SELECT explode(sequence(DATE '2026-01-01', DATE '2026-01-04')) AS day)
WHERE day BETWEEN @start_date AND @end_date
"""
ALL = "SELECT day(day), v FROM {}.daily ORDER BY day"


def test_a_restatement_is_planned_once_under_its_authors_name(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    bench.say(number, "/restate shop.totals --start 2026-01-01 --end 2026-01-07 --copy", author="wim")
    call = bench.calls("plan", "pr_1")[-1]["argv"]

    assert "--restate-copy=shop.totals=2026-01-01..2026-01-07" in call
    assert call[call.index("--who") + 1] == "wim"
    assert bench.record(number).wishes.overrides == ()
    bench.say(number, "/plan", author="wim")
    assert not any(part.startswith("--restate-copy") for part in bench.calls("plan", "pr_1")[-1]["argv"])


def test_a_reader_of_the_repository_restates_nothing(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    before = len(bench.calls("plan"))
    bench.say(number, "/restate shop.totals --copy", author="rea")

    assert len(bench.calls("plan")) == before
    assert "This needs the `write` permission" in bench.replies(number)[-1]


@pytest.mark.prove
def test_days_are_computed_again_looked_at_and_promoted_for_nothing(make_bench: Callable[..., Bench]) -> None:
    """Behaviour 9: from a pull request that edits no model; the rows are random, so that each computing shows."""
    files = {"config.yaml": BARE["config.yaml"], "models/daily.sql": DAILY}
    bench = make_bench(project=files, planner_command=(), warm=True, patience=900.0)
    number = bench.open({"README.md": "# Wrong on January 2nd\n"})
    bench.idle()
    before = rows(bench.home, ALL.format("shop"))
    bench.say(number, "/restate shop.daily --start 2026-01-02 --end 2026-01-02 --copy", author="wim")

    assert bench.record(number).state is PullState.PLANNED, bench.plan(number)
    assert "Restated in new tables: `shop.daily`. The merge promotes them." in bench.replies(number)[-1]
    copied = rows(bench.home, ALL.format("shop__pr_1"))
    assert [new == old for new, old in zip(copied, before, strict=True)] == [True, False, True, True]
    assert rows(bench.home, ALL.format("shop")) == before
    assert "wim restates its rows from 2026-01-02" in bench.plan(number)
    bench.say(number, "/restate shop.nothing --copy", author="wim")
    assert "- Nothing is restated in a copy: `shop.nothing` selects no model." in bench.replies(number)[-1]
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    promoted = bench.record(number)
    done = promoted.promotion.outcome
    assert (promoted.state, bool(done and done.promotion and is_free(done.promotion))) == (PullState.PROMOTED, True)
    assert rows(bench.home, ALL.format("shop")) == copied
