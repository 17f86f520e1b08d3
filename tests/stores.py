"""State stores of tests, which are closed when their test ends."""

from __future__ import annotations

from datetime import timedelta

from mergeplan.planner.state.leases import Lease, _update_lease
from mergeplan.planner.state.store import StateStore

_OPENED: list[StateStore] = []


def open_store(url: str, project: str = "") -> StateStore:
    """Return a store that `close_stores` closes."""
    _OPENED.append(StateStore(url, project))
    return _OPENED[-1]


def close_stores() -> None:
    """Close what `open_store` opened: Python 3.13 reports a connection that nobody closed, in a later test."""
    while _OPENED:
        _OPENED.pop().close()


def take_lease_over(store: StateStore, name: str) -> None:
    """Let a lease expire, as if its holder slept, and give it to another process."""
    with store.leases._database.writing() as tx:
        tx.execute(_update_lease(tx, name).values(expires_at=tx.now() - timedelta(seconds=1)))
    assert isinstance(store.leases._take_lease(name, "another process", ttl=600), Lease)
