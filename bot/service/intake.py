"""Webhooks that came together are stored with one commit: each is answered when it is durable, and not before."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from starlette.concurrency import run_in_threadpool

from mergeplan.bot.github.events import Event

GATHER_SECONDS = 0.005


class Intake:
    """Stores deliveries in groups: while one group is being written, the next one gathers.

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
