"""REST: check runs, check suites, commit statuses, deployments."""

from typing import Any

from mergeplan.bot.sandbox import check_runs
from mergeplan.bot.sandbox.access import DEPLOY, PUSH, READ, READ_CHECKS, WRITE_CHECKS, WRITE_STATUS
from mergeplan.bot.sandbox.api import shapes_checks
from mergeplan.bot.sandbox.api.calls import Call, Router, find_or_404, route
from mergeplan.bot.sandbox.api.limits import ApiError
from mergeplan.bot.sandbox.state import CheckRun, Repository

router = Router("/repos/{owner}/{name}")


@route(router, "POST", "/check-runs", 201)
def create_run(call: Call) -> Any:
    repo = call.repo(WRITE_CHECKS)
    run = check_runs.create_run(call.site, repo, call.caller.login, call.body)
    return shapes_checks.check_run(call.state, repo, run)


@route(router, "GET", "/check-runs/{run_id}")
def get_run(call: Call) -> Any:
    repo = call.repo(READ_CHECKS)
    return shapes_checks.check_run(call.state, repo, call.run(repo))


@route(router, "PATCH", "/check-runs/{run_id}")
def update_run(call: Call) -> Any:
    repo = call.repo(WRITE_CHECKS)
    run = call.run(repo)
    if run.author != call.caller.login:
        raise ApiError(403, "Invalid app_id: this check run was made by another App")
    check_runs.update_run(call.site, repo, run, call.caller.login, call.body)
    return shapes_checks.check_run(call.state, repo, run)


@route(router, "GET", "/check-runs/{run_id}/annotations")
def list_annotations(call: Call) -> Any:
    repo = call.repo(READ_CHECKS)
    run = call.run(repo)
    return call.page([shapes_checks.annotation_shape(call.state, repo, run, item) for item in run.annotations])


@route(router, "POST", "/check-runs/{run_id}/rerequest", 201)
def rerequest_run(call: Call) -> Any:
    repo = call.repo(PUSH)
    check_runs.rerequest_run(call.site, repo, call.run(repo), call.caller.login)
    return {}


def _list_runs(call: Call, repo: Repository, runs: list[CheckRun]) -> Any:
    name, status = call.query("check_name"), call.query("status")
    found_runs = [run for run in runs if name in ("", run.name) and status in ("", run.status)]
    if call.query("filter", "latest") == "latest":
        found_runs = list(shapes_checks.latest_runs(found_runs).values())
    shown = [shapes_checks.check_run(call.state, repo, run) for run in reversed(found_runs)]
    return call.page(shown, key="check_runs")


@route(router, "GET", "/commits/{ref:path}/check-runs")
def runs_of_commit(call: Call) -> Any:
    """Return the check runs on a commit, only the latest of each name unless the query requests all."""
    repo = call.repo(READ_CHECKS)
    sha = call.commit(repo, call.request.path_params["ref"])
    return _list_runs(call, repo, [run for run in repo.checks.values() if run.head_sha == sha])


@route(router, "GET", "/commits/{ref:path}/check-suites")
def suites_of_commit(call: Call) -> Any:
    repo = call.repo(READ_CHECKS)
    sha = call.commit(repo, call.request.path_params["ref"])
    suites = [suite for suite in repo.suites.values() if suite.head_sha == sha]
    return call.page([shapes_checks.check_suite(call.state, repo, suite) for suite in suites], key="check_suites")


@route(router, "GET", "/check-suites/{suite_id}")
def get_suite(call: Call) -> Any:
    repo = call.repo(READ_CHECKS)
    return shapes_checks.check_suite(call.state, repo, find_or_404(repo.suites, call.request.path_params["suite_id"]))


@route(router, "GET", "/check-suites/{suite_id}/check-runs")
def runs_of_suite(call: Call) -> Any:
    repo = call.repo(READ_CHECKS)
    suite = find_or_404(repo.suites, call.request.path_params["suite_id"])
    return _list_runs(call, repo, [run for run in repo.checks.values() if run.suite_id == suite.id])


@route(router, "POST", "/check-suites/{suite_id}/rerequest", 201)
def rerequest_suite(call: Call) -> Any:
    repo = call.repo(PUSH)
    suite = find_or_404(repo.suites, call.request.path_params["suite_id"])
    check_runs.rerequest_suite(call.site, repo, suite, call.caller.login)
    return {}


@route(router, "POST", "/statuses/{sha}", 201)
def create_status(call: Call) -> Any:
    repo = call.repo(WRITE_STATUS)
    sha = call.commit(repo, call.request.path_params["sha"])
    return shapes_checks.status(
        call.state, repo, check_runs.create_status(call.site, repo, sha, call.caller.login, call.body)
    )


@route(router, "GET", "/commits/{ref:path}/statuses")
def list_statuses(call: Call) -> Any:
    """Return the commit statuses, newest first."""
    repo = call.repo(READ)
    sha = call.commit(repo, call.request.path_params["ref"])
    items = [item for item in repo.statuses if item.sha == sha]
    return call.page([shapes_checks.status(call.state, repo, item) for item in reversed(items)])


@route(router, "GET", "/commits/{ref:path}/status")
def combined_status(call: Call) -> Any:
    repo = call.repo(READ)
    return shapes_checks.status_summary(call.state, repo, call.commit(repo, call.request.path_params["ref"]))


@route(router, "GET", "/deployments")
def list_deployments(call: Call) -> Any:
    """Return the deployments by sha, ref, task and environment, newest first."""
    repo = call.repo(READ)
    filters = {field: call.query(field) for field in ("sha", "ref", "task", "environment") if call.query(field)}
    items = [
        item
        for item in repo.deployments.values()
        if all(getattr(item, field) == value for field, value in filters.items())
    ]
    return call.page([shapes_checks.deployment_shape(call.state, repo, item) for item in reversed(items)])


@route(router, "POST", "/deployments", 201)
def create_deployment(call: Call) -> Any:
    repo = call.repo(DEPLOY)
    item = check_runs.create_deployment(call.site, repo, call.caller.login, call.body)
    return shapes_checks.deployment_shape(call.state, repo, item)


@route(router, "GET", "/deployments/{deployment_id}")
def get_deployment(call: Call) -> Any:
    repo = call.repo(READ)
    return shapes_checks.deployment_shape(call.state, repo, call.deployment(repo))


@route(router, "GET", "/deployments/{deployment_id}/statuses")
def deployment_statuses(call: Call) -> Any:
    """Return the statuses of a deployment, newest first."""
    repo = call.repo(READ)
    parent = call.deployment(repo)
    shown = [shapes_checks.deployment_status(call.state, repo, parent, item) for item in reversed(parent.statuses)]
    return call.page(shown)


@route(router, "POST", "/deployments/{deployment_id}/statuses", 201)
def create_deployment_status(call: Call) -> Any:
    repo = call.repo(DEPLOY)
    parent = call.deployment(repo)
    item = check_runs.deployment_status(call.site, parent, call.caller.login, call.body)
    return shapes_checks.deployment_status(call.state, repo, parent, item)
