"""Waiting for other programs, in proofs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")


def wait_for(what: str, ask: Callable[[], T | None], seconds: float = 300) -> T:
    """What `ask` returns in the end; a failed test when it returns nothing for long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := ask():
            return answer
        time.sleep(0.5)
    pytest.fail(f"waited {seconds:.0f} s for {what}")
