"""/rollback on the sandbox: asked, refused or done, and the merge reverted once. The planner is the scripted child."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mergeplan.bot.prod.actions import rollbacks
from mergeplan.bot.pulls.actions import steps
from mergeplan.bot.records import PullState
from mergeplan_sandbox.state import PullRequest
from tests.bot.conftest import COLUMN, PROJECT, SHOP, Bench, until

BEFORE = PROJECT["models/orders.sql"]
MORE = {"models/more.sql": "SELECT 3 AS x\n"}


def merge_pull(bench: Bench, files: dict[str, str] = COLUMN, branch: str = "change") -> int:  # type: ignore[assignment]
    """A pull request of wim's that ann merged, in prod."""
    number = bench.open(files, branch)
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.record(number).state is PullState.PROMOTED
    return number


def prod(bench: Bench) -> dict[str, Any]:
    prod_map: dict[str, Any] = bench.planner_state()["environments"]["prod"]
    return prod_map


def reverts(bench: Bench, number: int) -> list[PullRequest]:
    """The pull requests that revert one."""
    pulls = bench.github.state.repositories[SHOP].pulls
    return [pull for pull in pulls if pull.head_ref.startswith(f"revert-{number}-")]


def test_a_dry_run_says_what_a_rollback_would_show_and_changes_nothing(bench: Bench) -> None:
    """Behaviour 40: whoever may ask for a /diff may ask for it."""
    number = merge_pull(bench)
    bench.knobs(lacks=4)
    bench.say(number, "/rollback --dry-run", author="rea")
    bench.say(number, "/rollback --dry-run", author="wim")

    refused, reply = bench.replies(number)
    assert "needs the `write` permission" in refused
    assert "Prod is at revision 2 and would show revision 1 again, which it showed until 2026-01-08 10:00 UTC." in reply
    assert "| `shop.orders` | <code>shop\\_\\_<wbr>" in reply
    assert (
        "`shop.orders` lacks up-to-date rows of 4 days, 2026-01-05 to 2026-01-08, which the later table holds" in reply
    )
    assert "the next run computes them." in reply
    assert (prod(bench)["revision"], bench.record(number).state) == (2, PullState.PROMOTED)


def test_a_rollback_says_what_prod_lacks_and_opens_the_revert_whose_merge_moves_nothing(bench: Bench) -> None:
    """Behaviours 5, 40: branch and prod agree in the end, and the next pull request is planned as ever."""
    number = merge_pull(bench)
    bench.knobs(lacks=4)
    bench.say(number, "/rollback", author="ann")

    (pull,) = reverts(bench, number)
    reply = bench.replies(number)[0]
    assert "`ann` pointed prod back at the tables of revision 1. 1 view re-pointed, 1 unchanged." in reply
    assert "`shop.orders` lacks up-to-date rows of 4 days, 2026-01-05 to 2026-01-08" in reply
    assert f"**The branch still holds this change**: merge #{pull.number}, which reverts it, or the next" in reply
    assert f"merge #{pull.number}, which reverts it" in bench.plan(number)
    assert (pull.author, pull.title) == (bench.github.bot_login, 'Revert "A change"')
    assert pull.body.startswith(f"<!-- mergeplan:revert:{number} -->\n\nReverts #{number}, which `ann` took back")
    assert bench.conclusions(bench.head(pull.number))["plan"] == "success"
    bench.github.merge(SHOP, pull.number, author="ann")
    bench.idle()
    assert (prod(bench)["revision"], prod(bench)["models"]["shop.orders"]) == (3, BEFORE)
    assert bench.record(pull.number).state is PullState.PROMOTED
    after = bench.open(MORE, "more")
    bench.idle()
    plan = bench.record(after).outcome
    assert plan and plan.plan and [model.name for model in plan.plan.models] == ["shop.more"]


def test_a_rollback_that_cannot_be_done_is_refused_with_the_reason(bench: Bench) -> None:
    number = merge_pull(bench)
    bench.knobs(gone=True)
    bench.say(number, "/rollback --dry-run\n/rollback", author="ann")

    (reply,) = bench.replies(number)
    assert reply.count("The table `shop__orders__1` of revision 1 is gone. Plan again.") == 2
    assert "Prod was not changed. The table" in reply
    assert (prod(bench)["revision"], bench.record(number).state) == (2, PullState.PROMOTED)
    assert reverts(bench, number) == []


def test_a_revert_whose_answer_is_lost_or_that_somebody_opened_already_is_opened_once(bench: Bench) -> None:
    """Behaviour 26."""
    number = merge_pull(bench)
    bench.github.faults.lose_answer("POST", "^/graphql$", times=20)
    bench.say(number, "/rollback", author="ann")
    (pull,) = reverts(bench, number)
    assert f"merge #{pull.number}, which reverts it" in bench.replies(number)[0]
    bench.github.faults.clear()
    bench.say(number, "/plan", author="ann")
    assert (bench.record(number).promotion.revision, prod(bench)["models"]["shop.orders"] == BEFORE) == (4, False)
    bench.say(number, "/rollback", author="ann")

    assert f"merge #{pull.number}, which reverts it" in bench.replies(number)[2]
    assert [revert.number for revert in reverts(bench, number)] == [pull.number]


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("forbidden", "Resource not accessible by integration."),
        pytest.param("conflict", "couldn't be reverted automatically.", marks=pytest.mark.prove),
    ],
)
def test_where_github_opens_no_revert_the_reply_says_to_press_the_button(bench: Bench, fault: str, why: str) -> None:
    number = merge_pull(bench)
    if fault == "forbidden":
        tokens = bench.github.state.tokens
        for value, token in list(tokens.items()):
            rights = dict(token.permissions) | {"contents": "read"}
            tokens[value] = replace(token, permissions=tuple(sorted(rights.items())))
    else:
        bench.github.commit(SHOP, "main", {"models/orders.sql": None}, "Gone", author="ann")
        bench.idle()
    bench.say(number, "/rollback 1", author="ann")

    assert bench.record(number).state is PullState.ROLLED_BACK
    assert "press *Revert* on this pull request, or the next promotion brings it back." in bench.replies(number)[0]
    assert "No pull request was opened: GitHub answered 400: " in bench.replies(number)[0]
    assert why in bench.replies(number)[0]
    assert reverts(bench, number) == []


@pytest.mark.prove
def test_with_open_revert_off_none_is_opened(make_bench: Callable[..., Bench]) -> None:
    off = make_bench({**PROJECT, "config.yaml": "gateways: {}\ncicd_bot:\n  open_revert: false\n"})
    number = merge_pull(off)
    off.say(number, "/rollback", author="ann")

    assert "press *Revert* on this pull request" in off.replies(number)[0]
    assert "No pull request was opened" not in off.replies(number)[0]
    assert reverts(off, number) == []


@pytest.mark.prove
def test_of_several_that_went_back_the_asked_one_is_reverted_and_the_others_are_named(bench: Bench) -> None:
    """Behaviour 40: merged alone, the revert brings the others to prod again, and says so."""
    first, second = merge_pull(bench), merge_pull(bench, MORE, "more")
    bench.say(first, "/rollback 1", author="ann")

    (pull,) = reverts(bench, first)
    assert reverts(bench, second) == []
    assert f"#{second} went with it: revert that too." in bench.replies(first)[0]
    assert f"The rollback took back #{second} too" in pull.body
    assert "It was requested in " in bench.plan(second)
    assert "press *Revert* on this pull request" in bench.plan(second)


@pytest.mark.prove
def test_killed_between_a_call_and_its_record_everything_is_done_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviours 16, 17: after the planner's, and after GitHub's."""
    died = list[str]()
    for where, name in ((rollbacks, "_store_outcome"), (steps, "open_revert")):
        real = getattr(where, name)

        def dying(*arguments: Any, name: str = name, real: Callable[..., Any] = real) -> Any:
            done = real(*arguments) if name == "open_revert" else None
            if name not in died:
                died.append(name)
                raise RuntimeError("killed")
            return done if name == "open_revert" else real(*arguments)

        monkeypatch.setattr(where, name, dying)
    number = merge_pull(bench)
    bench.say(number, "/rollback", author="ann")

    assert died == ["_store_outcome", "open_revert"]
    assert (len(bench.calls("rollback")), prod(bench)["revision"]) == (1, 3)
    (pull,) = reverts(bench, number)
    (reply,) = bench.replies(number)
    assert "`ann` pointed prod back at the tables of revision 1." in reply
    assert f"merge #{pull.number}, which reverts it" in reply


@pytest.mark.prove
def test_a_planner_that_dies_when_prod_went_back_is_asked_again(bench: Bench) -> None:
    number = merge_pull(bench)
    bench.knobs(die="rollback")
    bench.github.comment(SHOP, number, "/rollback", author="ann")
    bench.github.wait_idle(60.0)
    until(lambda: prod(bench)["revision"] == 3, what="the rollback")
    bench.knobs()
    bench.idle()

    assert bench.record(number).state is PullState.ROLLED_BACK
    assert "revision 1. It showed them already." in bench.replies(number)[0]


def test_an_earlier_rerun_does_not_promote_again_what_is_rolled_back(bench: Bench) -> None:
    number = merge_pull(bench)
    bench.github.rerequest(SHOP, bench.checks(bench.head(number))["plan"].id, author="wim")
    bench.idle()
    bench.say(number, "/rollback", author="ann")

    assert bench.record(number).state is PullState.ROLLED_BACK
    assert prod(bench)["models"]["shop.orders"] == BEFORE
