"""A pull request that ends, blinds or outlasts a parser is told so, and stops nobody else."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from bot.records import PullState
from planner.errors import Place, ProjectError
from tests.bot.conftest import COLUMN, SHOP, Bench
from tests.bot.test_pull_requests import GREEN

Make = Callable[..., Bench]
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n  k{n}: 1\n" for n in range(1, 40))
BOMBS = {
    "date": "model_defaults:\n  start: 2026-02-30\n",
    "brackets": "x: " + "[" * 50_000,
    "merges": MERGES,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_configuration_that_no_parser_survives_leaves_no_check_in_progress(bench: Bench, name: str) -> None:
    """Its rules are read for whether they change; what is wrong with it, the planner says."""
    number = bench.open({"config.yaml": f"gateways: {{}}\n{BOMBS[name]}"})
    bench.idle()

    assert {run.status for run in bench.checks(bench.head(number)).values()} == {"completed"}
    assert bench.record(number).changes_rules


def test_a_configuration_of_the_base_branch_that_cannot_be_read_is_told_at_its_line(bench: Bench) -> None:
    bench.github.commit(SHOP, "main", {"config.yaml": f"gateways: {{}}\n{BOMBS['date']}"}, "Break", author="ann")
    bench.idle()
    number = bench.open(COLUMN)
    bench.idle()

    assert bench.record(number).state is PullState.FAILED
    assert "On the base branch: `2026-02-30` is not a valid value" in bench.plan(number)
    assert "config.yaml:3" in bench.plan(number)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("nobody expected this"), "mergeplan failed (RuntimeError)."),
        (ProjectError("It is wrong.", place=Place("x.yaml", 7)), "It is wrong."),
    ],
)
def test_an_error_that_stays_ends_the_checks_instead_of_being_tried_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("bot.pulls.reconcile.rules_at", fail)
    number = bench.open(COLUMN)
    bench.idle()

    assert bench.record(number).state is PullState.FAILED
    assert bench.checks(bench.head(number))["plan"].conclusion == "failure"
    assert said in bench.plan(number) and "nobody expected" not in bench.plan(number)
    monkeypatch.undo()
    bench.say(number, "/plan")
    assert bench.conclusions(bench.head(number)) == GREEN


def test_the_numbers_are_served_while_github_cannot_be_reached(bench: Bench) -> None:
    """The last that are known, and GitHub is not asked for them."""
    bench.open(COLUMN)
    bench.idle()
    before = httpx.get(f"{bench.url}/metrics").text
    bench.github.faults.fail("*", ".*", status=500, times=1000)
    for each in bench.context.github.owners.connections():
        bench.context.github.owners.forget(each.owner)
    calls = len(bench.github.calls)
    answer = httpx.get(f"{bench.url}/metrics")
    bench.github.faults.clear()

    assert answer.status_code == 200
    assert len(bench.github.calls) == calls
    budget = [line for line in before.splitlines() if line.startswith("mergeplan_github_budget{")]
    assert budget and set(budget) <= set(answer.text.splitlines())


@pytest.mark.parametrize("status", [403, 500])
def test_a_question_about_a_comment_that_github_refuses_keeps_no_pull_request_unplanned(
    bench: Bench, status: int
) -> None:
    """The command is taken as on a GitHub without GraphQL: what needs more than writing is to be written again."""
    bench.github.faults.drop("issue_comment", times=1)
    bench.github.faults.fail("POST", r"^/graphql$", status=status, times=1000)
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.comment(SHOP, number, "/plan", author="wim")
    bench.github.commit(SHOP, "change", {"models/orders.sql": "SELECT 1 AS id, 3 AS more\n"}, "More", author="wim")
    bench.idle()

    assert bench.conclusions(bench.head(number)) == GREEN
    assert len(bench.replies(number)) == 1
