"""The endpoints of the service: webhooks, health, metrics. A webhook is verified, stored, answered; no more."""

import json
from contextlib import suppress
from dataclasses import asdict
from math import nan
from tempfile import TemporaryFile

from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.types import ASGIApp, Receive, Scope, Send

from mergeplan.bot.child.isolated import confinement_words, isolation_words
from mergeplan.bot.context import BotContext
from mergeplan.bot.forge.failures import ForgeFailed, ForgePaused
from mergeplan.bot.metrics import AGE, BUDGET, CLAIMED, OWNERS, QUEUE
from mergeplan.bot.service.catalog import catalog_routes
from mergeplan.bot.service.connections import Limits
from mergeplan.bot.service.pages import PATH, page_handler
from mergeplan.bot.service.webhook import WebhookDoor
from mergeplan.planner.errors import MergeplanError

WEBHOOK = "/webhook"
SHUT = ("suspended", "failing")  # a pause ends by itself: webhooks are taken in meanwhile


def create_app(context: BotContext, limits: Limits | None = None) -> ASGIApp:
    webhook, pages = WebhookDoor(context, limits or Limits()), build_pages(context)

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        # Webhooks come by hundreds a second: they do without the layers of a framework.
        is_webhook = scope["type"] == "http" and scope["path"] == WEBHOOK
        await (webhook if is_webhook else pages)(scope, receive, send)

    return choose


def build_pages(context: BotContext) -> FastAPI:
    """Return all that the service answers but webhooks."""
    app = FastAPI(title="mergeplan", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/healthz")
    async def healthz() -> Response:
        return Response("ok\n", media_type="text/plain")

    @app.get("/readyz")
    def readyz(request: Request) -> Response:
        missing = not_ready(context)
        status, owners = 503 if missing else 200, context.forge.owners.states()
        isolation, spark = isolation_words(context.settings), confinement_words(context.settings)
        if "application/json" in request.headers.get("accept", ""):
            states = [asdict(owner_state) for owner_state in owners]
            data = {"ready": not missing, "why": missing, "isolation": isolation, "spark": spark, "owners": states}
            return Response(json.dumps(data), status, media_type="application/json")
        troubled = [
            f"{owner_state.owner}: {owner_state.state} since {owner_state.since}. {owner_state.why}"
            for owner_state in owners
            if owner_state.state != "working"
        ]
        lines = [missing or "ready", f"isolation: {isolation}", f"spark: {spark}", *troubled]
        return Response("\n".join(lines) + "\n", status, media_type="text/plain")

    @app.get("/metrics")
    def metrics() -> Response:
        queue_numbers = (nan, nan, nan)
        with suppress(MergeplanError):  # of the database: without these an alert would say that no service runs
            depth = context.inbox.queue.depth()
            queue_numbers = (depth.due, depth.oldest_seconds, depth.claimed)
        for gauge, number in zip((QUEUE, AGE, CLAIMED), queue_numbers, strict=True):
            gauge.set(number)
        for installation, remaining_calls in context.forge.budget().items():
            BUDGET.labels(installation).set(remaining_calls)
        OWNERS.clear()
        for owner in context.forge.owners.states():
            OWNERS.labels(owner.owner, owner.state).set(1)
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    app.add_route(PATH, page_handler(context), methods=["GET"], include_in_schema=False)
    app.router.routes.extend(catalog_routes(context))
    return app


def not_ready(context: BotContext) -> str:
    """Return the reason why the service cannot work; '' if there is none."""
    if context.closing.is_set():
        return "closing"
    try:
        with TemporaryFile(dir=context.settings.home, buffering=0) as file:
            file.write(b"\0" * 4096)  # a full disk has room for an empty file
    except OSError as error:
        return f"the home folder cannot be written: {error.strerror}"
    try:
        context.inbox.ping()
    except MergeplanError as error:
        return str(error)
    try:
        context.forge.login()
    except (ForgeFailed, ForgePaused) as error:
        return f"the bot is not logged in to GitHub: {error}"
    if context.forge.owners.refused:
        return f"GitHub refuses the App: {context.forge.owners.refused}"
    owners = context.forge.owners.states()
    if owners and all(owner.state in SHUT for owner in owners):
        return "the App works for no owner"
    return ""
