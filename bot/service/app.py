"""The endpoints of the service: webhooks, health, metrics. A webhook is verified, stored, answered; no more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from tempfile import TemporaryFile

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import ClientDisconnect

from bot.child.isolated import isolation_words
from bot.context import BotContext
from bot.github.events import MAX_BYTES, TOO_LARGE, Ignored, InvalidDelivery, read_delivery, refused_unread
from bot.github.gateway import GitHubFailed, GitHubPaused
from bot.github.owners import OwnerState
from bot.metrics import AGE, BUDGET, CLAIMED, DELIVERIES, OWNERS, QUEUE
from bot.service.connections import Limits
from planner.errors import MergeplanError

log = structlog.get_logger(__name__)
SHUT = ("suspended", "failing")  # a pause ends by itself: webhooks are taken in meanwhile


def create_app(context: BotContext, limits: Limits | None = None) -> FastAPI:
    """The ASGI application over one context."""
    app = FastAPI(title="mergeplan", docs_url=None, redoc_url=None, openapi_url=None)

    room = BodyRoom(limits or Limits())

    @app.post("/webhook")
    async def webhook(request: Request) -> Response:
        refused = refused_unread(request.headers)
        if refused:
            return _answer(refused)
        with room.body() as body:
            unread = await room.read(request, body)
            return (
                _answer(unread) if unread else await run_in_threadpool(take_in, context, request.headers, bytes(body))
            )

    @app.get("/healthz")
    async def healthz() -> Response:
        return Response("ok\n", media_type="text/plain")

    @app.get("/readyz")
    def readyz(request: Request) -> Response:
        missing = not_ready(context)
        status, owners = 503 if missing else 200, context.github.owners.states()
        isolation = isolation_words(context.settings)
        if "application/json" in request.headers.get("accept", ""):
            states = [asdict(each) for each in owners]
            data = {"ready": not missing, "why": missing, "isolation": isolation, "owners": states}
            return Response(json.dumps(data), status, media_type="application/json")
        troubled = [f"{each.owner}: {each.state} since {each.since}. {each.why}" for each in in_trouble(owners)]
        lines = [missing or "ready", f"isolation: {isolation}", *troubled]
        return Response("\n".join(lines) + "\n", status, media_type="text/plain")

    @app.get("/metrics")
    def metrics() -> Response:
        depth = context.inbox.queue.depth()
        QUEUE.set(depth.due)
        AGE.set(depth.oldest_seconds)
        CLAIMED.set(depth.claimed)
        for installation, left in context.github.budget().items():
            BUDGET.labels(installation).set(left)
        OWNERS.clear()
        for owner in context.github.owners.states():
            OWNERS.labels(owner.owner, owner.state).set(1)
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return app


def take_in(context: BotContext, headers: Mapping[str, str], body: bytes) -> Response:
    """Verifies a delivery and stores it for good; the answer says what became of it."""
    read = read_delivery(headers, body, context.settings.webhook_secret.get_secret_value())
    if isinstance(read, (Ignored, InvalidDelivery)):
        return _answer(read)
    try:
        fresh = context.inbox.deliveries.receive(read)
    except MergeplanError as error:
        log.error("delivery_not_stored", delivery=read.guid, why=error.message)
        DELIVERIES.labels("not_stored").inc()
        return Response("not stored, send it again\n", 503, media_type="text/plain")
    if read.owner:
        context.github.owners.forget(read.owner)
        context.look.set()
    log.info(
        "delivery",
        delivery=read.guid,
        kind=read.kind,
        repository=read.repository or read.owner,
        pull_request=read.number,
        fresh=fresh,
    )
    DELIVERIES.labels("accepted" if fresh else "duplicate").inc()
    return Response("accepted\n" if fresh else "known already\n", 202, media_type="text/plain")


def not_ready(context: BotContext) -> str:
    """What keeps the service from working, '' when nothing does."""
    if context.closing.is_set():
        return "closing"
    try:
        with TemporaryFile(dir=context.settings.home):
            pass
    except OSError as error:
        return f"the home folder cannot be written: {error.strerror}"
    try:
        context.inbox.ping()
    except MergeplanError:
        return "the state database does not answer"
    try:
        context.github.login()
    except (GitHubFailed, GitHubPaused):
        return "GitHub does not know us"
    if context.github.owners.refused:
        return f"GitHub refuses the App: {context.github.owners.refused}"
    owners = context.github.owners.states()
    if owners and all(each.state in SHUT for each in owners):
        return "the App works for no owner"
    return ""


def in_trouble(owners: Sequence[OwnerState]) -> tuple[OwnerState, ...]:
    """The owners for whom nothing can be done for now; the service works for all others."""
    return tuple(each for each in owners if each.state != "working")


def _answer(read: Ignored | InvalidDelivery) -> Response:
    if isinstance(read, Ignored):
        DELIVERIES.labels("ignored").inc()
        return Response(f"ignored: {read.why}\n", 202, media_type="text/plain")
    DELIVERIES.labels("refused").inc()
    log.warning("delivery_refused", status=read.status, why=read.why)
    return Response(f"{read.why}\n", read.status, media_type="text/plain")


class BodyRoom:
    """The memory for bodies whose senders are not known yet: what is not small shares one budget.

    All methods run in the server's one loop.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._left = limits.bodies

    @contextmanager
    def body(self) -> Iterator[bytearray]:
        """A body that is read and handled within; what it took is given back afterwards."""
        body = bytearray()
        try:
            yield body
        finally:
            self._left += self._counted(body)

    async def read(self, request: Request, body: bytearray) -> InvalidDelivery | None:
        """Reads a request's bytes; why not, when they are too many, come too slowly, or stop coming."""
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for part in request.stream():
                    before = self._counted(body)
                    body += part
                    self._left -= self._counted(body) - before
                    if len(body) > MAX_BYTES:
                        return TOO_LARGE
                    if self._left < 0 and self._counted(body):
                        return InvalidDelivery(503, "too many large bodies at the same time, send it again")
        except ClientDisconnect:
            return InvalidDelivery(400, "the sender left before its body had come")
        except TimeoutError:
            return InvalidDelivery(408, "the body came too slowly")
        return None

    def _counted(self, body: bytearray) -> int:
        return max(0, len(body) - self._limits.small)
