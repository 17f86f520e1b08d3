"""Every answer of the REST API is what GitHub's published types say."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from github import Auth, GithubIntegration
from githubkit_schemas.latest import models
from pydantic import BaseModel

from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP

RUN = {
    "name": "plan",
    "status": "completed",
    "conclusion": "success",
    "output": {
        "title": "Fine",
        "summary": "All is well",
        "annotations": [
            {"path": "a.sql", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "Here"}
        ],
    },
}


@pytest.fixture(name="things")
def _things(sandbox: Sandbox, api: httpx.Client, number: int) -> dict[str, Any]:
    """One of everything, and how to name it in a path."""
    sha = sandbox.pull_request(SHOP, number).head_sha
    comment = sandbox.comment(SHOP, number, "Hello", author="rea")
    sandbox.react(SHOP, comment, "eyes", author="ann")
    sandbox.label(SHOP, number, "urgent", author="ann")
    sandbox.review(SHOP, number, "APPROVED", author="ann")
    run = api.post("/check-runs", json=RUN | {"head_sha": sha}).json()
    deployment = api.post("/deployments", json={"ref": "more", "environment": "pr_1"}).json()["id"]
    api.post(f"/deployments/{deployment}/statuses", json={"state": "success"})
    return {
        "number": number,
        "sha": sha,
        "comment": comment,
        "run": run["id"],
        "deployment": deployment,
    }


ANSWERS: list[tuple[str, type[BaseModel], str | None]] = [
    ("", models.FullRepository, None),
    ("/git/ref/heads/main", models.GitRef, None),
    ("/git/matching-refs/heads/m", models.GitRef, "list"),
    ("/commits/{sha}/check-runs", models.CheckRun, "check_runs"),
    ("/pulls", models.PullRequestSimple, "list"),
    ("/pulls/{number}", models.PullRequest, None),
    ("/pulls/{number}/files", models.DiffEntry, "list"),
    ("/pulls/{number}/reviews", models.PullRequestReview, "list"),
    ("/issues/{number}", models.Issue, None),
    ("/issues/{number}/comments", models.IssueComment, "list"),
    ("/issues/comments/{comment}", models.IssueComment, None),
    ("/deployments", models.Deployment, "list"),
    ("/collaborators/ann/permission", models.RepositoryCollaboratorPermission, None),
]


def validate(model: type[BaseModel], answer: httpx.Response, key: str | None) -> None:
    """The answer, or each thing in its list, is of that type."""
    assert answer.status_code in (200, 201, 202), answer.text
    shape = answer.json()
    for item in [shape] if key is None else shape if key == "list" else shape[key]:
        model.model_validate(item)


def test_every_answer_is_of_github_s_type(things: dict[str, Any], api: httpx.Client) -> None:
    for path, model, key in ANSWERS:
        validate(model, api.get(path.format(**things)), key)


WRITES: list[tuple[str, str, dict[str, Any], type[BaseModel]]] = [
    ("POST", "/issues/{number}/comments", {"body": "Hi"}, models.IssueComment),
    ("PATCH", "/issues/comments/{comment}", {"body": "Hi again"}, models.IssueComment),
    ("POST", "/issues/comments/{comment}/reactions", {"content": "rocket"}, models.Reaction),
    ("PATCH", "/check-runs/{run}", {"status": "in_progress"}, models.CheckRun),
    ("POST", "/deployments", {"ref": "main"}, models.Deployment),
    ("POST", "/deployments/{deployment}/statuses", {"state": "failure"}, models.DeploymentStatus),
    ("PUT", "/pulls/{number}/merge", {"sha": "{sha}"}, models.PullRequestMergeResult),
]


def test_every_answer_to_a_write_is_of_github_s_type(things: dict[str, Any], api: httpx.Client) -> None:
    for method, path, body, model in WRITES:
        filled = {name: value.format(**things) for name, value in body.items()}
        validate(model, api.request(method, path.format(**things), json=filled), None)


def test_the_event_of_a_merge_is_of_githubs_type(sandbox: Sandbox, api: httpx.Client, number: int) -> None:
    sha = sandbox.merge(SHOP, number, author="ann")

    answer = api.get(f"/issues/{number}/events")
    validate(models.IssueEvent, answer, "list")
    assert [(event["event"], event["commit_id"]) for event in answer.json()] == [("merged", sha)]


def test_a_team_s_membership_is_of_github_s_type(sandbox: Sandbox, api: httpx.Client) -> None:
    sandbox.set_team("ann/data", ["rea"])
    url, token = f"{sandbox.url}/orgs/ann/teams/data/memberships", sandbox.installation_token(SHOP)

    validate(models.TeamMembership, httpx.get(f"{url}/rea", headers={"Authorization": f"Bearer {token}"}), None)
    assert httpx.get(f"{url}/ann", headers={"Authorization": f"Bearer {token}"}).status_code == 404


def test_the_app_s_own_answers_are_of_github_s_types(sandbox: Sandbox, app: GithubIntegration) -> None:
    sandbox.wait_idle()
    number = sandbox.deliveries[-1].id
    installation = app.get_repo_installation(*SHOP.split("/")).id
    headers = {"Authorization": f"Bearer {Auth.AppAuth(sandbox.app_id, sandbox.app_private_key).create_jwt()}"}
    with httpx.Client(base_url=sandbox.url, headers=headers) as jwt:
        validate(models.Integration, jwt.get("/app"), None)
        validate(models.Installation, jwt.get("/app/installations"), "list")
        validate(models.Installation, jwt.get(f"/repos/{SHOP}/installation"), None)
        validate(models.InstallationToken, jwt.post(f"/app/installations/{installation}/access_tokens"), None)
        validate(models.HookDeliveryItem, jwt.get("/app/hook/deliveries"), "list")
        validate(models.HookDelivery, jwt.get(f"/app/hook/deliveries/{number}"), None)


def test_the_app_of_a_manifest_is_of_github_s_type(sandbox: Sandbox) -> None:
    manifest = {"url": "https://a.example", "hook_attributes": {"url": "https://a.example/webhook"}}
    manifest |= {"redirect_url": "http://127.0.0.1:1/callback", "default_events": ["push"]}
    form = {"manifest": json.dumps(manifest)}
    code = httpx.post(f"{sandbox.url}/settings/apps/new", data=form).headers["location"].partition("code=")[2]

    answer = httpx.post(f"{sandbox.url}/app-manifests/{code}/conversions")
    validate(models.AppManifestsCodeConversionsPostResponse201, answer, None)


@pytest.mark.parametrize(
    ("path", "model", "key"),
    [
        ("/user", models.PublicUser, None),
        ("/rate_limit", models.RateLimitOverview, None),
    ],
)
def test_users_are_of_github_s_types(
    sandbox: Sandbox, path: str, model: type[BaseModel], key: str | None, github: Callable[..., Any]
) -> None:
    headers = {"Authorization": f"token {sandbox.add_user('ann')}"}

    validate(model, httpx.get(sandbox.url + path, headers=headers), key)
