"""What is written to GitHub next, and that nobody waits for it who need not."""

from __future__ import annotations

from collections import Counter

from bot.pulls.publish import _due
from bot.records import ENVIRONMENT, PLAN, PROMOTION, TESTS, CheckRef, PullRecord, PullState
from tests.bot.conftest import COLUMN, SHOP, Bench, until


def written(record: PullRecord, name: str, digest: str, sha: str = "") -> PullRecord:
    """The record after a check was written."""
    return PullRecord(**{**record.__dict__, "checks": record.with_check(CheckRef(name, sha, 1, digest, True)).checks})


def test_the_comment_is_written_first_and_then_what_a_reader_waits_for(bench: Bench) -> None:
    """The environment's check, the promotion's, the plan's, the tests'; then those of older heads, and then nothing."""
    number = bench.open(COLUMN)
    bench.idle()
    whole, order = bench.record(number), list[str]()
    old = CheckRef(PLAN, "0" * 40, 1, "d", False)
    record = PullRecord(**{**whole.__dict__, "checks": (old,), "comment_digest": ""})
    while (write := _due(bench.context.inbox, record)) is not None:
        order.append(write.check.name if write.check else "comment")
        if write.check:
            record = written(record, write.check.name, write.check.digest, write.sha)
        else:
            record = PullRecord(**{**record.__dict__, "comment_digest": whole.comment_digest})

    assert order == ["comment", ENVIRONMENT, PROMOTION, PLAN, TESTS, PLAN]
    assert record.with_check(old).checks != record.checks


def test_a_github_that_takes_no_check_holds_no_plan_up(bench: Bench) -> None:
    """The plan is made meanwhile; when GitHub takes checks again, all of them are shown."""
    bench.github.faults.fail("POST", ".*/check-runs", status=500, times=1000)
    number = bench.open(COLUMN)
    until(lambda: bench.record(number).state is PullState.PLANNED, what="the plan")
    until(lambda: bench.plan(number), what="the comment")
    assert not bench.checks(bench.head(number))
    bench.github.faults.clear()
    bench.idle()

    assert set(bench.conclusions(bench.head(number)).values()) == {"success"}


def test_the_checks_of_a_commit_are_looked_for_once(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    looks = Counter(each.path for each in bench.github.calls if each.method == "GET" and "/check-runs" in each.path)
    assert set(looks.values()) == {1}
    assert len(bench.checks(bench.head(number))) == 4


def test_a_promotion_starts_one_planner(bench: Bench) -> None:
    """What prod is after it, its own last line says."""
    number = bench.open(COLUMN)
    bench.idle()
    before = len(bench.calls("environments"))
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert len(bench.calls("environments")) == before
    assert len(bench.calls("plan", "prod")) == 2
    prod = bench.context.inbox.prods.get(SHOP)
    assert (prod.revision, prod.plan_id) == (2, bench.record(number).promoted.plan.id)  # type: ignore[union-attr]
