"""Who may do what: tokens, the App's JWT, permissions."""

from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from github import Auth, Github, GithubException, GithubIntegration, UnknownObjectException

from mergeplan_sandbox import access
from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.server import Sandbox
from mergeplan_sandbox.state import Role, now

from .conftest import SHOP

Connect = Callable[[str], Github]


def test_without_a_token_nothing_is_said(sandbox: Sandbox) -> None:
    answer = httpx.get(f"{sandbox.url}/repos/{SHOP}")

    assert answer.status_code == 401
    assert answer.json()["message"] == "Requires authentication"


def test_an_unknown_token_is_bad_credentials(sandbox: Sandbox) -> None:
    answer = httpx.get(f"{sandbox.url}/repos/{SHOP}", headers={"Authorization": "token ghp_nothing"})

    assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")


def test_an_app_s_token_ends_after_an_hour(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    token = sandbox.installation_token(SHOP)
    monkeypatch.setattr(access, "now", lambda: now() + timedelta(hours=1, seconds=1))

    with pytest.raises(ApiError, match="Bad credentials"):
        access.caller_of(sandbox.state, f"token {token}")


def test_the_app_gets_an_installation_token_with_its_key(app: GithubIntegration, number: int) -> None:
    installation = app.get_repo_installation("ann", "shop")

    with app.get_github_for_installation(installation.id) as bot:
        comment = bot.get_repo(SHOP).get_issue(number).create_comment("Hello")

    assert (comment.user.login, comment.user.type) == ("mergeplan[bot]", "Bot")


def test_another_key_is_not_the_app(sandbox: Sandbox) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    token = Auth.AppAuth(sandbox.app_id, pem.decode()).create_jwt()

    with pytest.raises(ApiError, match="could not be decoded"):
        access.caller_of(sandbox.state, f"Bearer {token}")


def test_the_app_s_jwt_opens_no_repository(sandbox: Sandbox) -> None:
    token = Auth.AppAuth(sandbox.app_id, sandbox.app_private_key).create_jwt()

    answer = httpx.get(f"{sandbox.url}/repos/{SHOP}", headers={"Authorization": f"Bearer {token}"})

    assert answer.status_code == 403


def test_a_token_can_be_narrowed(sandbox: Sandbox, app: GithubIntegration, github: Connect, number: int) -> None:
    installation = app.get_repo_installation("ann", "shop").id
    narrow = app.get_access_token(installation, permissions={"contents": "read"})
    pull = github(narrow.token).get_repo(SHOP).get_pull(number)

    with pytest.raises(GithubException, match="not accessible by integration"):
        pull.create_issue_comment("Hello")


def test_an_installation_s_token_opens_no_other_private_repository(sandbox: Sandbox, bot: Github) -> None:
    sandbox.create_repository("ann/secret", {"a": "1"}, private=True)

    with pytest.raises(UnknownObjectException):
        bot.get_repo("ann/secret")


def test_a_reader_comments_but_does_not_merge(sandbox: Sandbox, github: Connect, number: int) -> None:
    pull = github(sandbox.add_user("rea")).get_repo(SHOP).get_pull(number)

    pull.create_issue_comment("Nice")

    with pytest.raises(GithubException, match="Must have write access") as refused:
        pull.merge()
    assert refused.value.status == 403


def test_a_stranger_does_not_see_a_private_repository(sandbox: Sandbox, github: Connect) -> None:
    sandbox.create_repository("ann/secret", {"a": "1"}, private=True)

    with pytest.raises(UnknownObjectException):
        github(sandbox.add_user("rea")).get_repo("ann/secret")


def test_only_apps_write_checks(sandbox: Sandbox, github: Connect) -> None:
    repo = github(sandbox.add_user("ann")).get_repo(SHOP)

    with pytest.raises(GithubException, match="authenticate via a GitHub App") as refused:
        repo.create_check_run("plan", sandbox.head(SHOP))
    assert refused.value.status == 403


def test_a_workflow_s_token_writes_checks_in_its_own_repository(sandbox: Sandbox, github: Connect) -> None:
    repo = github(sandbox.actions_token(SHOP)).get_repo(SHOP)

    run = repo.create_check_run("plan", sandbox.head(SHOP))

    assert run.app.slug == "github-actions"


def test_a_permission_is_told_in_four_words_and_as_a_role(sandbox: Sandbox, bot: Github) -> None:
    repo = bot.get_repo(SHOP)
    words: list[tuple[Role, str]] = [("admin", "admin"), ("maintain", "write"), ("triage", "read"), ("none", "none")]

    for role, permission in words:
        sandbox.set_permission(SHOP, "rea", role)
        assert repo.get_collaborator_permission("rea") == permission
        assert repo.get_collaborator_role_name("rea") == role


def test_a_person_may_do_no_more_in_python_than_over_http(sandbox: Sandbox, number: int) -> None:
    with pytest.raises(ApiError, match="Must have write access"):
        sandbox.merge(SHOP, number, author="rea")
    with pytest.raises(ApiError, match="no user 'nobody'"):
        sandbox.comment(SHOP, number, "Hello", author="nobody")


def test_a_suspended_installation_is_403_and_tells_so_to_the_app(sandbox: Sandbox, app: GithubIntegration) -> None:
    token, number = sandbox.installation_token(SHOP), app.get_repo_installation("ann", "shop").id
    sandbox.suspend_app("ann")

    assert httpx.get(f"{sandbox.url}/repos/{SHOP}", headers={"Authorization": f"token {token}"}).status_code == 403
    with pytest.raises(GithubException, match="suspended") as refused:
        app.get_access_token(number)
    assert refused.value.status == 403
    assert app.get_app_installation(number).suspended_at
    sandbox.suspend_app("ann", is_suspended=False)
    assert httpx.get(f"{sandbox.url}/repos/{SHOP}", headers={"Authorization": f"token {token}"}).status_code == 200


def test_an_app_that_is_installed_again_has_another_installation(sandbox: Sandbox, app: GithubIntegration) -> None:
    token, number = sandbox.installation_token(SHOP), app.get_repo_installation("ann", "shop").id
    sandbox.uninstall_app("ann")
    again = sandbox.install_app(SHOP)

    assert again != number
    assert httpx.get(f"{sandbox.url}/repos/{SHOP}", headers={"Authorization": f"token {token}"}).status_code == 401
    with pytest.raises(UnknownObjectException):
        app.get_access_token(number)


def test_graphql_tells_who_edited_a_comment(sandbox: Sandbox, bot: Github, number: int) -> None:
    comment = sandbox.comment(SHOP, number, "Hello", author="rea")
    node = bot.get_repo(SHOP).get_issue(number).get_comment(comment).node_id
    asked = "lastEditedAt editor { login }"

    assert bot.requester.graphql_node(node, asked, "IssueComment")[1]["data"]["node"]["lastEditedAt"] is None
    sandbox.edit_comment(SHOP, comment, "Hello you", author="ann")
    assert bot.requester.graphql_node(node, asked, "IssueComment")[1]["data"]["node"]["editor"] == {"login": "ann"}
