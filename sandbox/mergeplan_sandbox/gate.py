"""The gate before the API: the log of calls, faults, rate-limit headers, ETags."""

import asyncio
import hashlib
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mergeplan_sandbox.api.limits import REQUESTS_PER_HOUR, ApiError
from mergeplan_sandbox.api.versions import HEADER, OLDEST
from mergeplan_sandbox.faults import ApiFault
from mergeplan_sandbox.state import ApiCall
from mergeplan_sandbox.webhooks import Site

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


logger = logging.getLogger(__name__)


class Gate:
    """Wraps the API application: an answer is taken whole, looked at, and then sent, changed, or lost."""

    def __init__(self, site: Site, app: App) -> None:
        self._site = site
        self._app = app
        self._used = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        scope.setdefault("state", {})
        fault = self._site.faults.take_call_fault(method, path, self._token_owner(scope))
        self._used += 1
        if fault and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        scope["path"], moved_to = self._follow_move(path)
        if fault and fault.kind in ("fail", "rate_limit"):
            status, headers, body = self._build_refusal(fault)
        elif moved_to:
            status, headers, body = _build_redirect(method, moved_to, scope["query_string"])
        else:
            status, headers, body = await self._call_app(scope, receive)
        if fault and fault.kind == "lose_answer" and fault.status:
            status, headers, body = fault.status, [(b"content-type", b"text/html")], b"<h1>502 Bad Gateway</h1>"
        headers, unchanged = self._add_etag(scope, status, headers, body)
        status, body = (304, b"") if unchanged else (status, body)
        self._used -= unchanged  # a 304 is free
        with self._site.state.lock:
            self._site.state.version += method != "GET"
            call = ApiCall(method, path, status, scope["state"].get("login"), _asked_version(scope))
            self._site.state.calls.append(call)
        if fault and fault.kind == "lose_answer" and not fault.status:
            # An answer that promises a body and brings none: the server closes the connection, as a dying proxy would.
            promised = [(b"content-type", b"application/json"), (b"content-length", b"2")]
            await send({"type": "http.response.start", "status": 200, "headers": promised})
        else:
            await self._send_reply(
                send,
                status,
                [*headers, (b"x-github-api-version-selected", (_asked_version(scope) or OLDEST).encode())],
                body,
            )

    async def _call_app(self, scope: Scope, receive: Receive) -> tuple[int, Headers, bytes]:
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        try:
            await self._app(scope, receive, keep)
        except Exception:
            # By now the application has answered 500; the defect is the sandbox's own.
            logger.exception("sandbox_defect")
        body = b"".join(message.get("body", b"") for message in messages[1:])
        return messages[0]["status"], list(messages[0]["headers"]), body

    def _follow_move(self, path: str) -> tuple[str, str]:
        """Return the path by the repository's name, and the address to ask instead if the name is an earlier one."""
        _, kind, *parts = path.split("/")
        with self._site.state.lock:
            repositories, moved = self._site.state.repositories, self._site.state.moved
            if kind == "repositories" and parts:
                names = [repo.full_name for repo in repositories.values() if str(repo.id) == parts[0]]
                return "/".join(["/repos", *(names or ["-/-"]), *parts[1:]]), ""
            name = "/".join(parts[:2])
            if kind != "repos" or name in repositories or name not in moved:
                return path, ""
            address = "/".join([self._site.state.base_url, "repositories", str(moved[name]), *parts[2:]])
            return path, address

    def _token_owner(self, scope: Scope) -> str:
        credential = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1").rpartition(" ")[2]
        with self._site.state.lock:
            token = self._site.state.tokens.get(credential)
            item = self._site.state.installation(token.installation_id) if token else None
        return item.account if item else ""

    def _build_refusal(self, fault: ApiFault) -> tuple[int, Headers, bytes]:
        headers: Headers = [(b"content-type", b"application/json")]
        if fault.kind == "fail":
            error = ApiError(fault.status, "Not Found" if fault.status == 404 else "Server Error")
        elif fault.reset_in is not None:
            error = ApiError(fault.status, "API rate limit exceeded for installation.")
            headers += [(b"x-ratelimit-remaining", b"0"), (b"x-ratelimit-reset", _seconds_from_now(fault.reset_in))]
        else:
            error = ApiError(fault.status, "You have exceeded a secondary rate limit. Please wait a few minutes.")
            headers += [(b"retry-after", str(fault.retry_after).encode())] if fault.retry_after is not None else []
        return fault.status, headers, json.dumps(error.body(self._site.state.base_url)).encode()

    def _add_etag(self, scope: Scope, status: int, headers: Headers, body: bytes) -> tuple[Headers, bool]:
        """Return the headers with the answer's tag, and True if the caller has that answer already."""
        if scope["method"] != "GET" or status != 200:
            return headers, False
        request_headers = dict(scope["headers"])
        # As on GitHub a tag holds for one token: a new token has to read everything once more.
        tagged_content = request_headers.get(b"authorization", b"") + body
        etag = f'W/"{hashlib.sha256(tagged_content).hexdigest()[:32]}"'.encode()
        return [*headers, (b"etag", etag)], request_headers.get(b"if-none-match") == etag

    async def _send_reply(self, send: Send, status: int, headers: Headers, body: bytes) -> None:
        names = {name for name, _ in headers}
        defaults: Headers = [
            (b"x-ratelimit-limit", str(REQUESTS_PER_HOUR).encode()),
            (b"x-ratelimit-remaining", str(max(REQUESTS_PER_HOUR - self._used, 0)).encode()),
            (b"x-ratelimit-used", str(self._used).encode()),
            (b"x-ratelimit-reset", _seconds_from_now(3600)),
            (b"x-ratelimit-resource", b"core"),
            (b"x-github-request-id", uuid.uuid4().hex.encode()),
            (b"x-github-media-type", b"github.v3; format=json"),
        ]
        headers = [item for item in headers if item[0] != b"content-length"]
        headers += [item for item in defaults if item[0] not in names]
        if status not in (204, 304):
            headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _asked_version(scope: Scope) -> str:
    version: bytes = dict(scope["headers"]).get(HEADER.encode(), b"")
    return version.decode("latin-1")


def _build_redirect(method: str, address: str, query: bytes) -> tuple[int, Headers, bytes]:
    """Return GitHub's answer to a call by an earlier name: 301, or 307 where the method has to stay."""
    location = address + (f"?{query.decode()}" if query else "")
    status, words = (301, "Moved Permanently") if method in ("GET", "HEAD") else (307, "Temporary Redirect")
    headers = [(b"content-type", b"application/json"), (b"location", location.encode())]
    return status, headers, json.dumps({"message": words, "url": location}).encode()


def _seconds_from_now(seconds: int) -> bytes:
    return str(int(time.time()) + seconds).encode()
