"""Retry calls to GitHub: all callers keep a pause that GitHub requested; transient failures are retried."""

import json
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import requests
import structlog
from github import GithubException, RateLimitExceededException

from mergeplan.bot.forge.failures import ForgeFailed, ForgePaused

T = TypeVar("T")
log = structlog.get_logger(__name__)
READ_TRIES = 4
LONGEST_WAIT = 5.0  # a pause longer than this is left to the job: it comes back when the pause is over
SECONDARY_WAIT = 60.0
LONGEST_PAUSE = 3700.0  # GitHub counts by the hour; what asks for more is a clock that goes wrong


class Pause:
    """One installation's silence: while it lasts, every call of that installation waits."""

    def __init__(self) -> None:
        self._until = 0.0
        self._lock = threading.Lock()

    def ask(self, seconds: float) -> None:
        with self._lock:
            self._until = max(self._until, time.time() + seconds)
        log.warning("github_paused", seconds=round(seconds, 1))

    @property
    def remaining_seconds(self) -> float:
        with self._lock:
            return max(0.0, self._until - time.time())

    def wait(self) -> None:
        """Wait out a short pause; ForgePaused for a long one."""
        pause_seconds = self.remaining_seconds
        if pause_seconds > LONGEST_WAIT:
            raise ForgePaused(pause_seconds)
        if pause_seconds:
            threading.Event().wait(pause_seconds)


def call_patiently(pause: Pause, call: Callable[[], T], tries: int = READ_TRIES) -> T:
    """Make a call; repeat it after a pause that GitHub requested, and a few times if GitHub is unreachable."""
    most, limit = max(tries, READ_TRIES), None
    for attempt in range(1, most + 1):
        pause.wait()
        try:
            return call()
        except ForgeFailed as error:
            failure, limit = error, None
        except GithubException as error:
            failure, limit = ForgeFailed(_error_message(error), error.status), rate_limit_wait(error)
        except (requests.RequestException, ConnectionError, TimeoutError, json.JSONDecodeError) as error:
            failure, limit = ForgeFailed(f"GitHub is out of reach: {type(error).__name__}."), None
        if limit is not None:
            pause.ask(limit)
        elif tries == 1 or attempt == most or not failure.is_passing:
            raise failure
        else:
            threading.Event().wait(random.uniform(0, min(5.0, 0.3 * 2 ** (attempt - 1))))  # noqa: S311 - no secret
    raise ForgePaused(max(pause.remaining_seconds, 1.0))


def rate_limit_wait(error: GithubException) -> float | None:
    """Return the pause that GitHub requests, None if the error is no rate limit."""
    if error.status not in (403, 429):
        return None
    headers = {key.lower(): value for key, value in (error.headers or {}).items()}
    retry_after, reset = str(headers.get("retry-after", "")), str(headers.get("x-ratelimit-reset", ""))
    if retry_after.isdecimal():
        return min(float(retry_after), LONGEST_PAUSE)
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return min(max(1.0, float(reset) - time.time() + 1), LONGEST_PAUSE)
    return SECONDARY_WAIT if error.status == 429 or isinstance(error, RateLimitExceededException) else None


def _error_message(error: GithubException) -> str:
    data = error.data if isinstance(error.data, dict) else {}
    by_graphql = data.get("errors")
    first = by_graphql[0] if isinstance(by_graphql, list) and by_graphql and isinstance(by_graphql[0], dict) else {}
    message = data.get("message") or first.get("message")
    return f"GitHub answered {error.status}: {str(message or 'no reason given')[:300]}"
