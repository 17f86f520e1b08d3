"""Ending a call: from its events, from another thread, by an interrupt; the next one goes on from there."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import AuditRan, BatchDone, Event, Stage, StageStarted
from mergeplan.planner.checks.audits import AuditResult
from mergeplan.planner.engine.protocol import Rows
from mergeplan.planner.errors import Cancelled, RequestError
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.use_cases.cancelling import Cancellation
from mergeplan.planner.state.store import StateStore

DAYS = 5


def days(events: list[Event]) -> int:
    return sum(isinstance(event, BatchDone) and event.model == "shop.daily" for event in events)


def ending(events: list[Event], end: Callable[[], object]) -> Callable[[Event], None]:
    """Ends the call when two days of `shop.daily` are computed."""

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, BatchDone) and days(events) == 2:
            end()

    return on_event


@pytest.mark.parametrize("how", [pytest.param("cancel", marks=pytest.mark.prove), "interrupt"])
def test_a_call_that_was_ended_goes_on_where_it_was(how: str, shop: Callable[..., Session]) -> None:
    session, before, after = shop(), list[Event](), list[Event]()
    plan, handler = session.plan(), signal.getsignal(signal.SIGINT)
    end = session.cancel if how == "cancel" else lambda: os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Cancelled):
        plan.apply(on_event=ending(before, end))
    promoted = [environment.name for environment in session.environments()]
    outcome = plan.apply(on_event=after.append)

    assert promoted == []
    assert days(before) + days(after) == DAYS
    assert 2 <= days(before) < DAYS
    assert outcome.promoted is not None
    assert session.fetch("SELECT id FROM shop.daily ORDER BY id").rows == ((1,), (2,), (3,))
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_call_that_waits_for_its_turn_can_be_cancelled(shop: Callable[..., Session], tmp_path: Path) -> None:
    session, raised = shop(items="", daily="", total="", shown=""), list[BaseException]()
    plan = session.plan()

    def apply() -> None:
        try:
            plan.apply()
        except Cancelled as error:
            raised.append(error)

    store = StateStore(f"sqlite:///{tmp_path}/.mergeplan/state.db")
    with store.leases.hold("prod", "somebody"):
        waiting = threading.Thread(target=apply)
        waiting.start()
        while waiting.is_alive():
            session.cancel()
            waiting.join(0.2)
    store.close()

    assert len(raised) == 1
    assert session.environments() == ()


def test_another_call_from_on_event_is_refused(shop: Callable[..., Session]) -> None:
    session = shop(items="", daily="", total="", shown="")

    with pytest.raises(RequestError, match="Another call of this session is under way"):
        session.plan().apply(on_event=lambda _: session.environments() and None)


def test_cancelling_nothing_is_nothing(offline: Session) -> None:
    offline.cancel()

    assert offline.plan("dev").changes


def test_what_has_begun_to_be_decided_is_decided() -> None:
    """An audit that found rows takes them back first, and a promotion comes to its end."""
    asked, seen = Cancellation(), list[Event]()
    emit = asked.checking(seen.append)
    asked.ask()

    emit(AuditRan("shop.a", AuditResult("not_null", "shop.a", True, 1, Rows((), ()), "")))
    emit(StageStarted(Stage.PROMOTE, 1))
    with pytest.raises(Cancelled):
        emit(StageStarted(Stage.BACKFILL, 1))
    assert len(seen) == 3
