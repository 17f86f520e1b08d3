"""A pull request that ends, blinds or outlasts a parser is told so, and stops nobody else."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from typing import NoReturn

import httpx
import pytest

from mergeplan.bot.git.call import EMPTY_TREE, ServerUnreachable
from mergeplan.bot.records import PullState
from mergeplan.planner.errors import Place, ProjectError
from tests.bot.conftest import COLUMN, SHOP, Bench, until
from tests.bot.git.test_work_tree import git
from tests.bot.test_pull_requests import GREEN

Make = Callable[..., Bench]
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n  k{n}: 1\n" for n in range(1, 40))
WAITING = "Waiting: `git fetch` failed (128). It is tried again."
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
    assert bench.record(number).rules.changes_rules


def test_a_configuration_of_the_base_branch_that_cannot_be_read_is_told_at_its_line(bench: Bench) -> None:
    bench.github.commit(SHOP, "main", {"config.yaml": f"gateways: {{}}\n{BOMBS['date']}"}, "Break", author="ann")
    bench.idle()
    number = bench.open(COLUMN)
    bench.idle()

    assert bench.record(number).state is PullState.FAILED
    assert "On the base branch: `2026-02-30` is not a valid value" in bench.plan(number)
    assert "config.yaml:3" in bench.plan(number)


def test_a_pull_request_that_mends_the_configuration_of_the_base_branch_says_how_to_merge_it(bench: Bench) -> None:
    bench.github.commit(SHOP, "main", {"config.yaml": f"gateways: {{}}\n{BOMBS['date']}"}, "Break", author="ann")
    bench.idle()
    number = bench.open({"config.yaml": "gateways: {}\n"})
    bench.idle()

    assert bench.record(number).state is PullState.FAILED
    assert "an administrator can merge it past them" in bench.plan(number)


def test_a_pull_request_that_would_break_the_rules_of_all_others_fails_at_the_line(bench: Bench) -> None:
    """Its own plan would be green, and after the merge no pull request had one."""
    number = bench.open({"config.yaml": "gateways: {}\ncicd_bot:\n  merge_methd: squash\n", **COLUMN})
    bench.idle()

    assert bench.record(number).state is PullState.FAILED
    assert "`config.yaml:3`: `cicd_bot.merge_methd` is not a key" in bench.plan(number)
    assert bench.checks(bench.head(number))["promotion"].conclusion == "failure"


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

    monkeypatch.setattr("mergeplan.bot.pulls.reconcile.BotContext.config", fail)
    number = bench.open(COLUMN)
    bench.idle()

    assert bench.record(number).state is PullState.FAILED
    assert bench.checks(bench.head(number))["plan"].conclusion == "failure"
    assert said in bench.plan(number) and "nobody expected" not in bench.plan(number)
    monkeypatch.undo()
    bench.say(number, "/plan")
    assert bench.conclusions(bench.head(number)) == GREEN


def test_a_file_that_no_disk_can_hold_ends_the_checks_at_once_and_a_push_mends_it(bench: Bench) -> None:
    """It was tried again for ever, and nothing was said."""
    name = f"models/{'x' * 300}.sql"
    number = bench.open({name: "SELECT 1 AS id\n"})
    bench.idle()

    assert bench.record(number).state is PullState.FAILED
    assert {run.status for run in bench.checks(bench.head(number)).values()} == {"completed"}
    assert "A file of the commit cannot be written: file name too long." in bench.plan(number)
    assert f"`{name[:200]}..." in bench.plan(number)
    bench.github.commit(SHOP, "change", {name: None}, "Mend", author="wim")
    bench.idle()
    assert bench.conclusions(bench.head(number)) == GREEN


def test_a_commit_that_git_refuses_to_take_ends_the_checks_at_once(bench: Bench) -> None:
    """A folder that holds `.git`, as GitHub itself would not let it in."""
    number = bench.open({"models/more.sql": "SELECT 1 AS id\n"})
    bench.idle()
    push_raw(bench, "change", b"40000 .git\0" + bytes.fromhex(EMPTY_TREE))
    bench.idle()

    assert bench.record(number).state is PullState.FAILED
    assert bench.conclusions(bench.head(number))["plan"] == "failure"
    assert "The files cannot be read: Git refuses the commit" in bench.plan(number)


@pytest.mark.prove  # it waits for the second try, and for the one after that
def test_what_the_server_does_not_give_is_waited_for_in_the_open(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise ServerUnreachable("`git fetch` failed (128).")

    monkeypatch.setattr("mergeplan.bot.git.checkout.Checkout._fetch_objects", fail)
    number = bench.open(COLUMN)
    head = bench.head(number)
    until(lambda: WAITING in {run.title for run in bench.checks(head).values()})
    assert {run.status for run in bench.checks(head).values()} == {"in_progress"}
    monkeypatch.undo()
    bench.idle()
    assert bench.conclusions(bench.head(number)) == GREEN


def test_a_branch_of_prod_that_no_disk_can_hold_is_told_by_its_check(make_bench: Make) -> None:
    bench = make_bench({"config.yaml": "gateways: {}\n", f"models/{'x' * 300}.sql": "SELECT 1 AS id\n"})

    (check,) = bench.github.checks(SHOP, bench.github.head(SHOP)).values()
    assert (check.conclusion, check.title) == ("failure", "Prod could not be built")
    assert "A file of the commit cannot be written: file name too long." in str(check.summary)


def test_what_the_server_never_gives_ends_the_checks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise ServerUnreachable("`git fetch` failed (128).")

    monkeypatch.setattr("mergeplan.bot.git.checkout.Checkout._fetch_objects", fail)
    monkeypatch.setattr(ServerUnreachable, "tries", 2)
    number = bench.open(COLUMN)
    bench.idle()

    assert bench.record(number).state is PullState.FAILED
    assert "The files cannot be read: `git fetch` failed (128)." in bench.plan(number)


@pytest.mark.parametrize(("number", "starts"), [(signal.SIGSEGV, 1), (signal.SIGKILL, 3)])
def test_a_planner_that_a_signal_ends_says_which_file_it_read(
    bench: Bench, number: signal.Signals, starts: int
) -> None:
    """A parser's end of its stack is not tried again; the machine's memory may be there a moment later."""
    bench.knobs(crash=number)
    before = len(bench.calls("plan"))
    pull = bench.open(COLUMN)
    bench.idle()

    check = bench.checks(bench.head(pull))["plan"]
    assert (check.conclusion, check.title) == ("failure", "The project does not load")
    assert [mark.path for mark in check.annotations] == ["models/orders.sql"]
    assert f"Reading the file ended the planner ({number.name})." in bench.plan(pull)
    assert len(bench.calls("plan")) - before == starts


def push_raw(bench: Bench, branch: str, tree: bytes) -> None:
    """Push a commit of a tree that git itself would not write."""
    folder = bench.folder / "raw"
    git(bench.folder, "init", "--quiet", "--bare", str(folder))
    url = bench.github.clone_url(SHOP).replace("://", f"://x-access-token:{bench.github.add_user('ann')}@")
    git(folder, "fetch", "--quiet", url, f"refs/heads/{branch}")
    written = subprocess.run(
        ["git", "hash-object", "-w", "-t", "tree", "--stdin", "--literally"],
        cwd=folder, input=tree, capture_output=True, check=True,
    ).stdout.decode().strip()  # fmt: skip
    commit = git(folder, "commit-tree", written, "-p", "FETCH_HEAD", "-m", "Raw").strip()
    git(folder, "push", "--quiet", url, f"{commit}:refs/heads/{branch}")


def test_the_numbers_are_served_while_github_cannot_be_reached(bench: Bench) -> None:
    """The last that are known, and GitHub is not asked for them."""
    bench.open(COLUMN)
    bench.idle()
    before = httpx.get(f"{bench.url}/metrics").text
    bench.github.faults.fail("*", ".*", status=500, times=1000)
    for connection in bench.context.forge.owners.connections():
        bench.context.forge.owners.forget(connection.owner)
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
