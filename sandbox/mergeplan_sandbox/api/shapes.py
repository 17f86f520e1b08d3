"""How GitHub writes users, repositories and Apps as JSON; the other `shapes_*` build on it."""

from datetime import datetime

from mergeplan_sandbox.state import (
    APP_EVENTS,
    APP_PERMISSIONS,
    Installation,
    Json,
    Repository,
    State,
    User,
    includes_role,
)

# The addresses that GitHub lists in every repository, below the repository's own API address.
REPOSITORY_LINKS = {
    "archive": "/{archive_format}{/ref}",
    "assignees": "/assignees{/user}",
    "blobs": "/git/blobs{/sha}",
    "branches": "/branches{/branch}",
    "collaborators": "/collaborators{/collaborator}",
    "comments": "/comments{/number}",
    "commits": "/commits{/sha}",
    "compare": "/compare/{base}...{head}",
    "contents": "/contents/{+path}",
    "contributors": "/contributors",
    "deployments": "/deployments",
    "downloads": "/downloads",
    "events": "/events",
    "forks": "/forks",
    "git_commits": "/git/commits{/sha}",
    "git_refs": "/git/refs{/sha}",
    "git_tags": "/git/tags{/sha}",
    "hooks": "/hooks",
    "issue_comment": "/issues/comments{/number}",
    "issue_events": "/issues/events{/number}",
    "issues": "/issues{/number}",
    "keys": "/keys{/key_id}",
    "labels": "/labels{/name}",
    "languages": "/languages",
    "merges": "/merges",
    "milestones": "/milestones{/number}",
    "notifications": "/notifications{?since,all,participating}",
    "pulls": "/pulls{/number}",
    "releases": "/releases{/id}",
    "stargazers": "/stargazers",
    "statuses": "/statuses/{sha}",
    "subscribers": "/subscribers",
    "subscription": "/subscription",
    "tags": "/tags",
    "teams": "/teams",
    "trees": "/git/trees{/sha}",
}
USER_LINKS = {
    "followers": "/followers",
    "following": "/following{/other_user}",
    "gists": "/gists{/gist_id}",
    "starred": "/starred{/owner}{/repo}",
    "subscriptions": "/subscriptions",
    "organizations": "/orgs",
    "repos": "/repos",
    "events": "/events{/privacy}",
    "received_events": "/received_events",
}


def format_time(moment: datetime | None) -> str | None:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


def node_id(kind: str, number: int) -> str:
    """Return the id that GraphQL uses."""
    return f"{kind}_{number}"


def api_url(state: State, repository: Repository) -> str:
    return f"{state.base_url}/repos/{repository.full_name}"


def html_url(state: State, repository: Repository) -> str:
    return f"{state.base_url}/{repository.full_name}"


def user_shape(state: State, login: str) -> Json:
    """Return a user, bot or organization as other objects embed it."""
    person = state.users.get(login) or User(0, login, login, f"{login}@localhost")
    api = f"{state.base_url}/users/{login}"
    return {
        "login": login,
        "id": person.id,
        "node_id": node_id("U", person.id),
        "avatar_url": f"{state.base_url}/_sandbox/avatar/{login}",
        "gravatar_id": "",
        "url": api,
        "html_url": f"{state.base_url}/{login}",
        **{f"{name}_url": api + path for name, path in USER_LINKS.items()},
        "type": person.kind,
        "user_view_type": "public",
        "site_admin": False,
    }


def author_shape(state: State, login: str) -> Json | None:
    """Return the author of something; None if the account was deleted since."""
    return None if login in state.gone else user_shape(state, login)


def full_user(state: State, login: str) -> Json:
    person = state.users[login]
    details = dict.fromkeys(["company", "location", "hireable", "bio", "twitter_username", "notification_email"])
    counts = dict.fromkeys(["public_repos", "public_gists", "followers", "following"], 0)
    dates = {"created_at": format_time(state.app.created_at), "updated_at": format_time(state.app.created_at)}
    return (
        user_shape(state, login) | {"name": person.name, "email": person.email, "blog": ""} | details | counts | dates
    )


def repository(state: State, repo: Repository, login: str | None = None) -> Json:
    api, page = api_url(state, repo), html_url(state, repo)
    open_issues = sum(issue.state == "open" for issue in repo.issues.values())
    forks = sum(other_repo.fork_of == repo.full_name for other_repo in state.repositories.values())
    shape: Json = {
        "id": repo.id,
        "node_id": node_id("R", repo.id),
        "name": repo.name,
        "full_name": repo.full_name,
        "owner": user_shape(state, repo.owner),
        "private": repo.private,
        "visibility": "private" if repo.private else "public",
        "html_url": page,
        "description": repo.description,
        "fork": repo.fork_of is not None,
        "url": api,
        **{f"{name}_url": api + path for name, path in REPOSITORY_LINKS.items()},
        "clone_url": f"{page}.git",
        "git_url": f"{page}.git",
        "ssh_url": f"{page}.git",
        "svn_url": page,
        **dict.fromkeys(["mirror_url", "homepage", "language", "license"]),
        **dict.fromkeys(["stargazers_count", "watchers_count", "watchers", "size"], 0),
        "forks_count": forks,
        "forks": forks,
        "open_issues_count": open_issues,
        "open_issues": open_issues,
        "default_branch": repo.default_branch,
        "topics": [],
        **dict.fromkeys(["has_issues", "has_projects", "has_downloads"], True),
        **dict.fromkeys(["has_wiki", "has_pages", "has_discussions", "is_template"], False),
        **dict.fromkeys(["archived", "disabled", "web_commit_signoff_required"], False),
        "allow_forking": True,
        "created_at": format_time(repo.created_at),
        "updated_at": format_time(repo.pushed_at),
        "pushed_at": format_time(repo.pushed_at),
    }
    return shape | ({"permissions": permission_shape(state, repo, login)} if login else {})


def full_repository(state: State, repo: Repository, login: str | None) -> Json:
    shape = repository(state, repo, login) | {
        "subscribers_count": 0,
        "network_count": 0,
        "delete_branch_on_merge": False,
    }
    shape |= dict.fromkeys(["allow_merge_commit", "allow_squash_merge", "allow_rebase_merge"], True)
    if repo.fork_of:
        parent = repository(state, state.repositories[repo.fork_of])
        shape |= {"parent": parent, "source": parent}
    return shape


def permission_shape(state: State, repo: Repository, login: str) -> dict[str, bool]:
    """Return the login's permissions in GitHub's five words."""
    role = state.role(repo, login)
    return {
        "admin": role == "admin",
        "maintain": includes_role(role, "maintain"),
        "push": includes_role(role, "write"),
        "triage": includes_role(role, "triage"),
        "pull": includes_role(role, "read"),
    }


def collaborator_permission(state: State, repo: Repository, login: str) -> Json:
    """Return a person's permission.

    `permission` has four words only (maintain is write, triage is read); `role_name` has all.
    """
    role = state.role(repo, login)
    legacy = {"maintain": "write", "triage": "read"}.get(role, role)
    person = user_shape(state, login) | {"permissions": permission_shape(state, repo, login), "role_name": role}
    return {"permission": legacy, "role_name": role, "user": person}


def app_shape(state: State, bot_login: str | None = None) -> Json:
    """Return the App behind a bot (Actions is one too), as checks and comments embed it."""
    login = bot_login or state.app.bot_login
    slug = login.removesuffix("[bot]")
    number = state.app.id if login == state.app.bot_login else state.users[login].id
    page = f"{state.base_url}/apps/{slug}"
    return {
        "id": number,
        "slug": slug,
        "node_id": node_id("A", number),
        "client_id": f"Iv1.{number}",
        "owner": user_shape(state, login),
        "name": slug,
        "description": "",
        "external_url": page,
        "html_url": page,
        "created_at": format_time(state.app.created_at),
        "updated_at": format_time(state.app.created_at),
        "permissions": APP_PERMISSIONS,
        "events": list(APP_EVENTS),
    }


def installation_shape(state: State, item: Installation) -> Json:
    account = state.users[item.account]
    return {
        "id": item.id,
        "account": user_shape(state, item.account),
        "repository_selection": "selected",
        "access_tokens_url": f"{state.base_url}/app/installations/{item.id}/access_tokens",
        "repositories_url": f"{state.base_url}/installation/repositories",
        "html_url": f"{state.base_url}/settings/installations/{item.id}",
        "app_id": state.app.id,
        "client_id": f"Iv1.{state.app.id}",
        "app_slug": state.app.slug,
        "target_id": account.id,
        "target_type": account.kind,
        "permissions": APP_PERMISSIONS,
        "events": list(APP_EVENTS),
        "created_at": format_time(item.created_at),
        "updated_at": format_time(item.created_at),
        "single_file_name": None,
        "suspended_by": user_shape(state, item.account) if item.suspended_at else None,
        "suspended_at": format_time(item.suspended_at) if item.suspended_at else None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
    }


def author_association(state: State, repo: Repository, login: str) -> str:
    """Return OWNER, COLLABORATOR or NONE, which does not tell the permission."""
    if login == repo.owner:
        return "OWNER"
    return "COLLABORATOR" if login in repo.permissions else "NONE"
