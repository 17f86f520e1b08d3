"""The scene of the sandbox: its people, its repositories, and where the App is installed."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from mergeplan_sandbox import webhooks
from mergeplan_sandbox.access import ACTIONS_LOGIN, READ, Caller, Need, issue_token, require_repository
from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.git import pushes, repos
from mergeplan_sandbox.state import APP_PERMISSIONS, Installation, Repository, Role, User, UserKind, now
from mergeplan_sandbox.webhooks import Site


class Scene:
    """The people, repositories and installations; a change sends the webhooks that GitHub would send."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.state = site.state
        self.faults = site.faults
        for login in (self.state.app.bot_login, ACTIONS_LOGIN):
            self._new_user(login, kind="Bot")

    # --- people and repositories ---

    def add_user(self, login: str, *, name: str = "", email: str = "", organization: bool = False) -> str:
        """Add a user and return a personal token of theirs; adding one again returns another token."""
        with self.state.lock:
            if login not in self.state.users:
                self._new_user(login, name, email, "Organization" if organization else "User")
            return issue_token(self.state, login, "user").value

    def delete_user(self, login: str) -> None:
        """Delete an account: it may do nothing more, and GitHub shows no author for its comments."""
        with self.state.lock:
            self._require_user(login)
            self.state.gone.add(login)
            self.state.tokens = {key: token for key, token in self.state.tokens.items() if token.login != login}
            for repo in self.state.repositories.values():
                repo.permissions.pop(login, None)

    def create_repository(
        self, full_name: str, files: Mapping[str, str] | Path, *, default_branch: str = "main", private: bool = False
    ) -> None:
        """Create `owner/name` with one commit of those files; add a missing owner, who becomes its admin."""
        with self.state.lock:
            repo = self._new_repository(full_name, default_branch, private=private)
            folder = self.state.git(full_name)
            repos.create_repository(folder, default_branch)
            content = _files_of(files) if isinstance(files, Path) else files
            repos.commit_files(
                folder, default_branch, content, "First commit", pushes.find_person(self.state, repo.owner), None
            )

    def adopt_repositories(self) -> None:
        """Load the repositories that an earlier sandbox left in the folder; only their git data was stored."""
        with self.state.lock:
            for folder in sorted(self.state.folder.glob("*/*.git")):
                branch = repos.git(folder, "symbolic-ref", "--short", "HEAD").strip()
                self._new_repository(f"{folder.parent.name}/{folder.stem}", branch, private=False)

    def fork(self, repository: str, login: str) -> str:
        """Fork the repository to the login and return the fork's full name; commit to it as to any other."""
        with self.state.lock:
            source = self._require_repo(repository, login, READ)
            fork = self._new_repository(f"{login}/{source.name}", source.default_branch, private=source.private)
            fork.fork_of = source.full_name
            repos.clone_repository(self.state.git(repository), self.state.git(fork.full_name), fork.default_branch)
            return fork.full_name

    def move_repository(self, repository: str, full_name: str) -> None:
        """Rename a repository, or transfer it to another owner: the old name redirects until another one takes it.

        The App keeps a renamed repository; at a new owner it has to be installed. Neither sends a webhook to an App
        that does not subscribe to `repository`.
        """
        with self.state.lock:
            repo = self._find_repository(repository)
            self._check_name(full_name)
            folder = self.state.git(repository)
            if installation := self.state.installations.get(repo.owner):
                installation.repositories.discard(repository)
            del self.state.repositories[repository]
            repo.full_name = full_name
            self.state.repositories[full_name] = repo
            self.state.moved |= {repository: repo.id}
            self.state.git(full_name).parent.mkdir(parents=True, exist_ok=True)
            folder.rename(self.state.git(full_name))
            for other in self.state.repositories.values():
                other.fork_of = full_name if other.fork_of == repository else other.fork_of
                for pull in other.pulls:
                    pull.head_repository = full_name if pull.head_repository == repository else pull.head_repository
            if installation and installation.account == repo.owner:
                installation.repositories.add(full_name)

    def set_permission(self, repository: str, login: str, role: Role) -> None:
        """Set the login's permission, valid from the next call on."""
        with self.state.lock:
            self._require_user(login)
            self._find_repository(repository).permissions[login] = role

    def set_team(self, team: str, members: list[str]) -> None:
        with self.state.lock:
            self.state.teams[team] = {self._require_user(login).login for login in members}

    def require_checks(self, repository: str, branch: str, names: list[str]) -> None:
        """Protect a branch: a pull request into it merges only when these checks have succeeded on its head."""
        with self.state.lock:
            self._find_repository(repository).required_checks[branch] = list(names)

    def install_app(self, repository: str, *, webhook_url: str | None = None, secret: str | None = None) -> int:
        """Install the App there and return the installation's id; URL and secret replace the App's own."""
        with self.state.lock:
            hook, repo = self.state.hook, self._find_repository(repository)
            hook.secret = secret or hook.secret
            if webhook_url not in (None, hook.url):
                hook.url = webhook_url
                webhooks.send_ping(self.site)
            item = self.state.installations.get(repo.owner)
            if item is None:
                item = Installation(self.state.next_id(), repo.owner, now())
                self.state.installations[repo.owner] = item
            if repository not in item.repositories:
                item.repositories.add(repository)
                webhooks.installation_created(self.site, item, repo)
            return item.id

    def installation_token(self, repository: str) -> str:
        """Return a token as the App would get from its installation on that repository."""
        with self.state.lock:
            item = self.state.installation_of(self._find_repository(repository))
            if item is None:
                raise ApiError(404, f"The App is not installed on {repository!r}: install_app first")
            login, rights = self.state.app.bot_login, dict(APP_PERMISSIONS)
            return issue_token(self.state, login, "installation", installation_id=item.id, permissions=rights).value

    def suspend_app(self, owner: str, *, is_suspended: bool = True) -> None:
        with self.state.lock:
            item = self._find_installation(owner)
            item.suspended_at = now() if is_suspended else None
            webhooks.installation_changed(self.site, item, "suspend" if is_suspended else "unsuspend")

    def uninstall_app(self, owner: str) -> None:
        """Remove the App from an account and end its tokens; `install_app` creates an installation with another id."""
        with self.state.lock:
            item = self._find_installation(owner)
            del self.state.installations[owner]
            webhooks.installation_changed(self.site, item, "deleted")

    def remove_from_app(self, repository: str) -> None:
        with self.state.lock:
            repo = self._find_repository(repository)
            item = self._find_installation(repo.owner)
            item.repositories.discard(repository)
            webhooks.repositories_changed(self.site, item, "removed", repo)

    def delete_repository(self, repository: str) -> None:
        """Delete a repository from the API without any webhook."""
        with self.state.lock:
            repo = self._find_repository(repository)
            del self.state.repositories[repository]
            shutil.rmtree(self.state.git(repository))
            if item := self.state.installations.get(repo.owner):
                item.repositories.discard(repository)

    def actions_token(self, repository: str, *, read_only: bool = False) -> str:
        """Return a token as a workflow gets it: login github-actions[bot], this repository only; may write checks.

        On a fork's pull request GitHub gives the event `pull_request` one that only reads.
        """
        with self.state.lock:
            covered = frozenset([repository])
            rights = dict.fromkeys(APP_PERMISSIONS, "read") if read_only else dict(APP_PERMISSIONS)
            return issue_token(self.state, ACTIONS_LOGIN, "actions", repositories=covered, permissions=rights).value

    def clone_url(self, repository: str) -> str:
        """Return `http://HOST/owner/name.git`; private repositories and pushes need basic auth x-access-token:TOKEN."""
        return f"{self.state.base_url}/{repository}.git"

    # --- who and where ---

    def _new_user(self, login: str, name: str = "", email: str = "", kind: UserKind = "User") -> None:
        number = self.state.next_id()
        address = email or f"{number}+{login}@users.noreply.localhost"
        self.state.users[login] = User(number, login, name or login, address, kind)

    def _new_repository(self, full_name: str, default_branch: str, *, private: bool) -> Repository:
        self._check_name(full_name)
        repo = Repository(self.state.next_id(), full_name, default_branch, private, now(), now())
        self.state.repositories[full_name] = repo
        return repo

    def _check_name(self, full_name: str) -> None:
        """Raise ApiError for a name that a repository cannot get; add its owner."""
        owner, slash, name = full_name.partition("/")
        if not slash or full_name in self.state.repositories or not _is_plain_name(owner) or not _is_plain_name(name):
            raise ApiError(422, f"{full_name!r} is not owner/name, or exists already")
        if owner not in self.state.users:
            self._new_user(owner)

    def _require_user(self, login: str) -> User:
        if login not in self.state.users or login in self.state.gone:
            raise ApiError(404, f"There is no user {login!r}: add_user first")
        return self.state.users[login]

    def _find_repository(self, repository: str) -> Repository:
        if repository not in self.state.repositories:
            raise ApiError(404, f"There is no repository {repository!r}: create_repository first")
        return self.state.repositories[repository]

    def _find_installation(self, owner: str) -> Installation:
        if owner not in self.state.installations:
            raise ApiError(404, f"The App is not installed for {owner!r}: install_app first")
        return self.state.installations[owner]

    def _require_repo(self, repository: str, login: str, need: Need) -> Repository:
        return require_repository(self.state, Caller(self._require_user(login).login, "user"), repository, need)


def _is_plain_name(name: str) -> bool:
    return name.replace("-", "").replace("_", "").replace(".", "").isalnum() and not name.startswith((".", "-"))


def _files_of(folder: Path) -> dict[str, bytes]:
    inside = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in inside}
