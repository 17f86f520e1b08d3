"""Stacks of pull requests on the sandbox: webhook in, comment, checks and prod out. The planner is scripted."""

from __future__ import annotations

from collections.abc import Callable

from mergeplan.bot.records import PullState
from tests.bot.conftest import SHOP, Bench, until
from tests.bot.test_pull_requests import GREEN

FILES = {name: {f"models/{name}.sql": f"SELECT '{name}' AS n\n"} for name in ("one", "two", "three")}


def open_stack(bench: Bench, *names: str) -> list[int]:
    """A pull request of one new model for each name, into `main` and into each other; planned."""
    numbers, base = list[int](), "main"
    for name in names:
        numbers.append(open_layer(bench, name, base))
        base = name
    bench.idle()
    return numbers


def open_layer(bench: Bench, name: str, base: str) -> int:
    bench.github.create_branch(SHOP, name, base, author="wim")
    bench.github.commit(SHOP, name, FILES[name], f"Add {name}", author="wim")
    return bench.github.open_pull_request(SHOP, name, base, f"Add {name}", author="wim")


def green(bench: Bench, number: int) -> bool:
    return bench.conclusions(bench.head(number)) == GREEN


def jobs(bench: Bench, number: int) -> int | None:
    done = bench.record(number).promotion.outcome
    assert done and done.promotion
    return done.promotion.spark_jobs


def prod_models(bench: Bench) -> set[str]:
    return set(bench.planner_state()["environments"]["prod"]["models"]) - {"shop.orders", "shop.totals"}


def test_each_layer_has_a_plan_a_comment_with_the_stack_and_green_checks(bench: Bench) -> None:
    one, two, three = open_stack(bench, "one", "two", "three")

    assert all(green(bench, number) for number in (one, two, three))
    plan = bench.plan(two)
    assert "### ✅ Ready after #1, or together with it" in plan
    assert "**Layer 2 of 3 of a stack**" in plan and "1. #1\n2. #2 ← this one\n3. #3" in plan
    assert "**This layer changes 1 model** of what #1 gives:" in plan
    layer_part = plan.split("**This layer changes")[1].split("All else in this comment")[0]
    assert "`shop.two`" in layer_part and "`shop.one`" not in layer_part
    assert "adds 2 tables to prod" in plan
    assert "change the same models" not in plan  # those of its own stack are no surprise
    assert "**Layer 1 of 3 of a stack**" in bench.plan(one) and "✅ Ready to merge" in bench.plan(one)


def test_a_stack_that_is_merged_from_the_bottom_is_promoted_for_nothing(bench: Bench) -> None:
    numbers = open_stack(bench, "one", "two", "three")
    for number, name in zip(numbers, FILES, strict=True):
        bench.github.merge(SHOP, number, author="ann")
        bench.github.delete_branch(SHOP, name, author="ann")
        bench.idle()

    assert [bench.record(number).state for number in numbers] == [PullState.PROMOTED] * 3
    assert [jobs(bench, number) for number in numbers] == [0, 0, 0]
    assert prod_models(bench) == {"shop.one", "shop.two", "shop.three"}
    assert list(bench.planner_state()["environments"]) == ["prod"]


def test_a_whole_stack_that_is_merged_at_once_is_promoted_for_nothing(bench: Bench) -> None:
    numbers = open_stack(bench, "one", "two", "three")
    bench.github.stack(SHOP, *numbers, author="wim")
    bench.github.require_checks(SHOP, "main", ["mergeplan / plan", "mergeplan / promotion"])
    bench.github.merge_stack(SHOP, numbers[2], author="ann", method="squash")
    bench.idle()

    assert [bench.record(number).state for number in numbers] == [PullState.PROMOTED] * 3
    assert [jobs(bench, number) for number in numbers] == [0, 0, 0]
    assert prod_models(bench) == {"shop.one", "shop.two", "shop.three"}


def test_what_is_left_of_a_stack_is_planned_into_the_trunk(bench: Bench) -> None:
    numbers = open_stack(bench, "one", "two", "three")
    bench.github.stack(SHOP, *numbers, author="wim")
    bench.github.merge_stack(SHOP, numbers[1], author="ann", method="squash")
    bench.idle()

    assert [bench.record(number).state for number in numbers] == [*[PullState.PROMOTED] * 2, PullState.PLANNED]
    assert "✅ Ready to merge" in bench.plan(3) and "Layer" not in bench.plan(3)
    assert "adds 1 table to prod" in bench.plan(3)


def test_a_push_below_plans_the_layers_above_again_after_it(bench: Bench) -> None:
    numbers = open_stack(bench, "one", "two", "three")
    bench.github.commit(SHOP, "one", {"models/one.sql": "SELECT 1 AS n\n"}, "More", author="wim")
    bench.idle()

    plans = [call["argv"][1] for call in bench.calls("plan") if call["argv"][1] != "prod"]
    assert plans == ["pr_1", "pr_2", "pr_3"] * 2
    for number, below in zip(numbers[1:], ("#1", "#2"), strict=True):
        assert f"✋ Behind {below}" in bench.plan(number)
        assert set(bench.conclusions(bench.head(number)).values()) == {"action_required"}
        assert "rebase the stack" in bench.plan(number).lower()
    assert "SELECT 1 AS n" in str(bench.planner_state()["environments"]["pr_3"]["models"])


def test_a_layer_that_is_rebased_is_ready_again(bench: Bench) -> None:
    open_stack(bench, "one", "two")
    bench.github.commit(SHOP, "one", {"models/one.sql": "SELECT 1 AS n\n"}, "More", author="wim")
    bench.idle()
    bench.github.commit(SHOP, "two", {"models/one.sql": "SELECT 1 AS n\n"}, "Bring it over", author="wim")
    bench.idle()

    assert green(bench, 2)
    assert "`shop.two`" in bench.plan(2).split("**This layer changes 1 model**")[1]


def test_the_upper_layer_waits_for_the_plan_of_the_lower_one(bench: Bench) -> None:
    bench.knobs(ponder="pr")
    one = open_layer(bench, "one", "main")
    until(lambda: bench.record(one).state is PullState.PLANNING)
    two = open_layer(bench, "two", "one")
    until(lambda: bench.checks(bench.head(two)))
    titles = {run.title for run in bench.checks(bench.head(two)).values()}
    bench.knobs()
    bench.idle()

    assert titles == {"Waiting for the plan of #1, the layer below."}
    assert green(bench, one) and green(bench, two)
    assert len(bench.calls("plan", "pr_2")) == 1


def test_a_layer_whose_lower_one_is_closed_says_so_and_succeeds_no_more(bench: Bench) -> None:
    one, two = open_stack(bench, "one", "two")
    bench.github.close(SHOP, one, author="wim")
    bench.idle()
    assert "the layer below, is closed" in bench.plan(two)
    assert set(bench.conclusions(bench.head(two)).values()) == {"cancelled"}

    bench.github.edit_pull_request(SHOP, two, base="main", author="wim")
    bench.idle()
    assert green(bench, two) and "✅ Ready to merge" in bench.plan(two)


def test_a_layer_in_the_middle_that_is_taken_out_leaves_the_others_in_line(bench: Bench) -> None:
    one, two, three = open_stack(bench, "one", "two", "three")
    bench.github.edit_pull_request(SHOP, three, base="one", author="wim")
    bench.github.close(SHOP, two, author="wim")
    bench.idle()

    assert "1. #1\n2. #3 ← this one" in bench.plan(three) and "1. #1 ← this one\n2. #3" in bench.plan(one)
    assert green(bench, three)
    assert bench.record(two).state is PullState.CLOSED
    layer_part = bench.plan(three).split("**This layer changes 2 models**")[1].split("All else")[0]
    assert "`shop.two`" in layer_part and "`shop.three`" in layer_part


def test_a_layer_that_is_merged_into_the_one_below_reaches_prod_with_it(bench: Bench) -> None:
    one, two = open_stack(bench, "one", "two")
    bench.github.merge(SHOP, two, author="ann")
    bench.idle()
    assert "reaches prod with that one" in bench.plan(two)
    assert bench.record(two).state is PullState.CLOSED
    assert prod_models(bench) == set()

    bench.github.merge(SHOP, one, author="ann")
    bench.idle()
    assert prod_models(bench) == {"shop.one", "shop.two"}
    assert jobs(bench, one) == 0


def test_a_layer_that_gets_another_base_in_the_middle_of_its_plan_shows_no_success_of_the_old_one(bench: Bench) -> None:
    one, two = open_stack(bench, "one", "two")
    bench.github.commit(SHOP, "other", {"README.md": "# Other\n"}, "Other", author="wim")
    bench.knobs(hang="pr")
    bench.github.commit(SHOP, "two", {"models/more.sql": "SELECT 2\n"}, "More", author="wim")
    until(lambda: bench.record(two).run.fresh)
    bench.github.edit_pull_request(SHOP, two, base="main", author="wim")
    until(lambda: not bench.record(two).stack.planned_on.layers)
    assert {run.status for run in bench.checks(bench.head(two)).values()} == {"in_progress"}
    bench.knobs()
    bench.idle()

    assert green(bench, two)
    assert "It merges into" not in bench.plan(two) and "Layer" not in bench.plan(one)


def test_a_base_that_changes_makes_the_checks_of_the_same_commit_pending_first(bench: Bench) -> None:
    _, two = open_stack(bench, "one", "two")
    bench.knobs(ponder="pr")
    bench.github.edit_pull_request(SHOP, two, base="main", author="wim")
    until(lambda: {run.status for run in bench.checks(bench.head(two)).values()} == {"in_progress"})
    bench.knobs()
    bench.idle()

    assert green(bench, two)


def test_a_fork_on_a_layer_keeps_the_rules_of_forks(bench: Bench) -> None:
    one = open_layer(bench, "one", "main")
    bench.github.fork(SHOP, "rea")
    bench.github.commit("rea/shop", "two", {**FILES["one"], **FILES["two"]}, "Two", author="rea")
    two = bench.github.open_pull_request(SHOP, "rea:two", "one", "Two", author="rea")
    bench.idle()
    assert bench.record(two).state is PullState.HELD
    assert bench.calls("plan", "pr_2") == []

    bench.say(two, f"/ok-to-plan {bench.head(two)}", author="ann")
    assert green(bench, one) and green(bench, two)
    assert "**Layer 2 of 2 of a stack**" in bench.plan(two)


def test_pull_requests_that_lead_in_a_circle_or_nowhere_are_left_alone(bench: Bench) -> None:
    for name, base in (("one", "main"), ("two", "one")):
        bench.github.create_branch(SHOP, name, base, author="wim")
        bench.github.commit(SHOP, name, FILES[name], name, author="wim")
    bench.github.commit(SHOP, "one", FILES["three"], "More", author="wim")
    numbers = [
        bench.github.open_pull_request(SHOP, head, base, "Round", author="wim")
        for head, base in (("one", "two"), ("two", "one"))
    ]
    bench.idle()

    assert [bench.bot_comments(number) for number in numbers] == [[], []]
    assert [bench.conclusions(bench.head(number)) for number in numbers] == [{}, {}]


def test_a_layer_that_was_there_before_the_lower_pull_request_is_found_when_that_comes(bench: Bench) -> None:
    bench.github.create_branch(SHOP, "one", "main", author="wim")
    bench.github.commit(SHOP, "one", FILES["one"], "One", author="wim")
    two = open_layer(bench, "two", "one")
    bench.idle()
    assert bench.bot_comments(two) == []

    bench.github.open_pull_request(SHOP, "one", "main", "One", author="wim")
    bench.idle()
    assert green(bench, two) and "Layer 2 of 2" in bench.plan(two)


def test_a_category_below_holds_above(bench: Bench) -> None:
    bench.github.commit(SHOP, "one", {"models/orders.sql": "SELECT 1 AS id, 2 AS b\n"}, "One", author="wim")
    one = bench.github.open_pull_request(SHOP, "one", "main", "One", author="wim")
    two = open_layer(bench, "two", "one")
    bench.idle()
    bench.say(one, "/categorize shop.orders breaking", author="ann")
    bench.idle()

    assert "1 breaking" in bench.plan(one)
    assert "1 breaking" in bench.plan(two)
    assert "`shop.orders`" not in bench.plan(two).split("**This layer changes")[1].split("All else")[0]


def test_every_webhook_lost_a_stack_ends_the_same(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(sweep_seconds=1.0)
    bench.github.faults.drop(times=1000)
    numbers = open_stack(bench, "one", "two", "three")
    until(lambda: all(green(bench, number) for number in numbers), what="the plans")
    bench.github.commit(SHOP, "one", {"models/one.sql": "SELECT 1 AS n\n"}, "More", author="wim")
    until(lambda: "Behind #2" in bench.plan(3), what="the top to know")
    bench.github.merge(SHOP, 1, author="ann")
    bench.github.delete_branch(SHOP, "one", author="ann")
    until(lambda: bench.record(1).state is PullState.PROMOTED, what="the promotion")
    until(lambda: green(bench, 2), what="the retargeted one")


def test_deploy_of_a_layer_is_refused(make_bench: Callable[..., Bench]) -> None:
    rules = "gateways: {}\ncicd_bot:\n  enable_deploy_command: true\n"
    bench = make_bench({"config.yaml": rules, "models/orders.sql": "SELECT 1 AS id\n"})
    _, two = open_stack(bench, "one", "two")
    bench.say(two, "/deploy", author="ann")

    assert "It is a layer on #1" in bench.replies(two)[0]
    assert "`/deploy`" not in bench.plan(two) and "`/deploy`" in bench.plan(1)


def test_an_approved_stack_that_is_merged_at_once_reaches_prod_as_the_plan_that_its_top_showed(
    make_bench: Callable[..., Bench],
) -> None:
    rules = "gateways: {}\ncicd_bot:\n  rules: [{models: '*', approvals: 1}]\n"
    bench = make_bench({"config.yaml": rules, "models/orders.sql": "SELECT 1 AS id\n"})
    numbers = open_stack(bench, "one", "two")
    for number in numbers:
        bench.review(number)
    bench.idle()
    bench.github.stack(SHOP, *numbers, author="wim")
    bench.github.merge_stack(SHOP, numbers[1], author="ann")
    bench.idle()

    assert [bench.record(number).state for number in numbers] == [PullState.PROMOTED] * 2
    assert bench.planner_state()["environments"]["prod"]["revision"] == 2
    assert jobs(bench, 2) == 0 and "together with" in bench.plan(1)


def test_a_stack_of_which_one_layer_lacks_an_approval_is_held_from_there_on(make_bench: Callable[..., Bench]) -> None:
    rules = "gateways: {}\ncicd_bot:\n  rules: [{models: '*', approvals: 1}]\n"
    bench = make_bench({"config.yaml": rules, "models/orders.sql": "SELECT 1 AS id\n"})
    numbers = open_stack(bench, "one", "two")
    bench.review(numbers[0])
    bench.idle()
    bench.github.stack(SHOP, *numbers, author="wim")
    bench.github.merge_stack(SHOP, numbers[1], author="ann")
    bench.idle()

    assert [bench.record(number).state for number in numbers] == [PullState.PROMOTED, PullState.MERGED]
    assert prod_models(bench) == {"shop.one"}
    assert bench.record(numbers[1]).rules.held


def test_the_rows_of_a_layer_are_compared_with_the_layer_below(bench: Bench) -> None:
    bench.knobs(rows_changed=3)
    bench.github.commit(SHOP, "one", {"models/orders.sql": "SELECT 1 AS id, 2 AS b\n"}, "One", author="wim")
    bench.github.open_pull_request(SHOP, "one", "main", "One", author="wim")
    bench.github.create_branch(SHOP, "two", "one", author="wim")
    bench.github.commit(SHOP, "two", {"models/totals.sql": "SELECT 7 AS n\n"}, "Two", author="wim")
    two = bench.github.open_pull_request(SHOP, "two", "one", "Two", author="wim")
    bench.idle()

    layer_part = bench.plan(two).split("**This layer changes 1 model**")[1].split("All else")[0]
    assert "This layer's rows: 3 rows changed" in layer_part
    assert "`shop.totals`" in layer_part and "`shop.orders`" not in layer_part
    assert [call["argv"][:3] for call in bench.calls("data_diff")] == [["data_diff", "pr_2", "--against=pr_1"]]


def test_a_layer_that_conflicts_with_the_layer_below_says_so_and_is_planned_when_it_does_not(bench: Bench) -> None:
    """A push below edits the line that this layer edits: the layer below is named, and it stays as it is."""
    one, two = open_stack(bench, "one", "two")
    bench.github.commit(SHOP, "two", {"models/one.sql": "SELECT 2 AS n\n"}, "Edit", author="wim")
    bench.idle()
    bench.github.commit(SHOP, "one", {"models/one.sql": "SELECT 1 AS n\n"}, "Another", author="wim")
    bench.idle()

    assert "### ❌ It conflicts with the branch of #1" in bench.plan(two)
    assert " in `models/one.sql`." in bench.plan(two)
    assert bench.conclusions(bench.head(two))["plan"] == "failure" and green(bench, one)
    calls = len(bench.calls("plan", "pr_2"))
    bench.github.commit(SHOP, "one", FILES["one"], "Take it back", author="wim")
    bench.idle()
    assert bench.record(two).state is PullState.PLANNED
    assert len(bench.calls("plan", "pr_2")) == calls + 1
