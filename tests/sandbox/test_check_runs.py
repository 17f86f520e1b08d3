"""Checks and deployments."""

from typing import Any

import pytest
from github import Github, GithubException

from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.api.shapes_checks import suite_result
from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP

BUTTON = {"label": "Apply", "description": "Apply the plan", "identifier": "apply"}


def note(line: int) -> dict[str, Any]:
    return {"path": "a.sql", "start_line": line, "end_line": line, "annotation_level": "warning", "message": "Look"}


def test_a_check_goes_from_running_to_done(sandbox: Sandbox, bot: Github) -> None:
    sha = sandbox.head(SHOP, "more")
    run = bot.get_repo(SHOP).create_check_run("plan", sha, status="in_progress")
    assert sandbox.checks(SHOP, sha)["plan"].status == "in_progress"

    run.edit(conclusion="failure", output={"title": "Two problems", "summary": "See below"})

    done = sandbox.checks(SHOP, sha)["plan"]
    assert (done.status, done.conclusion, done.title) == ("completed", "failure", "Two problems")
    assert done.completed_at is not None


def test_further_patches_add_annotations(sandbox: Sandbox, bot: Github) -> None:
    repo = bot.get_repo(SHOP)
    first: dict[str, Any] = {"title": "T", "summary": "S", "annotations": [note(line) for line in range(1, 51)]}
    run = repo.create_check_run("lint", sandbox.head(SHOP), output=first)

    run.edit(output={"title": "T", "summary": "S", "annotations": [note(51)]})

    assert run.output.annotations_count == 51
    annotations = sandbox.checks(SHOP, sandbox.head(SHOP))["lint"].annotations
    assert [annotation.start_line for annotation in annotations] == list(range(1, 52))


def test_the_latest_run_of_each_name_counts(sandbox: Sandbox, bot: Github) -> None:
    repo, sha = bot.withLazy(True).get_repo(SHOP), sandbox.head(SHOP)
    for conclusion in ("failure", "success"):
        repo.create_check_run("plan", sha, conclusion=conclusion)

    runs = repo.get_commit(sha).get_check_runs()

    assert [run.conclusion for run in runs] == ["success"]
    assert repo.get_commit(sha).get_check_runs(filter="all").totalCount == 2
    assert sandbox.checks(SHOP, sha)["plan"].conclusion == "success"


def test_a_suite_is_as_bad_as_its_worst_run(sandbox: Sandbox, bot: Github) -> None:
    repo, sha = bot.get_repo(SHOP), sandbox.head(SHOP)
    repo.create_check_run("plan", sha, conclusion="success")
    repo.create_check_run("lint", sha, conclusion="failure")

    shop = sandbox.state.repositories[SHOP]
    assert [suite_result(shop, suite) for suite in shop.suites.values()] == [("completed", "failure")]


def test_buttons_wait_for_the_end(sandbox: Sandbox, bot: Github) -> None:
    run = bot.get_repo(SHOP).create_check_run("plan", sandbox.head(SHOP), status="in_progress", actions=[BUTTON])

    with pytest.raises(ApiError, match="no button 'apply'"):
        sandbox.click(SHOP, run.id, "apply", author="wim")
    run.edit(conclusion="success")
    sandbox.click(SHOP, run.id, "apply", author="wim")


def test_a_check_needs_a_commit_that_is_there(bot: Github) -> None:
    with pytest.raises(GithubException, match="No commit found") as refused:
        bot.get_repo(SHOP).create_check_run("plan", "f" * 40)
    assert refused.value.status == 422


def test_a_started_run_is_not_concluded_any_more(sandbox: Sandbox, bot: Github) -> None:
    run = bot.get_repo(SHOP).create_check_run("plan", sandbox.head(SHOP), conclusion="failure")

    run.edit(status="in_progress")

    assert sandbox.checks(SHOP, sandbox.head(SHOP))["plan"].conclusion is None


def test_a_deployment_tells_how_it_fares(sandbox: Sandbox, bot: Github) -> None:
    repo = bot.get_repo(SHOP)
    deployment = repo.create_deployment("more", environment="pr_1", auto_merge=False, required_contexts=[])

    deployment.create_status("in_progress")
    deployment.create_status("success", environment_url="http://127.0.0.1/")

    pr_deployment = repo.get_deployments(environment="pr_1")[0]
    assert pr_deployment.sha == sandbox.head(SHOP, "more")
    statuses = sandbox.state.repositories[SHOP].deployments[pr_deployment.id].statuses
    assert [status.state for status in statuses] == ["in_progress", "success"]
