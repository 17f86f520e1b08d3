"""How GitHub writes check runs, check suites and deployments as JSON."""

from mergeplan_sandbox.api import shapes, shapes_pulls
from mergeplan_sandbox.git import repos
from mergeplan_sandbox.state import CheckRun, CheckSuite, Deployment, DeploymentStatus, Json, Repository, State

# Which conclusion of a suite's runs stands for all of them, worst first.
SEVERITY = ("action_required", "timed_out", "failure", "cancelled", "neutral", "skipped", "success")


def latest_runs(runs: list[CheckRun]) -> dict[str, CheckRun]:
    return {run.name: run for run in sorted(runs, key=lambda run: run.id)}


def pulls_at(state: State, repo: Repository, sha: str) -> list[Json]:
    """Return the open pull requests whose head is this commit, without those from forks, as GitHub does."""
    pulls = [pull for pull in repo.pulls if pull.head_sha == sha and pull.state == "open"]
    return [shapes_pulls.minimal_pull(state, repo, pull) for pull in pulls if pull.head_repository == repo.full_name]


def check_run(state: State, repo: Repository, run: CheckRun) -> Json:
    url = f"{shapes.api_url(state, repo)}/check-runs/{run.id}"
    page = f"{shapes.html_url(state, repo)}/runs/{run.id}"
    return {
        "id": run.id,
        "node_id": shapes.node_id("CR", run.id),
        "name": run.name,
        "head_sha": run.head_sha,
        "external_id": run.external_id,
        "url": url,
        "html_url": page,
        "details_url": run.details_url or page,
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": shapes.format_time(run.started_at),
        "completed_at": shapes.format_time(run.completed_at),
        "output": {
            "title": run.title,
            "summary": run.summary,
            "text": run.text,
            "annotations_count": len(run.annotations),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": run.suite_id},
        "app": shapes.app_shape(state, run.author),
        "pull_requests": pulls_at(state, repo, run.head_sha),
    }


def suite_result(repo: Repository, suite: CheckSuite) -> tuple[str, str | None]:
    """Return the status and the conclusion of a suite.

    It is completed when the latest run of each name is; its conclusion is the worst of theirs.
    """
    runs = list(latest_runs([run for run in repo.checks.values() if run.suite_id == suite.id]).values())
    if not runs or any(run.status != "completed" for run in runs):
        return ("in_progress" if any(run.status != "queued" for run in runs) else "queued"), None
    conclusions = {run.conclusion for run in runs}
    return "completed", next((conclusion for conclusion in SEVERITY if conclusion in conclusions), "neutral")


def webhook_suite(state: State, repo: Repository, suite: CheckSuite) -> Json:
    status, conclusion = suite_result(repo, suite)
    branches = repos.list_refs(state.git(repo.full_name))
    commit = repos.read_commit(state.git(repo.full_name), suite.head_sha)
    url = f"{shapes.api_url(state, repo)}/check-suites/{suite.id}"
    return {
        "id": suite.id,
        "node_id": shapes.node_id("CS", suite.id),
        "head_branch": next(
            (ref.removeprefix("refs/heads/") for ref, sha in branches.items() if sha == suite.head_sha), None
        ),
        "head_sha": suite.head_sha,
        "status": status,
        "conclusion": conclusion,
        "url": url,
        "before": commit.parents[0] if commit.parents else repos.ZERO_SHA,
        "after": suite.head_sha,
        "pull_requests": pulls_at(state, repo, suite.head_sha),
        "app": shapes.app_shape(state, suite.author),
        "created_at": shapes.format_time(suite.created_at),
        "updated_at": shapes.format_time(suite.updated_at),
        "rerequestable": True,
        "runs_rerequestable": True,
        "latest_check_runs_count": sum(run.suite_id == suite.id for run in repo.checks.values()),
        "check_runs_url": f"{url}/check-runs",
        "head_commit": {
            "id": commit.sha,
            "tree_id": commit.tree,
            "message": commit.message,
            "timestamp": commit.committer_date.isoformat(),
            "author": {"name": commit.author.name, "email": commit.author.email},
            "committer": {"name": commit.committer.name, "email": commit.committer.email},
        },
    }


def webhook_run(state: State, repo: Repository, run: CheckRun) -> Json:
    """Return a check run as webhooks embed it: with its suite, without the count of the suite's runs."""
    suite = webhook_suite(state, repo, repo.suites[run.suite_id])
    left_out = ("latest_check_runs_count", "check_runs_url", "head_commit", "rerequestable", "runs_rerequestable")
    return check_run(state, repo, run) | {"check_suite": {key: suite[key] for key in suite if key not in left_out}}


def deployment_shape(state: State, repo: Repository, item: Deployment) -> Json:
    url = f"{shapes.api_url(state, repo)}/deployments/{item.id}"
    return {
        "url": url,
        "id": item.id,
        "node_id": shapes.node_id("DE", item.id),
        "sha": item.sha,
        "ref": item.ref,
        "task": item.task,
        "payload": item.payload,
        "original_environment": item.environment,
        "environment": item.environment,
        "description": item.description,
        "creator": shapes.user_shape(state, item.author),
        "created_at": shapes.format_time(item.created_at),
        "updated_at": shapes.format_time(item.created_at),
        "statuses_url": f"{url}/statuses",
        "repository_url": shapes.api_url(state, repo),
        "transient_environment": item.transient,
        "production_environment": item.production,
        "performed_via_github_app": None,
    }


def deployment_status(state: State, repo: Repository, parent: Deployment, item: DeploymentStatus) -> Json:
    url = f"{shapes.api_url(state, repo)}/deployments/{parent.id}"
    return {
        "url": f"{url}/statuses/{item.id}",
        "id": item.id,
        "node_id": shapes.node_id("DES", item.id),
        "state": item.state,
        "creator": shapes.user_shape(state, item.author),
        "description": item.description,
        "environment": item.environment,
        "target_url": item.log_url,
        "created_at": shapes.format_time(item.created_at),
        "updated_at": shapes.format_time(item.created_at),
        "deployment_url": url,
        "repository_url": shapes.api_url(state, repo),
        "environment_url": item.environment_url,
        "log_url": item.log_url,
        "performed_via_github_app": None,
    }
