"""A pull request's life on the sandbox: webhook in, comment and checks out. The planner is the scripted child."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from mergeplan.bot.records import PullState
from mergeplan.bot.service.worker import _is_past
from mergeplan.planner.isolation.processes import birth
from mergeplan_sandbox.api.versions import DROPPED
from tests.bot.changing import change_prod, change_record
from tests.bot.conftest import COLUMN, FILTER, SHOP, Bench, until

GREEN = dict.fromkeys(("lint", "tests", "plan", "environment", "promotion"), "success")


def test_a_pull_request_gets_one_plan_comment_and_four_green_checks(bench: Bench) -> None:
    """Behaviours 31, 32, 33: one comment that opens with what counts and ends with the accepted commands."""
    number = bench.open(COLUMN)
    bench.idle()

    plan = bench.plan(number)
    assert len(bench.bot_comments(number)) == 1
    assert bench.conclusions(bench.head(number)) == GREEN
    opening = plan[: plan.index("```mermaid")]
    for fact in (
        "`pr_1`",
        bench.head(number)[:7],
        "base `prod` revision 1",
        "plan `",
        "UTC",
        "1 non-breaking, 1 indirect non-breaking",
        "Computed here: ",
    ):
        assert fact in opening
    assert "`/categorize shop.orders breaking`" in plan.split("**Commands accepted now**")[1]


def test_a_second_push_refreshes_the_same_comment(bench: Bench) -> None:
    """Behaviour 31: the comment is edited in place, and each head has checks of its own."""
    number = bench.open(COLUMN)
    bench.idle()
    first, old = bench.bot_comments(number)[0].id, bench.head(number)
    bench.github.commit(SHOP, "change", FILTER, "More", author="wim")
    bench.idle()

    assert [comment.id for comment in bench.bot_comments(number)] == [first]
    assert bench.head(number)[:7] in bench.plan(number)
    assert "1 breaking" in bench.plan(number)
    assert bench.conclusions(old) == bench.conclusions(bench.head(number)) == GREEN


def test_a_pasted_marker_does_not_hijack_the_plan_comment(bench: Bench) -> None:
    """Behaviour 31: the comment is found by hidden marker and author."""
    bench.knobs(ponder="pr")
    number = bench.open(COLUMN)
    pasted = bench.github.comment(SHOP, number, "<!-- mergeplan:plan --> mine", author="rea")
    assert bench.bot_comments(number) == []
    bench.knobs()
    bench.idle()

    first, second = bench.github.comments(SHOP, number)
    assert (first.id, first.body) == (pasted, "<!-- mergeplan:plan --> mine")
    assert (second.author, second.body[:23]) == (bench.github.bot_login, "<!-- mergeplan:plan -->")


def test_a_plan_comment_that_somebody_deleted_is_posted_again(bench: Bench) -> None:
    """Behaviour 31: at the next change, and once."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.delete_comment(SHOP, bench.bot_comments(number)[0].id, author="ann")
    bench.github.commit(SHOP, "change", FILTER, "More", author="wim")
    bench.idle()

    assert len(bench.bot_comments(number)) == 1
    assert "1 breaking" in bench.plan(number)


def test_no_models_touched_means_green_checks_and_no_comment(bench: Bench) -> None:
    """Behaviour 38: nothing to do is success, and nothing is said; no planner runs."""
    before = len(bench.calls("plan"))
    number = bench.open({"README.md": "# A shop\n"})
    bench.idle()

    assert bench.bot_comments(number) == []
    assert bench.conclusions(bench.head(number)) == GREEN
    assert bench.checks(bench.head(number))["plan"].title == "Nothing to do"
    assert len(bench.calls("plan")) == before


def test_a_project_that_does_not_load_fails_the_plan_at_file_and_line(bench: Bench) -> None:
    """Behaviours 29, 39: a failed check with the line annotated, and the comment says so; a push mends it."""
    number = bench.open({"models/orders.sql": "SELECT 1 AS id\nBROKEN\n"})
    bench.idle()

    check = bench.checks(bench.head(number))["plan"]
    assert (check.conclusion, check.title) == ("failure", "The project does not load")
    assert [(annotation.path, annotation.start_line) for annotation in check.annotations] == [("models/orders.sql", 2)]
    assert "`models/orders.sql:2`" in bench.plan(number)
    assert bench.plan(number).count("The project does not load") == 1
    bench.github.commit(SHOP, "change", COLUMN, "Mended", author="wim")
    bench.idle()
    assert bench.conclusions(bench.head(number)) == GREEN


def test_rerun_of_all_checks_plans_the_same_head_again(bench: Bench) -> None:
    """Behaviour 38: *Re-run all* as well."""
    number = bench.open(COLUMN)
    bench.idle()
    before = len(bench.calls("plan", "pr_1"))
    bench.github.rerequest_suite(SHOP, bench.head(number), author="wim")
    bench.idle()

    assert len(bench.calls("plan", "pr_1")) == before + 1
    assert bench.conclusions(bench.head(number)) == GREEN


def test_rerun_plans_the_same_head_again(bench: Bench) -> None:
    """Behaviour 38: *Re-run* works."""
    number = bench.open(COLUMN)
    bench.idle()
    before = len(bench.calls("plan", "pr_1"))
    bench.github.rerequest(SHOP, bench.checks(bench.head(number))["plan"].id, author="wim")
    bench.idle()

    assert len(bench.calls("plan", "pr_1")) == before + 1
    assert bench.conclusions(bench.head(number)) == GREEN


def test_a_push_during_a_run_supersedes_it(bench: Bench) -> None:
    """Behaviour 20: the child ends, the old check is cancelled, only the newest head is reported."""
    bench.knobs(hang="pr")
    number = bench.open(COLUMN)
    until(lambda: bench.calls("plan", "pr_1"), what="the first run")
    old = bench.head(number)
    bench.github.commit(SHOP, "change", FILTER, "More", author="wim")
    until(lambda: len(bench.calls("plan", "pr_1")) == 2, what="the second run")
    first, second = (call["pid"] for call in bench.calls("plan", "pr_1"))
    assert not birth(first)
    assert birth(second)
    bench.knobs()
    bench.idle()

    assert set(bench.conclusions(old).values()) == {"cancelled"}
    assert bench.conclusions(bench.head(number)) == GREEN
    assert bench.record(number).head == bench.head(number)


def test_a_burst_of_pushes_causes_at_most_two_plans(make_bench: Callable[..., Bench]) -> None:
    """Behaviour 20: the first may have begun; the others are one."""
    bench = make_bench(settle_seconds=3.0)  # longer than the six pushes take on a busy machine
    bench.knobs(hang="pr")
    number = bench.open(COLUMN)
    until(lambda: bench.calls("plan", "pr_1"), what="the first run")
    for index in range(6):
        bench.github.commit(
            SHOP, "change", {"models/orders.sql": f"SELECT {index} AS id, 2 AS more\n"}, "More", author="wim"
        )
    bench.knobs()
    bench.idle()

    assert len(bench.calls("plan", "pr_1")) <= 2
    assert bench.conclusions(bench.head(number)) == GREEN


def test_a_push_that_is_heard_of_late_does_not_end_the_run_of_a_newer_head(bench: Bench) -> None:
    """Webhooks come out of order: the run of the newest head goes on."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.faults.drop("pull_request.synchronize")
    bench.github.commit(SHOP, "change", FILTER, "Heard of late", author="wim")
    late = next(item for item in bench.github.deliveries if item.status == "dropped")
    bench.knobs(hang="pr")
    bench.github.commit(SHOP, "change", COLUMN, "The newest", author="wim")
    until(lambda: len(bench.calls("plan", "pr_1")) == 2, what="the run of the newest head")
    bench.github.redeliver(late.id)
    bench.github.wait_idle(bench.patience)
    bench.knobs()
    bench.idle()

    assert len(bench.calls("plan", "pr_1")) == 2
    assert bench.conclusions(bench.head(number)) == GREEN


def test_what_the_plan_warns_of_stands_below_the_state(bench: Bench) -> None:
    """Behaviour 33: a view of prod that was dropped is not the author's doing, and yet a reviewer's business."""
    gone = "The view `shop.totals` of `prod` is gone from the catalog. `mergeplan run prod --refresh` restores it."
    bench.knobs(warnings=[{"message": gone, "path": "", "line": 0}])
    number = bench.open(COLUMN)
    bench.idle()

    before, _, after = bench.plan(number).partition(f"> [!WARNING]\n> {gone}\n")
    assert "**Ready.**" in before
    assert "| Model | Why | Computed |" in after


def test_closed_while_planning_drops_the_environment_once(bench: Bench) -> None:
    """Behaviour 21: the run stops, nothing later claims success; reopened, it is built again."""
    bench.knobs(hang="pr")
    number = bench.open(COLUMN)
    until(lambda: bench.calls("plan", "pr_1"), what="the run")
    bench.github.close(SHOP, number, author="wim")
    bench.idle()

    assert not birth(bench.calls("plan", "pr_1")[0]["pid"])
    assert len(bench.calls("invalidate")) == 1
    assert set(bench.conclusions(bench.head(number)).values()) == {"cancelled"}
    assert bench.record(number).state is PullState.CLOSED
    bench.knobs()
    bench.github.reopen(SHOP, number, author="wim")
    bench.idle()
    assert bench.conclusions(bench.head(number)) == GREEN
    assert "pr_1" in bench.planner_state()["environments"]


def test_a_merge_promotes_the_plans_own_tables(bench: Bench) -> None:
    """Behaviour 9: merged tree = planned tree, nothing is computed, comment and checks say so; the environment goes."""
    number = bench.open(COLUMN)
    bench.idle()
    merged = bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert "nothing was computed" in bench.plan(number)
    assert "0 Spark jobs" in bench.plan(number)
    assert str(bench.checks(bench.head(number))["promotion"].title).startswith("2 views re-pointed")
    assert bench.conclusions(merged) == {"promotion": "success"}
    call = bench.calls("plan", "prod")[-1]["argv"]
    assert call[call.index("--overrides-from") + 1] == "pr_1"
    assert "--expect-digest" in call
    assert list(bench.planner_state()["environments"]) == ["prod"]


@pytest.mark.parametrize("version", DROPPED)
def test_the_main_line_is_the_same_under_each_version_of_githubs_api(
    copy_bench: Callable[..., Bench], version: str
) -> None:
    """Opened, pushed to, merged; every call names its version, and none is refused."""
    bench = copy_bench(github_api_version=version)
    number = bench.open(FILTER)
    bench.idle()
    bench.github.commit(SHOP, "change", COLUMN, "More", author="wim")
    bench.idle()
    merged = bench.github.merge(SHOP, number, author="ann", method="squash")
    bench.idle()

    assert (bench.record(number).state, bench.record(number).promotion.merge_sha) == (PullState.PROMOTED, merged)
    assert bench.conclusions(merged) == {"promotion": "success"}
    assert {(call.version, call.status < 400) for call in bench.github.calls} == {(version, True)}


def test_a_promise_that_moved_is_built_again_and_told(bench: Bench) -> None:
    """Behaviour 9: when the merged tree is not the planned one, it is planned and built before any view moves."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.worker.context.inbox.pulls.update(
        SHOP, number, change_record, run_lines=bench.record(number).run.lines.replace('"digest":"', '"digest":"old')
    )
    state = bench.planner_state()
    state["environments"]["pr_1"]["tables"] = []
    (bench.home / "scripted.json").write_text(json.dumps(state))
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert "Prod had moved since the plan" in bench.plan(number)
    assert "`shop.orders`" in bench.plan(number).split("Prod had moved since the plan")[1]
    assert bench.record(number).state is PullState.PROMOTED


def test_the_plan_of_an_open_pull_request_is_made_again_when_prod_moves(bench: Bench) -> None:
    """Behaviours 13, 22: prod moves, the other plan is refreshed on top of it without the first one's change."""
    first = bench.open(COLUMN)
    second = bench.open({"models/totals.sql": "SELECT count(*) AS m FROM shop.orders\n"}, "other")
    bench.idle()
    bench.github.merge(SHOP, first, author="ann")
    bench.idle()

    assert "base `prod` revision 2" in bench.plan(second)
    assert "`shop.totals`" in bench.plan(second)
    assert "`shop.orders`" not in bench.plan(second)
    bench.github.merge(SHOP, second, author="ann")
    bench.idle()
    assert bench.record(second).state is PullState.PROMOTED
    assert bench.planner_state()["environments"]["prod"]["models"]["shop.orders"] == COLUMN["models/orders.sql"]


def test_two_merges_at_once_are_promoted_one_after_the_other(bench: Bench) -> None:
    """Behaviour 11: prod has a job of its own, in the order of the branch."""
    first = bench.open(COLUMN)
    second = bench.open({"models/totals.sql": "SELECT count(*) AS m FROM shop.orders\n"}, "other")
    bench.idle()
    bench.github.merge(SHOP, first, author="ann")
    bench.github.merge(SHOP, second, author="ann")
    bench.idle()

    assert [bench.record(number).state for number in (first, second)] == [PullState.PROMOTED] * 2
    assert bench.record(first).promotion.revision < bench.record(second).promotion.revision


def test_a_promotion_that_has_to_wait_says_for_whom(bench: Bench) -> None:
    """Behaviour 11: prod is held by another process; the comment and the check name it, and then it is promoted."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.knobs(held="prod")
    merged = bench.github.merge(SHOP, number, author="ann")
    until(lambda: "held by ann on laptop:7" in bench.plan(number), what="the name")
    until(lambda: "held by ann on laptop:7" in str(bench.checks(merged).get("promotion")), what="the check")
    bench.knobs()
    bench.idle()

    assert bench.record(number).state is PullState.PROMOTED
    assert "held by" not in bench.plan(number)


def test_a_conflict_with_the_base_branch_is_told(bench: Bench) -> None:
    """A head that cannot be merged fails its plan and names the file; no planner runs."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.commit(SHOP, "main", FILTER, "On main", author="ann")
    bench.idle()

    assert "conflicts with the base branch in `models/orders.sql`" in bench.plan(number)
    assert bench.conclusions(bench.head(number))["plan"] == "failure"


def test_a_push_to_the_prod_branch_is_promoted_too(bench: Bench) -> None:
    """A push that no pull request brought: prod shows its branch, and the commit's check says so."""
    pushed = bench.github.commit(SHOP, "main", COLUMN, "Straight to main", author="ann")
    bench.idle()

    assert bench.conclusions(pushed) == {"promotion": "success"}
    assert bench.planner_state()["environments"]["prod"]["models"]["shop.orders"] == COLUMN["models/orders.sql"]


def test_every_webhook_dropped_the_timer_still_brings_the_same_end(make_bench: Callable[..., Bench]) -> None:
    """Behaviour 18: opened, commented and merged without one webhook."""
    bench = make_bench(sweep_seconds=0.5)
    bench.github.faults.drop(times=1000)
    number = bench.open(COLUMN)
    until(lambda: bench.record(number).state is PullState.PLANNED, what="the plan")
    bench.github.comment(SHOP, number, "/categorize orders breaking", author="wim")
    until(lambda: bench.replies(number), what="the reply")
    bench.github.merge(SHOP, number, author="ann")
    until(lambda: bench.record(number).state is PullState.PROMOTED, what="the promotion")

    until(lambda: "nothing was computed" in bench.plan(number), what="the last comment")
    assert "1 breaking" in bench.plan(number) or "Breaking" in bench.plan(number)


@pytest.mark.prove
def test_the_janitor_comes_in_its_time_and_keeps_environments_of_open_pull_requests(
    bench: Bench, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    open_one, merged = bench.open(COLUMN), bench.open(FILTER, branch="other")
    bench.idle()
    bench.github.merge(SHOP, merged, author="ann")
    bench.idle()
    bench.worker.sweep()
    bench.idle()
    assert bench.calls("janitor") == []

    bench.context.inbox.prods.update(SHOP, change_prod, swept_at=1.0)
    bench.worker.sweep()
    until(lambda: bench.calls("janitor"), what="the janitor")
    bench.idle()
    bench.worker.sweep()
    bench.idle()

    assert [call["argv"][:3] for call in bench.calls("janitor")] == [["janitor", "--keep", f"pr_{open_one}"]]
    told = capsys.readouterr()
    logged = told.out + told.err + caplog.text
    assert "s.one" in logged
    assert "it is being written" in logged


def test_doubled_and_reordered_webhooks_end_in_the_same_state(bench: Bench) -> None:
    """Behaviour 19: opened, two pushes, a comment and a close in any order and number."""
    bench.github.faults.duplicate(times=3)
    bench.github.faults.reorder(times=4)
    number = bench.open(COLUMN)
    bench.github.commit(SHOP, "change", FILTER, "More", author="wim")
    bench.github.comment(SHOP, number, "/plan", author="wim")
    bench.github.close(SHOP, number, author="wim")
    bench.idle()

    assert bench.record(number).state in (PullState.CLOSED, PullState.NEW)
    assert list(bench.planner_state()["environments"]) == ["prod"]
    assert all(run.status == "completed" for run in bench.checks(bench.head(number)).values())


def test_a_pull_request_does_not_change_its_own_rules(bench: Bench) -> None:
    """Behaviour 10: `cicd_bot` comes from the base branch, and the comment says that an edit counts after the merge."""
    rules = "gateways: {}\ncicd_bot:\n  type: github\n  permissions:\n    categorize: read\n"
    number = bench.open({**COLUMN, "config.yaml": rules})
    bench.idle()
    bench.say(number, "/categorize orders breaking", author="rea")

    assert "the edit takes effect after the merge" in bench.plan(number)
    assert "needs the `write` permission" in bench.replies(number)[0]


def test_a_pull_request_does_not_choose_the_spark_it_runs_on(bench: Bench) -> None:
    """Behaviours 8, 10: its gateways, and with them jars and Java options, are those of the base branch."""
    own = "gateways:\n  spark:\n    connection:\n      type: spark\n      config:\n        spark.jars: evil.jar\n"
    number = bench.open({**COLUMN, "config.yaml": own})
    bench.idle()

    [call] = bench.calls("plan", f"pr_{number}")
    assert "gateways" in call["gateways"]
    assert "evil" not in call["gateways"]


def test_a_broken_rule_on_the_base_branch_is_told_at_its_line(bench: Bench) -> None:
    """An unknown `cicd_bot` key is never silently ignored."""
    bench.github.commit(SHOP, "main", {"config.yaml": "cicd_bot:\n  typo: 1\n"}, "Rules", author="ann")
    bench.idle()
    number = bench.open(COLUMN)
    bench.idle()

    assert "`cicd_bot.typo` is not a key that mergeplan knows" in bench.plan(number)
    assert bench.checks(bench.head(number))["plan"].annotations[0].start_line == 2


def test_a_forks_code_runs_only_after_a_maintainers_word_for_that_commit(bench: Bench) -> None:
    """Behaviour 6: the check says who can type what; the next push needs a new word."""
    fork = bench.github.fork(SHOP, "rea")
    bench.github.commit(fork, "main", COLUMN, "From a fork", author="rea")
    number = bench.github.open_pull_request(SHOP, "rea:main", "main", "From a fork", author="rea")
    bench.idle()
    head = bench.head(number)

    assert bench.calls("plan", f"pr_{number}") == []
    assert set(bench.conclusions(head).values()) == {"action_required"}
    assert f"`/ok-to-plan {head}`" in bench.plan(number)
    assert all(f"`/ok-to-plan {head}`" in str(check.summary) for check in bench.checks(head).values())
    bench.say(number, f"/ok-to-plan {head}", author="rea")
    bench.say(number, f"/ok-to-plan {head[:39]}", author="ann")
    assert f"`/ok-to-plan {head}`" in bench.replies(number)[1]
    assert bench.calls("plan", f"pr_{number}") == []
    bench.say(number, f"/ok-to-plan {head}", author="ann")
    assert bench.conclusions(head) == GREEN
    bench.github.commit(fork, "main", FILTER, "More", author="rea")
    bench.idle()
    assert set(bench.conclusions(bench.head(number)).values()) == {"action_required"}


def test_a_promotion_that_was_cut_off_is_told_with_what_it_moved(bench: Bench) -> None:
    """Behaviour 46: the run that moved the views did not live to tell; the next finds nothing to do and still tells."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.knobs(die="prod")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert bench.record(number).state is PullState.PROMOTED
    assert "2 views re-pointed" in bench.plan(number)
    assert "The run that promoted it was interrupted" in bench.plan(number)
    assert "2 views re-pointed" in str(bench.checks(bench.head(number))["promotion"].title)
    assert bench.record(number).promotion.revision == 2


def test_a_promotion_that_failed_leaves_prod_and_can_be_asked_for_again(bench: Bench) -> None:
    """Behaviours 9, 26: the check and the comment say that prod was not changed; /plan tries again."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.knobs(fail="prod")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert bench.record(number).state is PullState.UNPROMOTED
    assert bench.conclusions(bench.head(number))["promotion"] == "failure"
    assert "Spark refused a query" in bench.plan(number)
    assert bench.planner_state()["environments"]["prod"]["revision"] == 1
    bench.knobs()
    bench.say(number, "/plan")
    assert bench.record(number).state is PullState.PROMOTED


def test_a_blocking_audit_fails_the_environment_at_its_line(bench: Bench) -> None:
    """Behaviour 39: the environment's check is annotated, and the comment names the audit."""
    bench.knobs(audit=True)
    number = bench.open(COLUMN)
    bench.idle()

    check = bench.checks(bench.head(number))["environment"]
    assert check.conclusion == "failure"
    assert [(annotation.path, annotation.start_line) for annotation in check.annotations] == [("models/orders.sql", 1)]
    assert "### ❌ The audit `not_null` of `shop.orders` found 3 rows" in bench.plan(number)


def test_a_defect_of_the_planner_is_tried_again_and_then_told(bench: Bench) -> None:
    """A run that ends without a result is our fault: three tries, then a comment that says so, and no stack trace."""
    bench.knobs(defect="plan")
    number = bench.open(COLUMN)
    bench.idle()

    assert len(bench.calls("plan", "pr_1")) == 3
    assert "the fault is mergeplan's" in bench.plan(number)
    assert bench.conclusions(bench.head(number))["plan"] == "failure"


def test_the_timer_looks_again_until_the_second_of_a_change_is_over() -> None:
    now = datetime.now(UTC)
    assert not _is_past(now.isoformat(timespec="seconds"))
    assert not _is_past("")
    assert _is_past((now - timedelta(seconds=10)).isoformat(timespec="seconds"))
