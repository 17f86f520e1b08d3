"""State stores of tests, which are closed when their test ends."""

from __future__ import annotations

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
