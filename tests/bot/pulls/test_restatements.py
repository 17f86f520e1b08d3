"""`/restate --copy`: rows of unedited models in new tables, which the merge promotes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.bot.forge.events import Event, WrittenDescription
from mergeplan.bot.records import PullState
from mergeplan.bot.results import is_free
from tests.bot.conftest import COLUMN, SHOP, Bench
from tests.bot.test_real_planner import BARE, rows

DAILY = """MODEL (name shop.daily, start '2026-01-01', kind INCREMENTAL_BY_TIME_RANGE (time_column day), grain day);
SELECT day, rand() AS v FROM (SELECT explode(sequence(DATE '2026-01-01', DATE '2026-01-04')) AS day)
WHERE day BETWEEN @start_date AND @end_date
"""
LINE = "/restate shop.totals --start 2026-01-01 --end 2026-01-07 --copy"
OTHER = "/restate shop.orders --copy"
DAYS = "shop.totals=2026-01-01..2026-01-07"
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


def describe(bench: Bench, number: int, text: str, author: str = "wim") -> None:
    bench.github.edit_pull_request(SHOP, number, body=text, author=author)
    bench.idle()


def restated(bench: Bench) -> list[str]:
    """The restatements that the planner was given, those of each plan joined."""
    plans = (call["argv"] for call in bench.calls("plan", "pr_1"))
    return [" ".join(part for part in argv if part.startswith("--restate-copy")) for argv in plans]


def test_a_line_of_the_description_restates_until_it_is_removed(bench: Bench) -> None:
    """Once, under the name of who wrote it; an edit of another line changes nothing."""
    number = bench.open(COLUMN, title=f"Late rows\n\n{LINE}")
    bench.idle()
    call = bench.calls("plan", "pr_1")[0]["argv"]
    assert (restated(bench), call[call.index("--who") + 1]) == ([f"--restate-copy={DAYS}"], "wim")
    describe(bench, number, f"Of January.\n{LINE}", author="ann")
    assert restated(bench) == [f"--restate-copy={DAYS}"]
    describe(bench, number, "Of January.", author="ann")

    assert restated(bench)[1:] == ["--restate-copy=shop.totals=reset"]
    assert bench.record(number).wishes.overrides == ()
    replies = bench.replies(number)
    assert ["`wim` asked in the description:" in replies[0], "`ann` asked in the description:" in replies[1]] == [
        True
    ] * 2
    assert len(replies) == 2


def test_who_may_not_write_restates_nothing_by_a_description_nor_by_a_maintainers_edit_of_it(bench: Bench) -> None:
    """The fork's author writes the line; the maintainer allows the plan, and corrects the text around it."""
    fork = bench.github.fork(SHOP, "rea")
    bench.github.commit(fork, "main", COLUMN, "From a fork", author="rea")
    number = bench.github.open_pull_request(SHOP, "rea:main", "main", f"Mine\n\n{LINE}\n<!-- {OTHER} -->", author="rea")
    bench.idle()
    bench.say(number, f"/ok-to-plan {bench.head(number)}", author="ann")
    describe(bench, number, f"Corrected.\n{LINE}\n<!-- {OTHER} -->", author="ann")
    describe(bench, number, f"Corrected.\n{LINE}\n{OTHER}", author="ann")

    assert restated(bench) == [""]
    refused, _, uncovered = bench.replies(number)
    assert "This needs the `write` permission" in refused
    assert "had these words before, where they were no command" in uncovered


def test_a_description_is_taken_once_however_often_it_is_delivered(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    describe(bench, number, LINE)
    (row,) = bench.context.inbox.commands.answered(SHOP, number)
    for guid in ("again", "and-again"):
        description = WrittenDescription("wim", LINE, "", row.said_at)
        bench.context.inbox.deliveries.receive(
            Event(guid, "pull_request.edited", SHOP, number, "main", bench.head(number), description=description)
        )
    bench.idle()

    assert (restated(bench), len(bench.replies(number))) == (["", f"--restate-copy={DAYS}"], 1)


def test_a_restatement_is_taken_back_by_its_selector(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    bench.say(number, "/restate shop.tot* --copy")
    bench.say(number, "/restate shop.tot* --copy --reset")

    assert restated(bench)[1:] == ["--restate-copy=shop.tot*", "--restate-copy=shop.tot*=reset"]
    assert "Taken back." in bench.replies(number)[-1]


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


@pytest.mark.prove
def test_a_line_of_the_description_is_in_force_from_the_first_plan_to_its_removal(
    make_bench: Callable[..., Bench],
) -> None:
    files = {"config.yaml": BARE["config.yaml"], "models/daily.sql": DAILY}
    bench = make_bench(project=files, planner_command=(), warm=True, patience=900.0)
    before = rows(bench.home, ALL.format("shop"))
    line = "/restate shop.daily --start 2026-01-02 --end 2026-01-02 --copy"
    number = bench.open({"README.md": "# Wrong on January 2nd\n"}, title=f"Wrong rows\n\n{line}")
    bench.idle()
    copied = rows(bench.home, ALL.format("shop__pr_1"))
    assert [new == old for new, old in zip(copied, before, strict=True)] == [True, False, True, True]
    assert "wim restates its rows from 2026-01-02" in bench.plan(number)
    describe(bench, number, "Nothing is wrong.")

    plan = bench.record(number).outcome
    assert plan and plan.plan and (plan.plan.models, plan.plan.overrides) == ((), ())
    assert "Taken back. Nothing is restated any more." in bench.replies(number)[-1]
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert rows(bench.home, ALL.format("shop")) == before
