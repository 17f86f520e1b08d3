"""The first checks of a request, of host, origin, token and size: no middleware, which would gather event streams."""

import asyncio
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mergeplan.planner.api.access import Access
from mergeplan.planner.api.problems import Problem, answer_problem, problem

COOKIE = "mergeplan_token"
PUBLIC = ("/healthz", "/login")  # answered without a token, and what is below ASSETS: both of the pages
ASSETS = "/assets/"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LARGEST = 2 << 20  # bytes of a body
BODY_SECONDS = 20.0  # from the end of the head to the end of the body
SECURE = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}

TOO_LARGE = problem(HTTPStatus(413), f"The body is larger than {LARGEST:,} bytes.")


class Guard:
    """The application behind the rules of `Access`; `request.state.principal` is the sender."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)  # no WebSocket is routed
            return
        headers = Headers(scope=scope)
        guarded = _add_headers(send)
        if refusal := self._find_refusal(scope["method"], headers):
            await answer_problem(refusal)(scope, receive, guarded)
            return
        principal = self.access.principal(_request_token(headers))
        if principal is None and not _is_public(scope["path"]):
            await _ask_for_token(scope, headers)(scope, receive, guarded)
            return
        scope.setdefault("state", {})["principal"] = principal
        if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
            try:
                receive = await read_body(receive)
            except Unread as error:
                await answer_problem(error.problem, {"Connection": "close"})(scope, receive, guarded)
                return
        await self.app(scope, receive, guarded)

    def _find_refusal(self, method: str, headers: Headers) -> Problem | None:
        if not self.access.knows_host(headers.get("host", "")):
            return problem(HTTPStatus.MISDIRECTED_REQUEST, "This server does not answer to the host of the request.")
        if method not in SAFE and not is_same_origin(headers):
            return problem(HTTPStatus.FORBIDDEN, "A page of another origin sent this request.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST:
            return TOO_LARGE
        return None


def _is_public(path: str) -> bool:
    return path in PUBLIC or (path.startswith(ASSETS) and ".." not in path)


def is_same_origin(headers: Headers) -> bool:
    """Return True if no page of another origin sent the request; a program sends neither header."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


class Unread(Exception):
    """A body that is not read to its end; `problem` is the answer."""

    def __init__(self, answer: Problem) -> None:
        super().__init__(answer.detail)
        self.problem = answer


async def read_body(receive: Receive) -> Receive:
    """Return a channel that has the whole body in its first message; Unread for one that is too large or too slow.

    A chunked body has no length that could be refused before it is read.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            message = await receive()
            while message["type"] == "http.request":
                body += message.get("body", b"")
                if len(body) > LARGEST:
                    raise Unread(TOO_LARGE)
                if not message.get("more_body", False):
                    break
                message = await receive()
    except TimeoutError:
        raise Unread(problem(HTTPStatus.REQUEST_TIMEOUT, "The body came too slowly.")) from None
    is_whole = message["type"] == "http.request"
    first: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False} if is_whole else message

    async def receive_whole() -> Message:
        nonlocal first
        message, first = first, None
        return message if message is not None else await receive()

    return receive_whole


def _add_headers(send: Send) -> Send:
    async def send_secure(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURE.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_secure


def _request_token(headers: Headers) -> str | None:
    """Return the token of the `Authorization` header, or of the cookie that the pages' login sets."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return cookie_parser(headers.get("cookie", "")).get(COOKIE)


def _ask_for_token(scope: Scope, headers: Headers) -> ASGIApp:
    if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
        return RedirectResponse(f"/login?next={quote(scope['path'], safe='')}", HTTPStatus.SEE_OTHER)
    detail = "A token is needed: send `Authorization: Bearer TOKEN`."
    return answer_problem(problem(HTTPStatus.UNAUTHORIZED, detail), {"WWW-Authenticate": "Bearer"})
