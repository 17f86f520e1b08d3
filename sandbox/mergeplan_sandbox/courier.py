"""Hands over webhooks: one thread, in order, signed, each attempt logged; GitHub never tries again by itself."""

import contextlib
import hashlib
import hmac
import http.client
import json
import threading
import time
import urllib.parse
import uuid
from dataclasses import dataclass, field, replace

from mergeplan_sandbox.api.limits import WEBHOOK_TIMEOUT_SECONDS
from mergeplan_sandbox.faults import Faults
from mergeplan_sandbox.state import Delivery, Hook, Json, State, now


@dataclass(frozen=True)
class Parcel:
    guid: str
    event: str
    action: str | None
    installation_id: int | None
    repository_id: int | None
    payload: Json = field(repr=False)
    redelivery: bool = False
    not_before: float = 0.0


@dataclass(frozen=True)
class Attempt:
    status: str
    code: int


def sign_body(secret: str, body: bytes) -> str:
    """Return the value of `X-Hub-Signature-256` for this body."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def webhook_headers(hook: Hook, app_id: int, parcel: Parcel, body: bytes) -> dict[str, str]:
    return {
        "Accept": "*/*",
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/sandbox",
        "X-GitHub-Delivery": parcel.guid,
        "X-GitHub-Event": parcel.event,
        "X-GitHub-Hook-ID": str(hook.id),
        "X-GitHub-Hook-Installation-Target-ID": str(app_id),
        "X-GitHub-Hook-Installation-Target-Type": "integration",
        "X-Hub-Signature-256": sign_body(hook.secret, body),
    }


class Courier:
    """The queue of webhooks and the thread that empties it."""

    def __init__(self, state: State, faults: Faults) -> None:
        self._state = state
        self._faults = faults
        self._wake = threading.Condition()
        self._queue: list[Parcel] = []
        self._held: list[Parcel] = []
        self._sending = False
        self._stopped = False
        self._thread = threading.Thread(target=self._deliver_parcels, name="sandbox-courier", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; webhooks that wait are not sent."""
        with self._wake:
            self._stopped = True
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join(WEBHOOK_TIMEOUT_SECONDS + 1)

    def send(
        self, event: str, payload: Json, *, installation_id: int | None = None, repository_id: int | None = None
    ) -> None:
        """Queue a webhook under a new GUID, or treat it as a fault says."""
        frozen = json.loads(json.dumps(payload))
        parcel = Parcel(str(uuid.uuid4()), event, frozen.get("action"), installation_id, repository_id, frozen)
        fault = self._faults.take_webhook_fault(event, parcel.action)
        if fault is None:
            self._enqueue_parcels(parcel)
        elif fault.kind == "drop":
            self._log_delivery(parcel, Attempt("dropped", 0), 0.0)
        elif fault.kind == "duplicate":
            self._enqueue_parcels(parcel, parcel)
        elif fault.kind == "delay":
            self._enqueue_parcels(replace(parcel, not_before=time.monotonic() + fault.seconds))
        else:
            with self._wake:
                self._held.append(parcel)
            if fault.times == 0:
                self._release_parcels()

    def redeliver(self, delivery: Delivery) -> None:
        """Send a logged webhook again with its old GUID; no fault applies to it."""
        self._enqueue_parcels(
            Parcel(
                delivery.guid,
                delivery.event,
                delivery.action,
                delivery.installation_id,
                delivery.repository_id,
                delivery.payload,
                redelivery=True,
            )
        )

    def wait_idle(self, timeout: float) -> None:
        """Release held webhooks and wait until none is pending; raise TimeoutError after `timeout` seconds."""
        self._release_parcels()
        with self._wake:
            if not self._wake.wait_for(lambda: not self._queue and not self._sending, timeout):
                raise TimeoutError(f"{len(self._queue)} webhooks were still waiting after {timeout} seconds")

    def _enqueue_parcels(self, *parcels: Parcel) -> None:
        with self._wake:
            self._queue.extend(parcels)
            self._wake.notify_all()

    def _release_parcels(self) -> None:
        with self._wake:
            deliveries, self._held = self._held[::-1], []
        self._enqueue_parcels(*deliveries)

    def _next_parcel(self) -> Parcel | None:
        with self._wake:
            self._sending = False
            self._wake.notify_all()
            while not self._stopped:
                clock = time.monotonic()
                due = next((parcel for parcel in self._queue if parcel.not_before <= clock), None)
                if due:
                    self._queue.remove(due)
                    self._sending = True
                    return due
                self._wake.wait(min((parcel.not_before - clock for parcel in self._queue), default=None))
        return None

    def _deliver_parcels(self) -> None:
        while parcel := self._next_parcel():
            started = time.monotonic()
            attempt = self._attempt_delivery(parcel)
            self._log_delivery(parcel, attempt, time.monotonic() - started)

    def _attempt_delivery(self, parcel: Parcel) -> Attempt:
        with self._state.lock:
            hook = replace(self._state.hook)
        if not hook.url:
            return Attempt("no webhook URL configured", 0)
        body = json.dumps(parcel.payload).encode()
        try:
            code = post_webhook(hook.url, body, webhook_headers(hook, self._state.app.id, parcel, body))
        except TimeoutError:
            return Attempt("timed out", 0)
        except (OSError, http.client.HTTPException):
            return Attempt("failed to connect to host", 0)
        return Attempt("OK" if 200 <= code < 300 else f"Invalid HTTP Response: {code}", code)

    def _log_delivery(self, parcel: Parcel, attempt: Attempt, duration: float) -> None:
        with self._state.lock:
            self._state.version += 1
            self._state.deliveries.append(
                Delivery(
                    id=self._state.next_id(),
                    guid=parcel.guid,
                    event=parcel.event,
                    action=parcel.action,
                    installation_id=parcel.installation_id,
                    repository_id=parcel.repository_id,
                    delivered_at=now(),
                    duration=round(duration, 3),
                    status=attempt.status,
                    status_code=attempt.code,
                    redelivery=parcel.redelivery,
                    payload=parcel.payload,
                )
            )


def post_webhook(url: str, body: bytes, fields: dict[str, str]) -> int:
    """Post the body and return the answer's status; follow no redirect."""
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=WEBHOOK_TIMEOUT_SECONDS)
    with contextlib.closing(connection):
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body=body, headers=fields)
        return connection.getresponse().status
