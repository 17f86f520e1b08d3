"""The switches that make the sandbox misbehave: webhooks lost or doubled, calls refused, slow, or never answered."""

import re
import threading
from dataclasses import dataclass
from typing import Literal

WebhookFaultKind = Literal["drop", "duplicate", "reorder", "delay"]
ApiFaultKind = Literal["fail", "slow", "rate_limit", "lose_answer"]


@dataclass
class WebhookFault:
    kind: WebhookFaultKind
    event: str
    times: int
    seconds: float = 0.0

    def matches(self, event: str, action: str | None) -> bool:
        """Return True if it matches `*` (all), `issue_comment` (an event) or `issue_comment.created` (an action)."""
        return self.event in ("*", event, f"{event}.{action}")


@dataclass(frozen=True)
class RateLimit:
    """How an answer says that there were too many calls: 403 or 429, and seconds to wait."""

    status: int = 403
    retry_after: int | None = None
    reset_in: int | None = None


@dataclass
class ApiFault:
    kind: ApiFaultKind
    method: str
    path: str
    times: int
    status: int = 500
    seconds: float = 0.0
    retry_after: int | None = None
    reset_in: int | None = None
    owner: str = ""

    def matches(self, method: str, path: str, owner: str) -> bool:
        """Return True if the method (a word or `*`) and the path (a regular expression) match.

        With an owner, only calls with a token of its installation match.
        """
        owner_matches = self.owner in ("", owner)
        return owner_matches and self.method in ("*", method) and re.search(self.path, path) is not None


class Faults:
    """Faults wait here until something matches; each is used up after `times` matches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._webhooks: list[WebhookFault] = []
        self._calls: list[ApiFault] = []
        self._unknown_mergeability = 0

    def drop(self, event: str = "*", *, times: int = 1) -> None:
        """Log the next matching webhooks as undelivered and never send them; they can be redelivered."""
        self._add_webhook(WebhookFault("drop", event, times))

    def duplicate(self, event: str = "*", *, times: int = 1) -> None:
        """Send the next matching webhooks twice with the same GUID."""
        self._add_webhook(WebhookFault("duplicate", event, times))

    def reorder(self, event: str = "*", *, times: int = 2) -> None:
        """Hold the next `times` matching webhooks and then send them in reverse order."""
        self._add_webhook(WebhookFault("reorder", event, times))

    def delay(self, seconds: float, event: str = "*", *, times: int = 1) -> None:
        """Send the next matching webhooks that much later, after those that follow them in the meantime."""
        self._add_webhook(WebhookFault("delay", event, times, seconds))

    def fail(self, method: str, path: str, *, status: int = 500, times: int = 1) -> None:
        """Answer the next matching calls with that status and do nothing."""
        self._add_call(ApiFault("fail", method, path, times, status=status))

    def slow(self, method: str, path: str, *, seconds: float, times: int = 1) -> None:
        """Answer the next matching calls that much later."""
        self._add_call(ApiFault("slow", method, path, times, seconds=seconds))

    def rate_limit(
        self,
        method: str = "*",
        path: str = "",
        *,
        says: RateLimit = RateLimit(),
        times: int = 1,
        owner: str = "",
    ) -> None:
        """Refuse the next matching calls with `retry-after`, or with a budget that is empty until a reset."""
        fault = ApiFault("rate_limit", method, path, times, status=says.status, owner=owner)
        fault.retry_after, fault.reset_in = says.retry_after, says.reset_in
        self._add_call(fault)

    def lose_answer(self, method: str, path: str, *, status: int | None = None, times: int = 1) -> None:
        """Do the work of the next matching calls, then break the connection, or answer `status` (502) like a proxy."""
        self._add_call(ApiFault("lose_answer", method, path, times, status=status or 0))

    def mergeability_unknown(self, *, times: int = 1) -> None:
        """Make the next answers that show one pull request say `mergeable: null`, as GitHub does while it computes."""
        with self._lock:
            self._unknown_mergeability += times

    def clear(self) -> None:
        with self._lock:
            self._webhooks.clear()
            self._calls.clear()
            self._unknown_mergeability = 0

    def pending_faults(self) -> list[WebhookFault | ApiFault]:
        with self._lock:
            return [*self._webhooks, *self._calls]

    def take_webhook_fault(self, event: str, action: str | None) -> WebhookFault | None:
        with self._lock:
            for fault in self._webhooks:
                if fault.matches(event, action):
                    fault.times -= 1
                    self._webhooks = [candidate for candidate in self._webhooks if candidate.times > 0]
                    return fault
        return None

    def take_call_fault(self, method: str, path: str, owner: str = "") -> ApiFault | None:
        with self._lock:
            for fault in self._calls:
                if fault.matches(method, path, owner):
                    fault.times -= 1
                    self._calls = [candidate for candidate in self._calls if candidate.times > 0]
                    return fault
        return None

    def hides_mergeability(self) -> bool:
        """Take one use of the switch that hides whether a pull request can be merged."""
        with self._lock:
            hidden = self._unknown_mergeability > 0
            self._unknown_mergeability -= int(hidden)
            return hidden

    def _add_webhook(self, fault: WebhookFault) -> None:
        with self._lock:
            self._webhooks.append(fault)

    def _add_call(self, fault: ApiFault) -> None:
        with self._lock:
            self._calls.append(fault)
