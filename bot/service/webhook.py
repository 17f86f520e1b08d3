"""The door for webhooks: a delivery is verified, stored for good, answered; no more."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mergeplan.bot.context import BotContext
from mergeplan.bot.forge.events import MAX_BYTES, TOO_LARGE, Event, Ignored, InvalidDelivery
from mergeplan.bot.metrics import DELIVERIES
from mergeplan.bot.service.connections import Limits
from mergeplan.planner.errors import MergeplanError

log = structlog.get_logger(__name__)
GATHER_SECONDS = 0.005


class WebhookDoor:
    """The ASGI application of `/webhook`."""

    def __init__(self, context: BotContext, limits: Limits) -> None:
        self._context = context
        self._small = limits.small
        self._room = BodyRoom(limits)
        self._intake = Intake(context.inbox.deliveries.receive_all, limits.group)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            answer = await self._answer_request(Request(scope, receive))
        else:
            answer = Response(status_code=405, headers={"Allow": "POST"})
        await answer(scope, receive, send)

    async def _answer_request(self, request: Request) -> Response:
        # Of a header that is sent twice the first counts.
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in reversed(request.headers.raw)}
        refused = self._context.forge.check_headers(headers)
        if refused:
            return _refuse_delivery(refused)
        with self._room.body() as body:
            unread = await self._room.read(request, body)
            if unread:
                return _refuse_delivery(unread)
            # What is small is read at once: changing threads costs more. What is large would keep all others waiting.
            if len(body) <= self._small:
                read = self._context.forge.read_delivery(headers, bytes(body))
            else:
                read = await run_in_threadpool(self._context.forge.read_delivery, headers, bytes(body))
        return await self._take_in(read) if isinstance(read, Event) else _refuse_delivery(read)

    async def _take_in(self, event: Event) -> Response:
        about = {"delivery": event.guid, "kind": event.kind, "repository": event.repository or event.owner}
        try:
            with self._context.tracing.span("delivery", **about, pull_request=event.number) as trace:
                fresh = await self._intake.take(replace(event, trace=trace) if trace else event)
        except MergeplanError as error:
            log.error("delivery_not_stored", delivery=event.guid, why=error.message)
            DELIVERIES.labels("not_stored").inc()
            return _text_response("not stored, send it again\n", 503)
        if event.owner:
            self._context.forge.owners.forget(event.owner)
            self._context.look.set()
        log.info(
            "delivery",
            delivery=event.guid,
            kind=event.kind,
            repository=event.repository or event.owner,
            pull_request=event.number,
            fresh=fresh,
        )
        DELIVERIES.labels("accepted" if fresh else "duplicate").inc()
        return _text_response("accepted\n" if fresh else "known already\n", 202)


def _refuse_delivery(read: Ignored | InvalidDelivery) -> Response:
    if isinstance(read, Ignored):
        DELIVERIES.labels("ignored").inc()
        return _text_response(f"ignored: {read.why}\n", 202)
    DELIVERIES.labels("refused").inc()
    log.warning("delivery_refused", status=read.status, why=read.why)
    return _text_response(f"{read.why}\n", read.status)


def _text_response(text: str, status: int) -> Response:
    return Response(text, status, media_type="text/plain")


class BodyRoom:
    """The budget of memory for large bodies whose senders are not known yet; all methods run in the server's loop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._left = limits.bodies

    @contextmanager
    def body(self) -> Iterator[bytearray]:
        """Yield a buffer for a body and release its share of the memory budget afterwards."""
        body = bytearray()
        try:
            yield body
        finally:
            self._left += self._count_bytes(body)

    async def read(self, request: Request, body: bytearray) -> InvalidDelivery | None:
        """Read a request's bytes; return a refusal if they are too many, come too slowly, or stop coming."""
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for part in request.stream():
                    old_count = self._count_bytes(body)
                    body += part
                    self._left -= self._count_bytes(body) - old_count
                    if len(body) > MAX_BYTES:
                        return TOO_LARGE
                    if self._left < 0 and self._count_bytes(body):
                        return InvalidDelivery(503, "too many large bodies at the same time, send it again")
        except ClientDisconnect:
            return InvalidDelivery(400, "the sender left before its body had come")
        except TimeoutError:
            return InvalidDelivery(408, "the body came too slowly")
        return None

    def _count_bytes(self, body: bytearray) -> int:
        return max(0, len(body) - self._limits.small)


class Intake:
    """Stores deliveries in groups, each with one commit: while one group is written, the next one gathers.

    All methods run in the server's one loop. A delivery that comes alone is stored alone, at once; only where one
    group follows upon another it gathers for a moment longer, for a commit costs more than many deliveries.
    """

    def __init__(self, receive: Callable[[Sequence[Event]], Sequence[bool | Exception]], most: int) -> None:
        self._receive = receive
        self._most = most
        self._waiting: deque[tuple[Event, asyncio.Future[bool]]] = deque()
        self._storing: asyncio.Task[None] | None = None

    async def take(self, event: Event) -> bool:
        """Wait until the delivery is stored; return False if its GUID was known already, raise if storing fails."""
        durable = asyncio.get_running_loop().create_future()
        self._waiting.append((event, durable))
        if self._storing is None:
            self._storing = asyncio.create_task(self._store_waiting())
        return bool(await durable)

    async def _store_waiting(self) -> None:
        try:
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
                await self._store_group(group)
                if self._waiting:
                    await asyncio.sleep(GATHER_SECONDS)
        finally:
            self._storing = None

    async def _store_group(self, group: Sequence[tuple[Event, asyncio.Future[bool]]]) -> None:
        taken: Sequence[bool | Exception]
        try:
            taken = await run_in_threadpool(self._receive, [event for event, _ in group])
        except Exception as error:  # whatever it is, each request has to be answered
            taken = [error] * len(group)
        for (_, durable), result in zip(group, taken, strict=True):
            if durable.done():
                continue  # its request was given up meanwhile
            if isinstance(result, Exception):
                durable.set_exception(result)
            else:
                durable.set_result(result)
