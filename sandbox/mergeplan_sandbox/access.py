"""Who calls, and what they may do: tokens, the App's JWT, permissions."""

import base64
import binascii
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import jwt

from mergeplan_sandbox.api.limits import JWT_LIFETIME_SECONDS, TOKEN_LIFETIME_SECONDS, ApiError, not_found
from mergeplan_sandbox.state import (
    APP_PERMISSIONS,
    Installation,
    Json,
    Repository,
    Role,
    State,
    Token,
    TokenKind,
    includes_role,
    now,
)

ACTIONS_LOGIN = "github-actions[bot]"
CLOCK_SKEW_SECONDS = 60


@dataclass(frozen=True)
class Caller:
    """`kind` is the token's, or "app" for the App itself with its JWT, which may ask for tokens and little else."""

    login: str
    kind: TokenKind | Literal["app"]
    token: Token | None = None


@dataclass(frozen=True)
class Need:
    """What a call needs: one of these permissions for an App, a role for a person (None: persons never may)."""

    areas: tuple[str, ...]
    level: Literal["read", "write"]
    role: Role | None


READ = Need(("metadata",), "read", "read")
READ_ROLES = Need(("metadata",), "read", "write")
READ_CHECKS = Need(("checks",), "read", "read")
READ_MEMBERS = Need(("members",), "read", "read")
COMMENT = Need(("issues", "pull_requests"), "write", "read")
LABEL = Need(("issues", "pull_requests"), "write", "triage")
OPEN_PULL = Need(("pull_requests",), "write", "read")
PUSH = Need(("contents",), "write", "write")
WRITE_CHECKS = Need(("checks",), "write", None)
DEPLOY = Need(("deployments",), "write", "write")


def issue_token(
    state: State,
    login: str,
    kind: TokenKind,
    *,
    installation_id: int | None = None,
    repositories: frozenset[str] | None = None,
    permissions: dict[str, str] | None = None,
) -> Token:
    """Create a token with GitHub's prefix for its kind; a token of an App lives for one hour."""
    prefix = {"user": "ghp", "installation": "ghs", "actions": "ghs"}[kind]
    expires = None if kind == "user" else now() + timedelta(seconds=TOKEN_LIFETIME_SECONDS)
    rights = tuple(sorted((permissions or {}).items()))
    token = Token(f"{prefix}_{secrets.token_urlsafe(24)}", login, kind, installation_id, repositories, rights, expires)
    state.tokens[token.value] = token
    return token


def caller_of(state: State, authorization: str | None) -> Caller:
    """Return the caller of an `Authorization` header; answer 401 if it is missing, wrong or expired."""
    scheme, _, value = (authorization or "").partition(" ")
    if scheme.lower() not in ("token", "bearer", "basic") or not value:
        raise ApiError(401, "Requires authentication")
    if scheme.lower() == "basic":
        value = _basic_password(value)
    if value.count(".") == 2:
        return _app_caller(state, value)
    token = state.tokens.get(value)
    if token is None or (token.expires_at and token.expires_at <= now()):
        raise ApiError(401, "Bad credentials")
    if token.kind == "installation":
        check_installation(state.installation(token.installation_id), gone_status=401)
    return Caller(token.login, token.kind, token)


def check_installation(item: Installation | None, gone_status: int) -> Installation:
    """Return the installation if it works; answer `gone_status` if it was removed and 403 if it is suspended."""
    if item is None:
        raise ApiError(gone_status, "Bad credentials" if gone_status == 401 else "Not Found")
    if item.suspended_at:
        raise ApiError(403, "This installation has been suspended")
    return item


def _basic_password(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ApiError(401, "Bad credentials") from error


def _app_caller(state: State, value: str) -> Caller:
    options: jwt.types.Options = {"require": ["exp", "iat", "iss"], "verify_iss": False}
    try:
        claims = jwt.decode(
            value, state.app.public_key, algorithms=["RS256"], options=options, leeway=CLOCK_SKEW_SECONDS
        )
    except jwt.InvalidTokenError as error:
        raise ApiError(401, "A JSON web token could not be decoded") from error
    if claims["exp"] - claims["iat"] > JWT_LIFETIME_SECONDS + CLOCK_SKEW_SECONDS:
        raise ApiError(401, "'Expiration time' claim ('exp') is too far in the future")
    if str(claims["iss"]) != str(state.app.id):
        raise ApiError(401, "'Issuer' claim ('iss') must be the App's id")
    return Caller(state.app.bot_login, "app")


def require_repository(state: State, caller: Caller, full_name: str, need: Need) -> Repository:
    """Return the repository if the caller may see it (else 404) and has the needed permission (else 403)."""
    repo = state.repositories.get(full_name)
    if repo is None:
        raise not_found()
    if caller.kind == "user":
        role = state.role(repo, caller.login)
        if role == "none":
            raise not_found()
        if need.role is None:
            raise ApiError(403, "You must authenticate via a GitHub App.")
        if not includes_role(role, need.role):
            raise ApiError(403, f"Must have {need.role} access to this repository.")
    else:
        token = caller.token
        covered = token is not None and repo.full_name in state.token_repositories(token)
        if not covered and repo.private:
            raise not_found()
        if not token or not has_permission(token, need) or (not covered and need.level == "write"):
            raise ApiError(403, "Resource not accessible by integration")
    return repo


def has_permission(token: Token, need: Need) -> bool:
    """Return True if a token has the permission; every App reads metadata, and write includes read."""
    rights = dict(token.permissions)
    enough = ("write",) if need.level == "write" else ("read", "write")
    return need == READ or any(rights.get(area) in enough for area in need.areas)


def narrow_permissions(permissions: Json | None) -> dict[str, str]:
    """Return the permissions that a token requests; refuse more than the App has."""
    if not permissions:
        return dict(APP_PERMISSIONS)
    for area, level in permissions.items():
        if area not in APP_PERMISSIONS or (level == "write" and APP_PERMISSIONS[area] != "write"):
            raise ApiError(422, "The permissions requested are not granted to this installation.")
    return {"metadata": "read"} | permissions


def may_edit(state: State, repo: Repository, caller: Caller, author: str) -> bool:
    """Return True for the author, a person with write permission, or an App, whose permission was checked before."""
    return caller.login == author or caller.kind != "user" or includes_role(state.role(repo, caller.login), "write")
