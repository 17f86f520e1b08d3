"""What can happen to checks and deployments."""

from dataclasses import fields
from datetime import datetime

from mergeplan_sandbox import webhooks
from mergeplan_sandbox.api.limits import (
    DEPLOYMENT_STATES,
    STATUS_DESCRIPTION,
    ApiError,
    check_length,
    check_run_fields,
    check_sha,
    field_error,
    one_of,
    require_text,
)
from mergeplan_sandbox.git import repos
from mergeplan_sandbox.state import (
    Action,
    Annotation,
    CheckRun,
    CheckSuite,
    Deployment,
    DeploymentStatus,
    Json,
    Repository,
    now,
)
from mergeplan_sandbox.webhooks import Site


def create_run(site: Site, repo: Repository, author: str, body: Json) -> CheckRun:
    """Create a check run on a commit; the runs of one App on one commit form a suite."""
    name, sha = require_text("CheckRun", body, "name"), require_text("CheckRun", body, "head_sha")
    check_sha("CheckRun", "head_sha", sha)
    check_run_fields(body)
    if repos.find_tip(site.state.git(repo.full_name), sha) is None:
        raise field_error("CheckRun", "head_sha", f"No commit found for SHA: {sha}")
    run = CheckRun(site.state.next_id(), _get_suite(site, repo, sha, author).id, name, sha, author)
    _set_fields(run, body)
    repo.checks[run.id] = run
    webhooks.check_run(site, repo, run, "created", author)
    if run.status == "completed":
        webhooks.check_run(site, repo, run, "completed", author)
    return run


def _get_suite(site: Site, repo: Repository, sha: str, author: str) -> CheckSuite:
    for suite in repo.suites.values():
        if (suite.head_sha, suite.author) == (sha, author):
            suite.updated_at = now()
            return suite
    suite = CheckSuite(site.state.next_id(), sha, author, now(), now())
    repo.suites[suite.id] = suite
    return suite


def update_run(site: Site, repo: Repository, run: CheckRun, sender: str, body: Json) -> None:
    """Change a check run; annotations are added to the existing ones, all other fields are replaced."""
    check_run_fields(body)
    was = run.status
    _set_fields(run, body)
    if run.status == "completed" and was != "completed":
        webhooks.check_run(site, repo, run, "completed", sender)


def _set_fields(run: CheckRun, body: Json) -> None:
    for field in ("name", "external_id", "details_url", "status"):
        if body.get(field) is not None:
            setattr(run, field, body[field])
    for field in ("started_at", "completed_at"):
        if body.get(field) is not None:
            setattr(run, field, datetime.fromisoformat(body[field]))
    if body.get("conclusion") is not None:
        run.status, run.conclusion = "completed", body["conclusion"]
    if run.status != "completed":
        run.conclusion = run.completed_at = None
    else:
        run.completed_at = run.completed_at or now()
    run.started_at = run.started_at or (now() if run.status != "queued" else None)
    if body.get("actions") is not None:
        run.actions = [Action(item["label"], item["description"], item["identifier"]) for item in body["actions"]]
    if output := body.get("output"):
        run.title, run.summary = output.get("title") or run.title, output["summary"]
        run.text = output.get("text") if "text" in output else run.text
        names = [field.name for field in fields(Annotation)]
        run.annotations += [
            Annotation(**{name: item.get(name) for name in names}) for item in output.get("annotations") or []
        ]


def rerequest_run(site: Site, repo: Repository, run: CheckRun, sender: str) -> None:
    """Request the check again: the App gets a webhook, and itself creates a new run or updates this one."""
    webhooks.check_run(site, repo, run, "rerequested", sender)


def rerequest_suite(site: Site, repo: Repository, suite: CheckSuite, sender: str) -> None:
    webhooks.check_suite(site, repo, suite, "rerequested", sender)


def press_button(site: Site, repo: Repository, run: CheckRun, identifier: str, sender: str) -> None:
    if run.status != "completed" or identifier not in [action.identifier for action in run.actions]:
        raise ApiError(422, f"This check has no button {identifier!r}")
    webhooks.check_run(site, repo, run, "requested_action", sender, identifier)


def create_deployment(site: Site, repo: Repository, author: str, body: Json) -> Deployment:
    ref = require_text("Deployment", body, "ref")
    sha = repos.find_tip(site.state.git(repo.full_name), ref)
    if sha is None:
        raise field_error("Deployment", "ref", f"No ref found for: {ref}")
    item = Deployment(
        id=site.state.next_id(),
        sha=sha,
        ref=ref,
        task=body.get("task") or "deploy",
        environment=body.get("environment") or "production",
        description=body.get("description"),
        payload=body.get("payload") or {},
        author=author,
        created_at=now(),
        transient=bool(body.get("transient_environment")),
        production=bool(body.get("production_environment", body.get("environment") in (None, "production"))),
    )
    repo.deployments[item.id] = item
    return item


def deployment_status(site: Site, deployment: Deployment, author: str, body: Json) -> DeploymentStatus:
    one_of("DeploymentStatus", "state", body.get("state"), DEPLOYMENT_STATES)
    check_length("DeploymentStatus", "description", body.get("description"), STATUS_DESCRIPTION)
    item = DeploymentStatus(
        id=site.state.next_id(),
        state=body["state"],
        description=body.get("description") or "",
        environment=body.get("environment") or deployment.environment,
        environment_url=body.get("environment_url") or "",
        log_url=body.get("log_url") or body.get("target_url") or "",
        author=author,
        created_at=now(),
    )
    deployment.statuses.append(item)
    return item
