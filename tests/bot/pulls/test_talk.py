"""Commands on the sandbox: a comment in, reactions and one reply out. The planner is the scripted child."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mergeplan.bot.forge.events import WrittenComment
from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.git.checkout import Checkout, Merge
from mergeplan.bot.records import Answer, PullState
from tests.bot.changing import change_record
from tests.bot.conftest import COLUMN, FILTER, SHOP, Bench, until

BOTH = {**COLUMN, "models/totals.sql": "SELECT count(*) AS m FROM shop.orders\n"}


def test_a_valid_command_gets_eyes_then_a_rocket_and_one_reply(bench: Bench) -> None:
    """Behaviours 30, 40: reactions at both ends, and a reply that ends in the resulting state."""
    number = bench.open(COLUMN)
    bench.idle()
    comment = bench.say(number, "/categorize orders breaking")

    assert bench.reactions(number, comment) == ["eyes", "rocket"]
    (reply,) = bench.replies(number)
    assert "`shop.orders` is now Breaking. Downstream recomputed: `shop.totals`." in reply
    assert "**Now:** plan `" in reply
    assert "1 breaking, 1 indirect breaking" in bench.plan(number)


def test_the_reply_about_a_category_that_has_ended_says_so_as_the_comment_and_the_page_do(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    bench.say(number, "/categorize orders breaking")
    bench.github.commit(SHOP, "change", {"models/orders.sql": "SELECT 3 AS id, 2 AS more\n"}, "Edit", author="wim")
    bench.idle()

    (reply,) = bench.replies(number)
    why = "because the model, or what it reads, was edited since"
    assert f"😕 `/categorize orders breaking`\n**No longer applies to `shop.orders`**, {why}. ([the plan](#" in reply
    assert "It had said: `shop.orders` is now Breaking." in reply
    assert f"`wim` set `shop.orders` to Breaking: that no longer applies, {why}." in bench.plan(number)
    decisions = [what for *_, what, _ in bench.context.inbox.decisions.list_decisions(SHOP, number)]
    assert decisions[-1].startswith("`/categorize orders breaking`: **No longer applies to `shop.orders`**")
    assert "issuecomment" not in decisions[-1]


def test_eyes_come_before_the_work_begins(bench: Bench) -> None:
    """Behaviour 30: while the plan that was asked for is being made, the comment has its eyes and nothing else."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.knobs(ponder="pr")
    before = len(bench.calls("plan", "pr_1"))
    comment = bench.github.comment(SHOP, number, "/plan", author="wim")
    until(lambda: len(bench.calls("plan", "pr_1")) > before, what="the run")

    assert bench.reactions(number, comment) == ["eyes"]
    assert bench.replies(number) == []
    bench.knobs()
    bench.idle()
    assert bench.reactions(number, comment) == ["eyes", "rocket"]


def test_eyes_come_while_the_entry_is_busy(bench: Bench) -> None:
    """Behaviour 30: a long run does not keep a comment waiting."""
    bench.knobs(hang="pr")
    number = bench.open(COLUMN)
    until(lambda: bench.calls("plan", "pr_1"), what="the run")
    comment = bench.github.comment(SHOP, number, "/help", author="rea")

    until(lambda: "rocket" in bench.reactions(number, comment), 5, "the answer")
    assert bench.reactions(number, comment) == ["eyes", "rocket"]
    assert bench.record(number).state is PullState.PLANNING
    bench.knobs()


def test_what_somebody_asked_for_whose_account_is_gone_runs_nothing_and_work_goes_on(bench: Bench) -> None:
    """Behaviour 28: no webhook brought the command, its author has left since; the pull request of theirs goes on."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.faults.drop("issue_comment", times=1)
    unheard = bench.github.comment(SHOP, number, "/categorize orders breaking", author="wim")
    bench.github.delete_user("wim")
    bench.context.inbox.queue.wake(SHOP, number)
    bench.idle()
    assert (bench.reactions(number, unheard), bench.replies(number)) == ([], [])

    comment = bench.say(number, "/plan", author="ann")
    assert bench.reactions(number, comment) == ["eyes", "rocket"]
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.record(number).state is PullState.PROMOTED


def test_talk_quotes_code_and_other_bots_commands_get_nothing(bench: Bench) -> None:
    """Behaviour 30: no reaction, no reply, no run."""
    number = bench.open(COLUMN)
    bench.idle()
    before = len(bench.calls("plan"))
    talk = ["I like /plan", "> /plan", "```\n/plan\n```", "    /plan", "/lgtm", "/usr/bin is full", "`/plan` is nice"]
    comments = [bench.say(number, text) for text in talk]

    assert [bench.reactions(number, comment) for comment in comments] == [[]] * len(talk)
    assert bench.replies(number) == []
    assert len(bench.calls("plan")) == before


def test_somebody_without_the_permission_changes_nothing(bench: Bench) -> None:
    """Behaviour 3: the live permission is checked, and one reply names needed and actual."""
    number = bench.open(COLUMN)
    bench.idle()
    comment = bench.say(number, "/categorize orders breaking", author="rea")

    assert bench.reactions(number, comment) == ["eyes", "confused"]
    assert "needs the `write` permission on this repository; you have `read`" in bench.replies(number)[0]
    assert "1 non-breaking" in bench.plan(number)
    bench.github.set_permission(SHOP, "rea", "write")
    bench.say(number, "/categorize orders breaking", author="rea")
    assert "1 breaking" in bench.plan(number)


def test_a_permission_that_cannot_be_read_refuses(bench: Bench) -> None:
    """Behaviour 3: could not verify, try again."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.faults.fail("GET", "/permission", status=500, times=8)
    bench.say(number, "/categorize orders breaking")

    assert "could not be verified" in bench.replies(number)[0]
    assert "1 non-breaking" in bench.plan(number)


def test_a_command_about_an_older_plan_is_refused_with_the_new_one_linked(bench: Bench) -> None:
    """Behaviours 4, 5: typed after a push that has not been planned yet, it changes nothing."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.knobs(ponder="pr")
    bench.github.commit(SHOP, "change", FILTER, "More", author="wim")
    until(lambda: len(bench.calls("plan", "pr_1")) == 2, what="the second run")
    bench.github.comment(SHOP, number, "/categorize orders non-breaking", author="wim")
    until(lambda: bench.replies(number), what="the reply")
    bench.knobs()
    bench.idle()

    assert (
        "Look at the plan shown now" in bench.replies(number)[0] or "Look at the new plan" in bench.replies(number)[0]
    )
    assert f"(#issuecomment-{bench.record(number).comment.id})" in bench.replies(number)[0]
    assert "1 breaking" in bench.plan(number)


def test_a_word_survives_a_push_while_the_model_is_unchanged(bench: Bench) -> None:
    """The category that a person gave stays; when the model is edited again it goes."""
    number = bench.open(FILTER)
    bench.idle()
    bench.say(number, "/categorize shop.orders non-breaking")
    bench.github.commit(SHOP, "change", {"README.md": "# More\n"}, "Words", author="wim")
    bench.idle()
    assert "1 non-breaking" in bench.plan(number)
    bench.github.commit(SHOP, "change", {"models/orders.sql": "SELECT 5 AS id WHERE true\n"}, "Edit", author="wim")
    bench.idle()

    assert "1 breaking" in bench.plan(number)


def test_an_unknown_command_model_or_category_gets_one_reply_with_the_nearest(bench: Bench) -> None:
    """Behaviours 35, 36: several in one comment run in order, each with its own result."""
    number = bench.open(BOTH)
    bench.idle()
    text = "/categorise orders breaking\r\n/categorize order breaking\n/categorize orders braking\n/categorize breaking"
    bench.say(number, text)

    (reply,) = bench.replies(number)
    assert "Did you mean `/categorize`?" in reply
    assert "Did you mean `shop.orders`?" in reply
    assert "Did you mean `breaking`?" in reply
    assert "2 models are changed directly: say which." in reply
    assert reply.count("😕") == 4


def test_verbs_are_case_insensitive_and_tolerate_spaces_and_ticks(bench: Bench) -> None:
    """Behaviour 37: the whole command may stand in back-ticks, in capitals, with CRLF."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.say(number, "Please:\r\n`/CATEGORIZE shop.orders Breaking`  \r\n")

    assert "`shop.orders` is now Breaking" in bench.replies(number)[0]


def test_shell_text_stays_text(bench: Bench) -> None:
    """Behaviour 7: `$(id)`, `;`, `--flag` and newlines reach neither a shell nor the planner, and come back inert."""
    number = bench.open(COLUMN, branch="a$(id);--x", title="$(touch pwned); @everyone <b>")
    bench.idle()
    bench.say(number, "/categorize $(id);--flag breaking")
    bench.say(number, "/categorize --auto-apply breaking")

    assert "`/categorize $(id);--flag breaking`" in bench.replies(number)[0]
    assert "cannot be the name of a model" in bench.replies(number)[1]
    assert all(not {"$", ";"} & set("".join(call["argv"])) for call in bench.calls())


def test_cancel_stops_the_run_and_plan_starts_it_again(bench: Bench) -> None:
    """Behaviour 40: each command can be undone; each replies with the resulting state."""
    bench.knobs(hang="pr")
    number = bench.open(COLUMN)
    until(lambda: bench.calls("plan", "pr_1"), what="the run")
    bench.say(number, "/cancel")

    assert set(bench.conclusions(bench.head(number)).values()) == {"cancelled"}
    assert bench.record(number).state is PullState.CANCELLED
    bench.knobs()
    bench.say(number, "/plan")
    assert bench.record(number).state is PullState.PLANNED
    assert len(bench.replies(number)) == 2


def test_rollback_needs_a_maintainer_and_points_prod_back(bench: Bench) -> None:
    """Behaviour 40: prod shows what it showed before; /plan brings it again."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    bench.say(number, "/rollback", author="wim")
    assert "needs the `maintain` permission" in bench.replies(number)[0]
    bench.say(number, "/rollback", author="ann")

    assert bench.record(number).state is PullState.ROLLED_BACK
    assert bench.planner_state()["environments"]["prod"]["models"]["shop.orders"] == "SELECT 1 AS id\n"
    assert "Rolled back" in bench.plan(number)
    bench.say(number, "/plan", author="ann")
    assert bench.record(number).state is PullState.PROMOTED


@pytest.mark.prove
def test_a_rollback_to_a_revision_takes_back_what_came_after_it(bench: Bench) -> None:
    """Behaviour 40: both pull requests say so, and what is open is planned against prod as it is now."""
    numbers = []
    for branch, files in (("one", COLUMN), ("two", {"models/more.sql": "SELECT 3 AS x\n"})):
        numbers.append(bench.open(files, branch))
        bench.idle()
        bench.github.merge(SHOP, numbers[-1], author="ann")
        bench.idle()
    bench.say(numbers[0], "/rollback", author="ann")
    assert "or name the revision: `/rollback 1` takes back everything after it" in bench.replies(numbers[0])[0]
    bench.say(numbers[0], "/rollback 1", author="ann")

    assert [bench.record(number).state for number in numbers] == [PullState.ROLLED_BACK] * 2
    assert bench.planner_state()["environments"]["prod"]["models"] == bench.planner_state()["history"]["prod"]["1"]


def test_a_promotion_that_hangs_is_unlocked_by_a_maintainer(bench: Bench) -> None:
    """Behaviour 40: its child is ended, prod shows what it showed, and /plan tries again."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.knobs(hang="prod")
    bench.github.merge(SHOP, number, author="ann")
    until(lambda: bench.record(number).state is PullState.MERGED, what="the promotion")
    until(lambda: len(bench.calls("plan", "prod")) == 2, what="its run")
    bench.github.comment(SHOP, number, "/unlock", author="ann")
    until(lambda: bench.record(number).state is PullState.UNPROMOTED, what="its end")
    bench.knobs()
    bench.idle()

    assert "ann stopped it." in bench.plan(number)
    bench.say(number, "/plan")
    assert bench.record(number).state is PullState.PROMOTED


@pytest.mark.prove
def test_an_environment_is_destroyed_built_again_and_kept_after_the_merge(bench: Bench) -> None:
    """Behaviour 40: /destroy, /plan, /extend; and the timer drops it when its days are over."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.say(number, "/destroy")
    assert "pr_1" not in bench.planner_state()["environments"]
    assert bench.record(number).state is PullState.CANCELLED
    bench.say(number, "/plan")
    bench.say(number, "/extend 2")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert "pr_1" in bench.planner_state()["environments"]

    bench.context.inbox.pulls.update(SHOP, number, change_record, keep_until=1.0)
    bench.worker.sweep()
    bench.idle()
    assert list(bench.planner_state()["environments"]) == ["prod"]
    assert bench.record(number).state is PullState.PROMOTED


def test_rows_are_computed_again_in_the_environment_alone(bench: Bench) -> None:
    """/restate reaches the planner as its own arguments, and /categorize reset takes a word back."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.say(number, "/categorize orders breaking")
    bench.say(number, "/categorize orders reset")
    bench.say(number, "/restate shop.orders --start 2026-01-01")

    assert "--categorize shop.orders=reset" in " ".join(bench.calls("plan", "pr_1")[-2]["argv"])
    assert "1 non-breaking" in bench.plan(number)
    assert {"--restate-model=shop.orders", "--start=2026-01-01"} <= set(bench.calls("plan", "pr_1")[-1]["argv"])
    assert "Computed again in `pr_1`: `shop.orders` (1 table" in bench.replies(number)[2]


@pytest.mark.prove
def test_what_was_asked_before_the_branch_conflicts_is_answered_all_the_same(bench: Bench) -> None:
    """There is nothing to ask the planner of. Found by random lives: the job failed, and was tried again for ever."""
    number, commands = bench.open(COLUMN), bench.context.inbox.commands
    bench.idle()
    bench.github.commit(SHOP, "main", {"models/orders.sql": "SELECT 3 AS other\n"}, "Mine", author="ann")
    bench.idle()
    comment = bench.github.comment(SHOP, number, "Once more", author="wim")
    commands.take(SHOP, number, WrittenComment(comment, "wim", "/restate shop.orders", "2026-01-01T00:00:00Z"))
    (row,) = commands.open(SHOP, number)
    asked = Answer("/restate shop.orders", True, "", "answer", asked=("plan", "pr_1", "--restate-model=shop.orders"))
    commands.answer(replace(row, state="accepted", answers=(asked,)))
    bench.context.inbox.queue.wake(SHOP, number)
    bench.idle()

    assert commands.open(SHOP, number) == ()
    assert "cannot be merged into prod's commit" in bench.replies(number)[0]


def test_a_question_whose_commit_cannot_be_read_is_answered_after_some_tries(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Merge:
        raise CheckoutFailed("git merge-tree failed (128).")

    number = bench.open(COLUMN)
    bench.idle()
    monkeypatch.setattr(Checkout, "merge", broken)
    bench.say(number, "/lineage shop.orders")

    assert "The commit cannot be read: git merge-tree failed (128)." in bench.replies(number)[0]


def test_help_lists_every_command_with_who_may_and_an_example(bench: Bench) -> None:
    """Behaviour 36."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.say(number, "/help", author="rea")

    reply = bench.replies(number)[0]
    for verb in ("plan", "categorize", "cancel", "rollback", "ok-to-plan", "help"):
        assert f"`/{verb}" in reply
    assert "Needs `maintain`" in reply
    assert "Example: `/categorize shop.orders non-breaking`" in reply


def test_a_command_where_there_is_no_plan_is_answered(bench: Bench) -> None:
    """Behaviour 35: a pull request into another branch has no plan, and the reply says why."""
    bench.github.commit(SHOP, "other", {"README.md": "# Other\n"}, "Other", author="wim")
    bench.github.commit(SHOP, "change", COLUMN, "A change", author="wim")
    number = bench.github.open_pull_request(SHOP, "change", "other", "A change", author="wim")
    bench.idle()
    assert bench.bot_comments(number) == []
    bench.say(number, "/plan")

    assert "does not merge into `main`" in bench.replies(number)[0]
    assert "It is planned when `main` becomes its base." in bench.replies(number)[0]
    assert "**Now:** no plan yet." in bench.replies(number)[0]


def test_edited_comments_and_comments_on_issues_run_nothing(bench: Bench) -> None:
    """Behaviours 28, 36."""
    number = bench.open(COLUMN)
    bench.idle()
    comment = bench.say(number, "hello")
    bench.github.edit_comment(SHOP, comment, "/plan", author="wim")
    issue = bench.github.open_issue(SHOP, "An issue", author="wim")
    bench.say(issue, "/plan")

    assert bench.reactions(number, comment) == []
    assert bench.bot_comments(issue) == []


@pytest.mark.parametrize("editor", ["wim", "ann"])
def test_a_comment_edited_within_its_own_second_runs_nothing(bench: Bench, editor: str) -> None:
    """Behaviour 36: REST tells whole seconds, so such an edit looks like none; GraphQL tells of it."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.faults.drop("issue_comment", times=2)
    comment = bench.github.comment(SHOP, number, "Nice", author="wim")
    bench.github.edit_comment(SHOP, comment, "/categorize orders breaking", author=editor)
    with bench.github.state.lock:
        item = bench.github.state.repositories[SHOP].comments[comment]
        item.updated_at = item.created_at  # the clock may have moved on between the two
    bench.context.inbox.queue.wake(SHOP, number)
    bench.idle()

    assert bench.replies(number) == []
    assert bench.reactions(number, comment) == []


def test_a_comment_that_no_webhook_brought_and_nobody_edited_runs(bench: Bench) -> None:
    """Behaviour 18."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.faults.drop("issue_comment", times=1)
    bench.github.comment(SHOP, number, "/categorize orders breaking", author="wim")
    bench.context.inbox.queue.wake(SHOP, number)
    bench.idle()

    assert "is now Breaking" in bench.replies(number)[0]


def test_a_comment_whose_webhook_came_runs_as_it_was_written(bench: Bench) -> None:
    """An edit by somebody else changes nothing of what the author said; the edited words never run."""
    number = bench.open(COLUMN)
    bench.idle()
    comment = bench.github.comment(SHOP, number, "/categorize orders breaking", author="wim")
    bench.github.edit_comment(SHOP, comment, "/cancel", author="ann")
    bench.idle()

    assert ["is now Breaking" in reply for reply in bench.replies(number)] == [True]


def test_where_edits_cannot_be_known_what_needs_more_than_write_is_refused(bench: Bench) -> None:
    """Without GraphQL a writer could put words into a maintainer's mouth; what a writer may do anyway still runs."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    bench.github.faults.fail("POST", "^/graphql$", status=404, times=100)
    bench.github.faults.drop("issue_comment", times=1)
    bench.github.comment(SHOP, number, "/rollback", author="ann")
    bench.context.inbox.queue.wake(SHOP, number)
    bench.idle()

    assert "write it again" in bench.replies(number)[0]
    assert bench.record(number).state is PullState.PROMOTED


def test_who_asks_is_told_and_nothing_moves(bench: Bench) -> None:
    """Behaviours 36, 40: /status, /lineage and /deploy change nothing, and each says how it stands."""
    number = bench.open(COLUMN)
    bench.idle()
    before = len(bench.calls("plan"))
    bench.say(number, "/status\n/lineage shop.orders\n/deploy")

    (reply,) = bench.replies(number)
    assert "From `shop.orders` 1 model downstream is made:\n\n- `shop.totals`: `its rows`" in reply
    assert "`/deploy` is off here: prod follows what people merge." in reply
    assert reply.count("🚀") == 2
    assert len(bench.calls("plan")) == before


def test_a_destructive_change_is_allowed_for_the_head_that_was_shown(bench: Bench) -> None:
    """Behaviour 48: by a maintainer, for that head and its merge; a push needs a new word."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.say(number, "/allow-destructive orders")
    bench.say(number, "/allow-destructive orders", author="ann")
    allowed = "--allow-destructive-model=shop.orders"

    assert "needs the `maintain` permission" in bench.replies(number)[0]
    assert allowed in bench.calls("plan", "pr_1")[-1]["argv"]
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert allowed in bench.calls("plan", "prod")[-1]["argv"]
    other = bench.open(FILTER, "other")
    bench.idle()
    bench.say(other, "/allow-destructive orders", author="ann")
    bench.github.commit(SHOP, "other", BOTH, "More", author="wim")
    bench.idle()
    assert allowed not in bench.calls("plan", f"pr_{other}")[-1]["argv"]


@pytest.mark.prove
def test_new_tables_may_stay_empty_until_somebody_wants_them(bench: Bench) -> None:
    """Behaviour 40: /skip-backfill, and back by /backfill; /categorize --all is about every model that was edited."""
    number = bench.open(BOTH)
    bench.idle()
    bench.say(number, "/skip-backfill")
    skipped = bench.calls("plan", "pr_1")[-1]["argv"]
    bench.say(number, "/backfill")
    bench.say(number, "/categorize --all breaking")
    last = bench.calls("plan", "pr_1")[-1]["argv"]

    assert "--skip-backfill" in skipped
    assert not any(argument.startswith("--data-diff") for argument in skipped)
    assert "--skip-backfill" not in last
    assert {"shop.orders=breaking", "shop.totals=breaking"} <= set(last)


@pytest.mark.parametrize("command", ["/categorize orders breaking", "/lineage shop.orders"])
def test_a_pull_request_that_changes_no_models_has_no_plan_to_wait_for(bench: Bench, command: str) -> None:
    number = bench.open({"README.md": "# More\n"})
    bench.idle()
    bench.say(number, command)

    assert "This pull request changes no models, so it needs no plan." in bench.replies(number)[-1]
