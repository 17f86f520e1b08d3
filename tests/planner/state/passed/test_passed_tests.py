"""Which unit tests are kept as passed, and for how long; on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
import sqlalchemy as sa

from mergeplan.planner.state import tables as t
from mergeplan.planner.state.passed.passed_tests import KEPT
from mergeplan.planner.state.store import StateStore

pytestmark = pytest.mark.usefixtures("state_url")  # on both databases


def age(store: StateStore, by: timedelta) -> None:
    """Let what is kept be older."""
    with store.database.writing() as tx:
        mine = t.passed_tests.c
        for row in tx.execute(tx.select(t.passed_tests)).all():
            tx.execute(tx.update(t.passed_tests).where(mine.digest == row.digest).values(at=row.at - by))


def test_a_digest_that_was_kept_is_found_in_its_own_project_alone(store: StateStore, state_url: str) -> None:
    store.passed_tests.record(["a", "b"])
    store.passed_tests.record(["b"])

    other = StateStore(state_url, uuid.uuid4().hex)
    assert store.passed_tests.filter_passed(["a", "b", "c"]) == {"a", "b"}
    assert other.passed_tests.filter_passed(["a"]) == frozenset()
    other.close()


def test_what_nobody_asks_about_is_dropped_and_what_is_asked_about_stays(store: StateStore) -> None:
    store.passed_tests.record(["asked", "left"])
    age(store, KEPT - timedelta(days=1))
    assert store.passed_tests.filter_passed(["asked"]) == {"asked"}
    age(store, timedelta(days=2))

    store.passed_tests.record(["new"])

    with store.database.reading() as tx:
        kept = tx.execute(sa.select(t.passed_tests.c.digest).where(tx.own(t.passed_tests))).scalars()
        assert set(kept) == {"asked", "new"}
