"""Tokens of an installation, no wider than what they are for: the bot's own, and git's for one repository."""

import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import jwt
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from github import Auth, GithubException, GithubIntegration
from github.InstallationAuthorization import InstallationAuthorization

from mergeplan.bot.github.permissions import GIT_PERMISSIONS, token_permissions

log = structlog.get_logger(__name__)
NOT_GRANTED = 422  # GitHub's answer where a token asks for what the installation does not have
EARLY_SECONDS = 300.0  # a token is not used when it is about to end


def app_signer(private_key: str) -> Callable[[dict[Any, Any]], str]:
    return lambda claims: jwt.encode(claims, _read_key(private_key), algorithm="RS256")


@lru_cache(maxsize=1)  # to read it takes longer than all else of a call: its numbers are proved to be a key
def _read_key(private_key: str) -> RSAPrivateKey | str:
    try:
        loaded = load_pem_private_key(private_key.encode(), password=None)
    except ValueError:
        return private_key  # the signing says what is wrong with it
    return loaded if isinstance(loaded, RSAPrivateKey) else private_key


class BotAuth(Auth.AppInstallationAuth):
    """The bot's token, with its table of permissions, even if the App was granted more.

    An App that was granted less gets what it has: what is missing is refused where it is needed.
    """

    def __init__(self, app_auth: Auth.AppAuth, installation: int, grants: Mapping[str, str]) -> None:
        super().__init__(app_auth, installation, token_permissions(grants))

    def _get_installation_authorization(self) -> InstallationAuthorization:
        try:
            return super()._get_installation_authorization()
        except GithubException as error:
            if error.status != NOT_GRANTED or self._token_permissions is None:
                raise
        log.warning("app_was_granted_less", installation=self.installation_id, asked=self._token_permissions)
        self._token_permissions = None
        return super()._get_installation_authorization()


class GitTokens:
    """Tokens for git, each for reading the contents of one repository, and renewed when they are about to end."""

    def __init__(self, app: GithubIntegration, installation: int) -> None:
        self._requester = app.requester
        self._path = f"/app/installations/{installation}/access_tokens"
        self._tokens: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def token(self, repository: str) -> str:
        """Return a token for `owner/name`; GithubException when GitHub gives none."""
        with self._lock:
            cached_token, until = self._tokens.get(repository, ("", 0.0))
        if time.time() < until - EARLY_SECONDS:
            return cached_token
        body: dict[str, Any] = {"repositories": [repository.partition("/")[2]], "permissions": GIT_PERMISSIONS}
        _, answer = self._requester.requestJsonAndCheck("POST", self._path, input=body)
        until = datetime.fromisoformat(str(answer["expires_at"]).replace("Z", "+00:00")).timestamp()
        with self._lock:
            self._tokens[repository] = str(answer["token"]), until
        return str(answer["token"])
