"""REST: check runs and deployments."""

from typing import Any

from mergeplan_sandbox import check_runs
from mergeplan_sandbox.access import DEPLOY, READ, READ_CHECKS, WRITE_CHECKS
from mergeplan_sandbox.api import shapes_checks
from mergeplan_sandbox.api.calls import Call, Router, route
from mergeplan_sandbox.api.limits import ApiError

router = Router("/repos/{owner}/{name}")


@route(router, "POST", "/check-runs", 201)
def create_run(call: Call) -> Any:
    repo = call.repo(WRITE_CHECKS)
    run = check_runs.create_run(call.site, repo, call.caller.login, call.body)
    return shapes_checks.check_run(call.state, repo, run)


@route(router, "PATCH", "/check-runs/{run_id}")
def update_run(call: Call) -> Any:
    repo = call.repo(WRITE_CHECKS)
    run = call.run(repo)
    if run.author != call.caller.login:
        raise ApiError(403, "Invalid app_id: this check run was made by another App")
    check_runs.update_run(call.site, repo, run, call.caller.login, call.body)
    return shapes_checks.check_run(call.state, repo, run)


@route(router, "GET", "/commits/{ref:path}/check-runs")
def runs_of_commit(call: Call) -> Any:
    """Return the check runs on a commit, only the latest of each name unless the query requests all."""
    repo = call.repo(READ_CHECKS)
    sha = call.commit(repo, call.request.path_params["ref"])
    runs = [run for run in repo.checks.values() if run.head_sha == sha]
    if name := call.query("check_name"):
        runs = [run for run in runs if run.name == name]
    if call.query("filter", "latest") == "latest":
        runs = list(shapes_checks.latest_runs(runs).values())
    shown = [shapes_checks.check_run(call.state, repo, run) for run in reversed(runs)]
    return call.page(shown, key="check_runs")


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


@route(router, "POST", "/deployments/{deployment_id}/statuses", 201)
def create_deployment_status(call: Call) -> Any:
    repo = call.repo(DEPLOY)
    parent = call.deployment(repo)
    item = check_runs.deployment_status(call.site, parent, call.caller.login, call.body)
    return shapes_checks.deployment_status(call.state, repo, parent, item)
