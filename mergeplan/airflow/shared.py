"""An answer that many triggers share. Standard library only."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """An answer that many triggers need, fetched once every `seconds` for all of them."""

    def __init__(self, ask: Callable[[], Awaitable[T]], seconds: float) -> None:
        self._ask, self._seconds = ask, seconds
        self._lock, self._asked_at = asyncio.Lock(), -math.inf
        self._answer: T | None = None

    async def get(self) -> T | None:
        """Return the answer, no older than `seconds`."""
        async with self._lock:
            if time.monotonic() - self._asked_at >= self._seconds:
                self._answer = await self._ask()
                self._asked_at = time.monotonic()
            return self._answer
