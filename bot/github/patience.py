"""Retry calls to GitHub: all callers keep a pause that GitHub requested; transient failures are retried."""

import json
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import requests
import structlog
import tenacity
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

    def once() -> T:
        pause.wait()
        try:
            return call()
        except GithubException as error:
            wait = rate_limit_wait(error)
            if wait is not None:
                pause.ask(wait)
                raise _Limited from error
            raise ForgeFailed(_error_message(error), error.status) from error
        except (requests.RequestException, ConnectionError, TimeoutError, json.JSONDecodeError) as error:
            raise ForgeFailed(f"GitHub is out of reach: {type(error).__name__}.") from error

    def again(error: BaseException) -> bool:
        if isinstance(error, _Limited):
            return True
        return tries > 1 and isinstance(error, ForgeFailed) and error.is_passing

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return 0.0 if isinstance(error, _Limited) else tenacity.wait_random_exponential(multiplier=0.3, max=5)(state)

    # Nearly every call succeeds at once, and what repeats it takes ten times as long to set up as the call itself.
    first: list[BaseException] = []
    try:
        return once()
    except (ForgeFailed, _Limited) as error:
        first.append(error)

    def once_more() -> T:
        if first:
            raise first.pop()
        return once()

    stop = tenacity.stop_after_attempt(max(tries, READ_TRIES))
    retrying = tenacity.Retrying(retry=tenacity.retry_if_exception(again), wait=wait, stop=stop, reraise=True)
    try:
        return retrying(once_more)
    except _Limited as error:
        raise ForgePaused(max(pause.remaining_seconds, 1.0)) from error


class _Limited(Exception):
    """A rate limit was met; the pause is set."""


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
