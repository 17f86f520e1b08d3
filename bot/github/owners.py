"""The App's installations, one an owner: how each is reached, and what is the matter with it.

One owner's trouble is that owner's alone: each has a token and a pause of its own. An installation that was suspended
or removed is found out when a call is refused, and again when it works.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import structlog
from github import Auth, Github, GithubIntegration
from github.Requester import Requester

from mergeplan.bot.forge.failures import ForgeFailed, OwnerState, OwnerUnavailable, State
from mergeplan.bot.github.connections import prepare_connections
from mergeplan.bot.github.patience import Pause, call_patiently
from mergeplan.bot.github.polling import Polls
from mergeplan.bot.github.tokens import BotAuth, GitTokens, app_signer
from mergeplan.bot.github.turns import Turns
from mergeplan.bot.projects import owner_of
from mergeplan.bot.records import Repository
from mergeplan.bot.settings import Settings

log = structlog.get_logger(__name__)
LOOK_AGAIN_SECONDS = 60.0  # an owner that is not there is asked for no more often


@dataclass(frozen=True)
class OwnerConnection:
    """One installation (0: a token instead of an App) with its own token and its own pause."""

    owner: str
    installation: int
    client: Github
    auth: Auth.Auth
    pause: Pause = field(default_factory=Pause)
    turns: Turns = field(default_factory=lambda: Turns(0.0))
    git: GitTokens | None = None  # None with a token instead of an App

    def git_token(self, repository: str) -> str:
        """Return a token that git may read that repository with, and no other."""
        tokens = self.git
        return call_patiently(self.pause, lambda: tokens.token(repository)) if tokens else self.token()

    def token(self) -> str:
        """Return a token, renewed when it is about to expire."""
        return call_patiently(self.pause, lambda: str(self.auth.token))

    def ask(self, url: str, headers: dict[str, str]) -> tuple[int, Mapping[str, Any], str]:
        """Send one GET by address; an answer of 304 is no error."""
        return request_json(self.client.requester, url, headers)


def request_json(requester: Requester, url: str, headers: dict[str, str]) -> tuple[int, Mapping[str, Any], str]:
    """Send one GET by address and return its status, headers and body; raise GithubException for a refusal."""
    status, response_headers, body = requester.requestJson("GET", url, headers=dict(headers))
    if status >= 400:
        raise requester.createException(status, response_headers, _parse_object(body))
    return status, response_headers, body


def _parse_object(body: str) -> dict[str, Any]:
    try:
        read = json.loads(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


class Owners:
    """Every installation of the App, or one token for all; safe to use from many threads."""

    def __init__(self, settings: Settings, options: Mapping[str, Any], polls: Polls) -> None:
        prepare_connections()
        self._settings = settings
        self._options = dict(options)
        self._polls = polls
        self._lock = threading.RLock()
        self._connections: dict[int, OwnerConnection] = {}
        self._turns: dict[str, Turns] = {}  # an owner's writes rest, also over a new installation or token
        self._at: dict[str, int] = {}  # repository: its installation
        self._granted: dict[int, Mapping[str, str]] = {}  # installation: the permissions that the App has there
        self._states: dict[str, OwnerState] = {}
        self._looked: dict[str, float] = {}  # owner in trouble: when it was looked at last
        self.app_pause = Pause()
        self.refused = ""  # why GitHub refuses the App itself; '' while it does not
        self.app: GithubIntegration | None = None
        if settings.is_app:
            sign = app_signer(settings.github_private_key.get_secret_value())
            self._app_auth = Auth.AppAuth(settings.github_app_id, sign_func=sign)
            self.app = GithubIntegration(auth=self._app_auth, **self._options)

    # --- reaching one ---

    def connect(self, repository: str) -> OwnerConnection:
        """Return the connection that opens a repository; OwnerUnavailable when its installation does not work."""
        if self.app is None:
            return self._open_connection("", 0)
        for _ in range(2):
            connection = self._open_connection(owner_of(repository), self._find_installation(repository))
            try:
                connection.token()
            except ForgeFailed as error:
                if not self.was_shut(connection, error):
                    raise
            else:
                return connection
        raise self._note_trouble(
            owner_of(repository), 0, "failing", "GitHub gives no token for this installation.", 401
        )

    def was_shut(self, connection: OwnerConnection, error: ForgeFailed) -> bool:
        """Return True when a call was refused because its installation or token is gone: look it up again.

        OwnerUnavailable when the installation is suspended; False when the refusal is about something else.
        """
        if self.app is None or error.status not in (401, 403, 404):
            return False
        app, number = self.app, connection.installation
        try:
            installation = call_patiently(self.app_pause, lambda: app.get_app_installation(number))
        except ForgeFailed as gone:
            if gone.status != 404:
                raise
            self.forget(connection.owner)
            return True
        if installation.suspended_at:
            raise self._suspension_error(connection.owner, number)
        if error.status == 401:
            with self._lock:
                self._connections.pop(number, None)
        return error.status == 401

    def _find_installation(self, repository: str) -> int:
        owner, _, name = repository.partition("/")
        with self._lock:
            installation, state = self._at.get(repository, 0), self._states.get(owner)
            lately = time.monotonic() - self._looked.get(owner, 0.0) < LOOK_AGAIN_SECONDS
        if state and state.state == "suspended" and owner in self._looked and lately:
            raise OwnerUnavailable(owner, state.state, state.why, 403)
        return installation or self._look_up(repository, owner, name)

    def _look_up(self, repository: str, owner: str, name: str) -> int:
        app = self.app
        assert app is not None
        try:
            installation = call_patiently(self.app_pause, lambda: app.get_repo_installation(owner, name))
        except ForgeFailed as error:
            if error.status != 404:
                raise
            raise not_installed(repository) from error
        if installation.suspended_at:
            raise self._suspension_error(owner, installation.id)
        with self._lock:
            self._at[repository] = installation.id
        self._note_granted(installation.id, installation.permissions)
        self._note_working(owner, installation.id)
        return installation.id

    def _open_connection(self, owner: str, installation: int) -> OwnerConnection:
        with self._lock:
            if installation not in self._connections:
                auth: Auth.Auth
                if installation:
                    auth = BotAuth(self._app_auth, installation, self._granted.get(installation, {}))
                else:
                    auth = Auth.Token(self._settings.github_token.get_secret_value())
                git = GitTokens(self.app, installation) if self.app and installation else None
                client = Github(auth=auth, **self._options)
                turns = self._turns.setdefault(owner, Turns(self._settings.write_spacing_seconds))
                made = OwnerConnection(owner, installation, client, auth, turns=turns, git=git)
                self._connections[installation] = made
            return self._connections[installation]

    def connections(self) -> tuple[OwnerConnection, ...]:
        with self._lock:
            return tuple(self._connections.values())

    # --- all of them ---

    def connect_all(self) -> tuple[OwnerConnection, ...]:
        """Return a connection for each installation; raise OwnerUnavailable if one does not work."""
        self.list_owners()
        with self._lock:
            states = tuple(self._states.values())
        for state in states:
            if state.state != "working":
                raise OwnerUnavailable(state.owner, state.state, f"{state.owner}: {state.why}", 403)
        return tuple(self._open_connection(state.owner, state.installation) for state in states)

    def list_owners(self) -> tuple[str, ...]:
        if self.app is None:
            return ("",)
        requester = self.app.requester
        try:
            installations = call_patiently(
                self.app_pause,
                lambda: self._polls.read(
                    lambda url, headers: request_json(requester, url, headers),
                    "/app/installations?per_page=100",
                    _parse_installations,
                ),
            )
        except ForgeFailed as error:
            self.refused = str(error) if error.status in (401, 403, 404) else ""
            raise
        self.refused = ""
        installed_owners = {installation.owner for installation in installations}
        with self._lock:
            gone = [owner for owner in self._states if owner not in installed_owners]
        for owner in gone:
            self.forget(owner)
        for installation in installations:
            if installation.state == "suspended":
                self._suspension_error(installation.owner, installation.installation)
            else:
                self._note_granted(installation.installation, dict(installation.granted))
                self._note_working(installation.owner, installation.installation)
        return tuple(installation.owner for installation in installations if installation.state != "suspended")

    def repositories(self, owner: str) -> tuple[Repository, ...]:
        with self._lock:
            state = self._states.get(owner)
        if self.app is None or state is None:
            return ()
        connection = self._open_connection(owner, state.installation)
        for last in (False, True):
            try:
                repositories = self._list_repositories(connection)
                break
            except ForgeFailed as error:
                if last or not self.was_shut(connection, error):
                    raise self._note_trouble(
                        owner, connection.installation, "failing", str(error), error.status
                    ) from error
                connection = self._open_connection(owner, state.installation)
        with self._lock:
            for repository in repositories:
                self._at[repository.name] = connection.installation
        self._note_working(owner, connection.installation)
        return repositories

    def _list_repositories(self, connection: OwnerConnection) -> tuple[Repository, ...]:
        url, key = "/installation/repositories?per_page=100", str(connection.installation)
        connection.token()

        def parse(value: Any) -> tuple[Repository, ...]:
            return tuple(Repository(shape["full_name"], shape["id"]) for shape in value["repositories"])

        return call_patiently(connection.pause, lambda: self._polls.read(connection.ask, url, parse, key=key))

    def states(self) -> tuple[OwnerState, ...]:
        with self._lock:
            states, connections = dict(self._states), dict(self._connections)
        owner_states = []
        for state in states.values():
            connection = connections.get(state.installation)
            pause_seconds = connection.pause.remaining_seconds if connection else 0.0
            if pause_seconds and state.state == "working":
                state = replace(state, state="paused", why="GitHub asked to wait.", seconds=round(pause_seconds, 1))
            owner_states.append(state)
        return tuple(sorted(owner_states, key=lambda state: state.owner))

    # --- what becomes of them ---

    def forget(self, owner: str) -> None:
        with self._lock:
            self._looked.pop(owner, None)
            for name in [name for name in self._at if owner_of(name) == owner]:
                self._at.pop(name)
            for connection in [candidate for candidate in self._connections.values() if candidate.owner == owner]:
                self._connections.pop(connection.installation)
            state = self._states.pop(owner, None)
        if state:
            log.info("owner_forgotten", owner=owner, installation=state.installation)

    def _note_granted(self, installation: int, grants: Mapping[str, str]) -> None:
        """Note the grants of an installation; if they changed, the next token requests them."""
        with self._lock:
            if self._granted.get(installation) != grants:
                self._granted[installation] = dict(grants)
                self._connections.pop(installation, None)

    def _note_working(self, owner: str, installation: int) -> None:
        with self._lock:
            old_state = self._states.get(owner)
            self._looked.pop(owner, None)
            if old_state and old_state.installation != installation:
                self.forget(owner)
            if not old_state or (old_state.installation, old_state.state) != (installation, "working"):
                self._states[owner] = OwnerState(owner, installation, since=_now_text())
                log.info("owner_works", owner=owner, installation=installation)

    def _suspension_error(self, owner: str, installation: int) -> OwnerUnavailable:
        return self._note_trouble(owner, installation, "suspended", "The App's installation there is suspended.", 403)

    def _note_trouble(self, owner: str, installation: int, state: State, why: str, status: int) -> OwnerUnavailable:
        with self._lock:
            old_state = self._states.get(owner)
            self._looked[owner] = time.monotonic()
            if not old_state or (old_state.installation, old_state.state, old_state.why) != (installation, state, why):
                self._states[owner] = OwnerState(owner, installation, state, _now_text(), why)
                log.warning("owner_in_trouble", owner=owner, installation=installation, state=state, why=why)
        return OwnerUnavailable(owner, state, f"{owner}: {why}", status)


def not_installed(repository: str) -> ForgeFailed:
    return ForgeFailed(f"The App is not installed on {repository}.", 404)


def _parse_installations(value: Any) -> tuple[OwnerState, ...]:
    return tuple(
        OwnerState(
            installation["account"]["login"],
            installation["id"],
            "suspended" if installation.get("suspended_at") else "working",
            granted=tuple((installation.get("permissions") or {}).items()),
        )
        for installation in value
        if installation.get("account")
    )


def _now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
