"""The doors of the service: webhooks in, health and numbers out. A webhook is verified, stored, answered; no more."""

from __future__ import annotations

from collections.abc import Mapping
from tempfile import TemporaryFile

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from bot.desk import Desk
from bot.events import MAX_BYTES, Ignored, Refused, read_delivery
from bot.github import GitHubFailed, GitHubPaused
from bot.isolated import isolation_said
from bot.metrics import AGE, BUDGET, CLAIMED, DELIVERIES, QUEUE
from planner.errors import MergeplanError

log = structlog.get_logger(__name__)


def create_app(desk: Desk) -> FastAPI:
    """The ASGI application over one desk."""
    app = FastAPI(title="mergeplan", docs_url=None, redoc_url=None, openapi_url=None)

    @app.post("/webhook")
    async def webhook(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return _answer(Refused(413, "the body is larger than GitHub sends"))
        return await run_in_threadpool(take_in, desk, request.headers, body)

    @app.get("/healthz")
    async def healthz() -> Response:
        return Response("ok\n", media_type="text/plain")

    @app.get("/readyz")
    def readyz() -> Response:
        missing = not_ready(desk)
        said = missing or f"ready\nisolation: {isolation_said(desk.settings)}"
        return Response(said + "\n", 503 if missing else 200, media_type="text/plain")

    @app.get("/metrics")
    def metrics() -> Response:
        depth = desk.inbox.depth()
        QUEUE.set(depth.due)
        AGE.set(depth.oldest_seconds)
        CLAIMED.set(depth.claimed)
        for installation, left in desk.github.budget().items():
            BUDGET.labels(installation).set(left)
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return app


def take_in(desk: Desk, headers: Mapping[str, str], body: bytes) -> Response:
    """Verifies a delivery and stores it for good; the answer says what became of it."""
    read = read_delivery(headers, body, desk.settings.webhook_secret.get_secret_value())
    if isinstance(read, (Ignored, Refused)):
        return _answer(read)
    try:
        fresh = desk.inbox.receive(read)
    except MergeplanError as error:
        log.error("delivery_not_stored", delivery=read.guid, why=error.message)
        DELIVERIES.labels("not_stored").inc()
        return Response("not stored, send it again\n", 503, media_type="text/plain")
    log.info(
        "delivery",
        delivery=read.guid,
        kind=read.kind,
        repository=read.repository,
        pull_request=read.number,
        fresh=fresh,
    )
    DELIVERIES.labels("accepted" if fresh else "duplicate").inc()
    return Response("accepted\n" if fresh else "known already\n", 202, media_type="text/plain")


def not_ready(desk: Desk) -> str:
    """What keeps the service from working, '' when nothing does."""
    if desk.closing.is_set():
        return "closing"
    try:
        with TemporaryFile(dir=desk.settings.home):
            pass
    except OSError as error:
        return f"the home folder cannot be written: {error.strerror}"
    try:
        desk.inbox.ping()
    except MergeplanError:
        return "the state database does not answer"
    try:
        desk.github.login()
    except (GitHubFailed, GitHubPaused):
        return "GitHub does not know us"
    return ""


def _answer(read: Ignored | Refused) -> Response:
    if isinstance(read, Ignored):
        DELIVERIES.labels("ignored").inc()
        return Response(f"ignored: {read.why}\n", 202, media_type="text/plain")
    DELIVERIES.labels("refused").inc()
    log.warning("delivery_refused", status=read.status, why=read.why)
    return Response(f"{read.why}\n", read.status, media_type="text/plain")


async def _body(request: Request) -> bytes | None:
    """The raw bytes, None as soon as they are more than GitHub ever sends."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > MAX_BYTES:
        return None
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)
