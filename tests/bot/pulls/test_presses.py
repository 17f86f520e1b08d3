"""Buttons on checks and boxes in the plan comment: a press in, one reply and the same end as of a typed command."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.bot.forge.events import Event, Pressed
from mergeplan.bot.records import Press, PullState
from mergeplan_sandbox import webhooks
from mergeplan_sandbox.markdown import toggle_box
from mergeplan_sandbox.state import CheckRun
from tests.bot.changing import change_record
from tests.bot.conftest import COLUMN, FILTER, SHOP, Bench, until
from tests.bot.prod.test_deploy import ON
from tests.bot.test_cost import BUDGET
from tests.bot.test_pull_requests import GREEN

BREAKING = "`/categorize shop.orders breaking`"


def button(bench: Bench, number: int, check: str, label: str) -> tuple[CheckRun, str]:
    """A check of the head, and the identifier of its button."""
    run = bench.checks(bench.head(number))[check]
    return run, next(action.identifier for action in run.actions if action.label == label)


def press(bench: Bench, number: int, check: str, label: str, author: str = "wim") -> None:
    """A button is pressed, and all that follows is done when this returns."""
    run, identifier = button(bench, number, check, label)
    bench.github.click(SHOP, run.id, identifier, author=author)
    bench.idle()


def tick(bench: Bench, number: int, command: str, author: str = "wim") -> None:
    """The box of a command in the plan comment is ticked, and all that follows is done."""
    text = bench.plan(number)
    line = next(index for index, row in enumerate(text.split("\n")) if row.startswith(f"- [ ] {command}"))
    bench.github.edit_comment(SHOP, bench.record(number).comment.id, toggle_box(text, line), author=author)
    bench.idle()


def test_a_pressed_button_is_the_command_of_who_pressed_it(bench: Bench) -> None:
    """Behaviour 36: the same judgement, the same end, on record; one reply says who pressed and what came of it."""
    number = bench.open(COLUMN)
    bench.idle()
    assert [action.label for action in bench.checks(bench.head(number))["plan"].actions] == [
        "Mark as breaking",
        "Plan again",
    ]
    press(bench, number, "plan", "Mark as breaking")

    (reply,) = bench.replies(number)
    assert f"`wim` pressed a button:\n\n🚀 {BREAKING}\n`shop.orders` is now Breaking." in reply
    assert "1 breaking, 1 indirect breaking" in bench.plan(number)
    assert [action.label for action in bench.checks(bench.head(number))["plan"].actions] == [
        "Mark as non-breaking",
        "Plan again",
    ]
    assert bench.context.inbox.commands.open(SHOP, number) == ()


def test_the_buttons_of_a_costly_plan_ask_for_the_role_of_the_command(copy_bench: Callable[..., Bench]) -> None:
    """Behaviours 3, 47: needed and actual are named, and nothing is computed before somebody presses who may."""
    bench = copy_bench(BUDGET)
    bench.knobs(bytes=5000)
    number = bench.open(FILTER)
    bench.idle()
    shown = bench.checks(bench.head(number))["environment"].actions
    press(bench, number, "environment", "Approve cost")

    assert [(action.label, action.description) for action in shown] == [
        ("Approve cost", "Computes the estimate. Needs maintain."),
        ("Skip backfill", "The merge computes rows. Needs write."),
    ]
    assert "needs the `maintain` permission on this repository; you have `write`" in bench.replies(number)[0]
    press(bench, number, "environment", "Approve cost", author="ann")
    assert bench.conclusions(bench.head(number)) == GREEN


def test_what_is_skipped_by_a_button_is_computed_by_the_next(copy_bench: Callable[..., Bench]) -> None:
    bench = copy_bench(BUDGET)
    bench.knobs(bytes=5000)
    number = bench.open(FILTER)
    bench.idle()
    press(bench, number, "environment", "Skip backfill")

    assert "--skip-backfill" in bench.calls("plan", "pr_1")[-1]["argv"]
    assert "`/skip-backfill`" in bench.replies(number)[0]


def test_the_roles_of_the_project_stand_on_the_buttons(copy_bench: Callable[..., Bench]) -> None:
    """Behaviours 10, 36: as the base branch has them; commands are shown with its namespace."""
    rules = "gateways: {}\ncicd_bot:\n  permissions: {plan: maintain}\n  command_namespace: warehouse\n"
    bench = copy_bench({**BUDGET, "config.yaml": rules})
    number = bench.open(COLUMN)
    bench.idle()
    (again,) = [action for action in bench.checks(bench.head(number))["plan"].actions if action.label == "Plan again"]

    assert again.description == "Plans on prod as it is. Needs maintain."
    tick(bench, number, "`/warehouse plan`", author="wim")
    assert "needs the `maintain` permission on this repository; you have `write`" in bench.replies(number)[0]


@pytest.mark.prove
def test_a_button_of_another_plan_is_refused(bench: Bench) -> None:
    """Behaviours 4, 5: of an older head, or of an older plan of the same head; the new plan is linked."""
    number = bench.open(COLUMN)
    bench.idle()
    run, identifier = button(bench, number, "plan", "Mark as breaking")
    bench.say(number, "/categorize orders breaking")
    bench.say(number, "/categorize orders reset")
    press(bench, number, "plan", "Mark as breaking")
    repo = bench.github.state.repositories[SHOP]
    older = bench.checks(bench.head(number))["plan"]
    with bench.github.state.lock:
        webhooks.check_run(bench.github.site, repo, repo.checks[run.id], "requested_action", "wim", identifier)
    bench.idle()
    bench.github.commit(SHOP, "change", FILTER, "More", author="wim")
    bench.idle()
    bench.github.click(SHOP, older.id, older.actions[0].identifier, author="wim")
    bench.idle()

    for reply in bench.replies(number)[-2:]:
        assert "😕 `/categorize`\nIt was shown with another plan, or is not offered any more." in reply
        assert f"(#issuecomment-{bench.record(number).comment.id})" in reply


def test_a_press_that_is_delivered_twice_runs_once(bench: Bench) -> None:
    """Behaviour 2: by its GUID, also when two deliveries of it come at once; a second press meanwhile adds nothing."""
    number = bench.open(COLUMN)
    bench.idle()
    before = len(bench.calls("plan", "pr_1"))
    bench.github.faults.duplicate("check_run", times=1)
    press(bench, number, "plan", "Plan again")

    assert len(bench.calls("plan", "pr_1")) == before + 1
    assert len(bench.replies(number)) == 1
    record = bench.record(number)
    check = record.check("mergeplan / plan", record.head)
    assert check is not None
    _, identifier = button(bench, number, "plan", "Plan again")
    bench.knobs(ponder="pr")
    pressed = Pressed("wim", Press((identifier,), record.head), check_id=check.id)
    for guid in ("g-1", "g-2", "g-1"):
        bench.context.inbox.deliveries.receive(Event(guid, "check_run.requested_action", SHOP, number, pressed=pressed))
    bench.knobs()
    bench.idle()
    assert len(bench.replies(number)) == 2


def test_a_press_on_a_check_that_is_not_known_as_ours_runs_nothing(bench: Bench) -> None:
    """Behaviour 28: another pull request's key, another App's check, or one of which the record says nothing."""
    number = bench.open(COLUMN)
    bench.idle()
    run, identifier = button(bench, number, "plan", "Mark as breaking")
    bench.context.inbox.pulls.update(SHOP, number, change_record, checks=())
    bench.github.click(SHOP, run.id, identifier, author="wim")
    bench.idle()

    assert bench.replies(number) == []
    assert "1 non-breaking" in bench.plan(number)


def test_a_forks_commit_is_let_in_by_a_button_of_its_check(bench: Bench) -> None:
    """Behaviour 6: GitHub names no pull request for it; the button is of the whole commit, and the next has its own."""
    fork = bench.github.fork(SHOP, "rea")
    bench.github.commit(fork, "main", COLUMN, "From a fork", author="rea")
    number = bench.github.open_pull_request(SHOP, "rea:main", "main", "From a fork", author="rea")
    bench.idle()
    run, identifier = button(bench, number, "plan", "Allow this commit")
    press(bench, number, "plan", "Allow this commit", author="ann")

    assert bench.conclusions(bench.head(number)) == GREEN
    bench.github.commit(fork, "main", FILTER, "More", author="rea")
    bench.idle()
    with bench.github.state.lock:
        repo = bench.github.state.repositories[SHOP]
        webhooks.check_run(bench.github.site, repo, repo.checks[run.id], "requested_action", "ann", identifier)
    bench.idle()
    assert bench.record(number).state is PullState.HELD


def test_deploy_and_roll_back_are_buttons_of_the_promotion(copy_bench: Callable[..., Bench]) -> None:
    """Behaviour 40: what a press did can be undone by one; the merge's own commit has the button too."""
    bench = copy_bench(ON)
    number = bench.open(COLUMN)
    bench.idle()
    press(bench, number, "promotion", "Deploy", author="ann")
    assert bench.record(number).state is PullState.PROMOTED
    merge = bench.record(number).promotion.merge_sha
    run = bench.checks(merge)["promotion"]
    bench.github.click(SHOP, run.id, run.actions[0].identifier, author="ann")
    bench.idle()

    assert bench.record(number).state is PullState.ROLLED_BACK
    assert [action.label for action in bench.checks(merge)["promotion"].actions] == ["Try again"]
    assert bench.checks(bench.head(number))["plan"].actions == []


@pytest.mark.parametrize("apart", [False, pytest.param(True, marks=pytest.mark.prove)])
def test_buttons_go_while_a_plan_is_made(bench: Bench, apart: bool) -> None:
    """By GraphQL and by REST; and no check has any where no webhook would bring the press."""
    if apart:
        bench.github.faults.fail("POST", "^/graphql$", status=404, times=1000)
    number = bench.open(COLUMN)
    bench.idle()
    assert bench.checks(bench.head(number))["plan"].actions
    bench.knobs(hang="pr")
    bench.github.comment(SHOP, number, "/plan", author="wim")
    until(lambda: bench.checks(bench.head(number))["plan"].status != "completed", what="the run")

    assert bench.checks(bench.head(number))["plan"].actions == []
    tick_cancel = next(line for line in bench.plan(number).split("\n") if line.startswith("- [ ] `/cancel`"))
    text = bench.plan(number)
    bench.github.edit_comment(
        SHOP,
        bench.record(number).comment.id,
        text.replace(tick_cancel, tick_cancel.replace("[ ]", "[x]")),
        author="wim",
    )
    until(lambda: bench.record(number).state is PullState.CANCELLED, what="the end")
    bench.knobs()
    bench.idle()
    assert [action.label for action in bench.checks(bench.head(number))["plan"].actions] == ["Plan again"]


def test_a_ticked_box_is_a_command_and_empty_again(bench: Bench) -> None:
    """Behaviour 36: given by who ticked it, judged as any other; the comment is written again as it was."""
    number = bench.open(COLUMN)
    bench.idle()
    tick(bench, number, BREAKING)

    (reply,) = bench.replies(number)
    assert f"`wim` ticked:\n\n🚀 {BREAKING}\n`shop.orders` is now Breaking." in reply
    assert "1 breaking, 1 indirect breaking" in bench.plan(number)
    assert "[x]" not in bench.plan(number)
    before = bench.plan(number)
    bench.github.set_permission(SHOP, "wim", "write")
    tick(bench, number, "`/plan`")
    assert len(bench.replies(number)) == 2
    assert bench.plan(number) == before.replace(before.split(" UTC")[0], bench.plan(number).split(" UTC")[0])


def test_only_a_tick_of_a_box_of_ours_runs_anything(bench: Bench) -> None:
    """Behaviour 36: pasted boxes, edited ones, a tick beside another edit and one in another comment run nothing."""
    number = bench.open(COLUMN)
    bench.idle()
    ours, whole = bench.record(number).comment.id, bench.plan(number)
    box = next(line for line in whole.split("\n") if line.startswith(f"- [ ] {BREAKING}"))
    on = box.replace("[ ]", "[x]")
    forged = "- [{}] `/rollback 1`: harmless <!-- rollback@" + "0" * 40 + " -->"
    other = bench.github.comment(SHOP, number, f"Look:\n{box}", author="wim")
    bench.github.edit_comment(SHOP, other, f"Look:\n{on}", author="wim")
    for text in (
        f"{whole}\n- [x] /rollback 1",
        f"{whole}\n{on}",
        whole.replace(box, f"{on} "),
        whole.replace(box, on).replace("non-breaking", "safe"),
        whole + forged.format(" "),
        whole + forged.format("x"),
    ):
        bench.github.edit_comment(SHOP, ours, text, author="ann")
        bench.idle()

    assert "1 non-breaking" in bench.plan(number)
    assert [reply for reply in bench.replies(number) if "🚀" in reply] == []
    assert "[x]" not in bench.plan(number)


def test_a_comment_that_somebody_edited_gives_no_more_than_they_could(copy_bench: Callable[..., Bench]) -> None:
    """Behaviour 31: what needs more than `write` counts in the comment as the bot wrote it, which it is again then."""
    bench = copy_bench(BUDGET)
    bench.knobs(bytes=5000)
    number = bench.open(FILTER)
    bench.idle()
    nice = bench.plan(number).replace("over the project's budget", "a bargain")
    bench.github.edit_comment(SHOP, bench.record(number).comment.id, nice, author="wim")
    tick(bench, number, "`/approve-cost`", author="ann")

    assert "The comment was not as the bot wrote it when this was ticked." in bench.replies(number)[0]
    assert "a bargain" not in bench.plan(number)
    tick(bench, number, "`/approve-cost`", author="ann")
    assert "🚀 `/approve-cost`" in bench.replies(number)[1]
    assert bench.conclusions(bench.head(number)) == GREEN


def test_a_tick_that_no_webhook_brought_is_taken_away(bench: Bench) -> None:
    """Behaviour 18: who ticked cannot be known then, so nothing runs, and whoever ticked sees it."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.faults.drop("issue_comment", times=1)
    tick(bench, number, BREAKING)
    assert "[x]" in bench.plan(number)
    bench.context.inbox.queue.wake(SHOP, number)
    bench.idle()

    assert "[x]" not in bench.plan(number)
    assert (bench.replies(number), len(bench.bot_comments(number))) == ([], 1)
    assert "1 non-breaking" in bench.plan(number)


def test_a_box_of_another_plan_is_refused(bench: Bench) -> None:
    """Behaviours 4, 5: the edit came when the comment showed another plan already."""
    number = bench.open(COLUMN)
    bench.idle()
    box = next(line for line in bench.plan(number).split("\n") if line.startswith(f"- [ ] {BREAKING}"))
    bench.github.commit(SHOP, "change", {"models/orders.sql": "SELECT 1 AS id, 3 AS more\n"}, "More", author="wim")
    bench.idle()
    shown = bench.record(number)
    pressed = Pressed("wim", Press((box,)), comment_id=shown.comment.id, at=shown.shown.since)
    bench.context.inbox.deliveries.receive(Event("g-1", "issue_comment.edited", SHOP, number, pressed=pressed))
    bench.idle()

    assert "😕 `/categorize`\nIt was shown with another plan" in bench.replies(number)[0]
    assert "1 non-breaking" in bench.plan(number)
