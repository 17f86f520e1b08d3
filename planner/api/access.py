"""Who may do what over HTTP: tokens by scope, the mode of the server, and on which host it may listen."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from mergeplan.planner.errors import RequestError

VARIABLE = "MERGEPLAN_API_{}_TOKEN"  # or with `_PATH`: the file that holds it
SHORTEST = 16  # characters of a token: one that is guessed is no token
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Scope(StrEnum):
    """What a request needs, and a token gives; each includes those before it."""

    READ = "read"  # the catalog, environments, files, and the jobs of others
    PLAN = "plan"  # plans, diffs, audits and unit tests: no environment changes
    APPLY = "apply"  # what changes environments, and the plain rows of tables

    def includes(self, other: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(other)


class Mode(StrEnum):
    """What the server does at all, for every client."""

    CATALOG = "catalog"
    PLAN = "plan"
    ALL = "all"

    @property
    def scope(self) -> Scope:
        """The most that is allowed in this mode."""
        return {Mode.CATALOG: Scope.READ, Mode.PLAN: Scope.PLAN, Mode.ALL: Scope.APPLY}[self]


@dataclass(frozen=True)
class Principal:
    """The sender of a request: by the scope of the token, or a user of this machine."""

    name: str
    scope: Scope


@dataclass(frozen=True)
class Access:
    """The rules of one server. Without tokens it is for this machine alone, and each user of it may do everything."""

    mode: Mode = Mode.ALL
    host: str = "127.0.0.1"
    tokens: Mapping[Scope, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.tokens and not is_loopback(self.host):
            name = VARIABLE.format("READ")
            raise RequestError(
                f"`{self.host}` can be reached from other machines, and there is no token.",
                hint=f"Set {name} (and ..._PLAN_..., ..._APPLY_...), or listen on 127.0.0.1.",
            )

    def principal(self, token: str | None) -> Principal | None:
        """Return the owner of this token, or None. Every token is compared, each in constant time."""
        if not self.tokens:
            return Principal("local", Scope.APPLY)
        sent, best = (token or "").encode(), None
        for scope in Scope:
            if scope in self.tokens and hmac.compare_digest(sent, self.tokens[scope].encode()):
                best = Principal(f"token:{scope}", scope)
        return best

    def knows_host(self, header: str) -> bool:
        """Return True if a `Host` header names this server; without tokens, not for a name that leads here by DNS."""
        return bool(self.tokens) or host_name(header) in {*LOCAL_NAMES, host_name(self.host)}


def host_name(header: str) -> str:
    """Return the host of a `Host` header, without its port.

    >>> host_name("localhost:8080"), host_name("[::1]:8080")
    ('localhost', '[::1]')
    """
    name, _, port = header.strip().lower().rpartition(":")
    if name and (port.isdecimal() or not port) and (name.startswith("[") or ":" not in name):
        return name
    whole = header.strip().lower()
    return f"[{whole}]" if whole.count(":") > 1 and not whole.startswith("[") else whole


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach a server on this host; a name except `localhost` may be anything."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_tokens(environ: Mapping[str, str]) -> dict[Scope, str]:
    """Read the tokens from the environment, or from the files that it names; raise RequestError for a bad one."""
    tokens: dict[Scope, str] = {}
    for scope in Scope:
        name = VARIABLE.format(scope.upper())
        token = _read_token(environ, name)
        if token is None:
            continue
        if len(token) < SHORTEST or not token.isascii() or any(c.isspace() or not c.isprintable() for c in token):
            raise RequestError(
                f"{name} is no token: it needs {SHORTEST} printable ASCII characters or more, without blanks.",
                hint="`openssl rand -hex 32` makes one.",
            )
        if token in tokens.values():
            raise RequestError(f"{name} is the token of another scope.", hint="Give each scope its own.")
        tokens[scope] = token
    return tokens


def token_variables() -> tuple[str, ...]:
    names = [VARIABLE.format(scope.upper()) for scope in Scope]
    return (*names, *(f"{name}_PATH" for name in names))


def _read_token(environ: Mapping[str, str], name: str) -> str | None:
    path = environ.get(f"{name}_PATH")
    if path is None:
        return environ.get(name)
    if name in environ:
        raise RequestError(f"{name} and {name}_PATH are both set.", hint="Set one of them.")
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError as error:
        raise RequestError(f"{name}_PATH: `{path}` cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise RequestError(f"{name}_PATH: `{path}` is not UTF-8 text.") from None
