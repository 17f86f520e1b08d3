"""The recorded results of audits, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from mergeplan.planner.intervals import Interval
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.passed.audit_results import KEPT, RecordedAudit
from mergeplan.planner.state.store import StateStore

pytestmark = pytest.mark.usefixtures("state_url")  # on both databases

DAY = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
ORDERS = RecordedAudit("prod", "shop.orders", "not_null", "t1", 0, True, DAY, (("columns", "(id)"),))
SALES = RecordedAudit("dev", "shop.sales", "positive", "t2", 3, False)
ALONE = RecordedAudit("prod", "", "no_gaps", "", 2, True)


def test_a_result_is_read_as_it_was_recorded(store: StateStore) -> None:
    store.audit_results.record([ORDERS])

    (read,) = store.audit_results.load()

    assert read.at is not None and abs(read.at - datetime.now(UTC)) < timedelta(minutes=5)
    assert read == RecordedAudit(**{**vars(ORDERS), "at": read.at})


def test_results_are_told_apart_by_model_environment_and_audit(store: StateStore, state_url: str) -> None:
    store.audit_results.record([ORDERS, SALES, ALONE])
    other = StateStore(state_url, uuid.uuid4().hex)

    def names(**asked: object) -> set[str]:
        return {result.audit for result in store.audit_results.load(**asked)}  # type: ignore[arg-type]

    assert names(models={"shop.orders"}) == {"not_null"}
    assert names(environment="prod") == {"not_null", "no_gaps"}
    assert names(audit="positive") == {"positive"}
    assert other.audit_results.load() == ()
    other.close()


@pytest.mark.parametrize(("result", "outcome"), [(ORDERS, "passed"), (SALES, "warned"), (ALONE, "failed")])
def test_the_outcome_follows_from_the_rows_and_whether_they_block(result: RecordedAudit, outcome: str) -> None:
    assert result.outcome == outcome


def test_the_newest_come_first_and_what_is_older_than_three_months_goes(store: StateStore) -> None:
    store.audit_results.record([ORDERS])
    with store.database.writing() as tx:
        tx.execute(tx.update(t.audit_results).values(at=tx.now() - KEPT + timedelta(minutes=1)))
    store.audit_results.record([SALES])
    assert [result.audit for result in store.audit_results.load()] == ["positive", "not_null"]

    with store.database.writing() as tx:
        tx.execute(tx.update(t.audit_results).values(at=tx.now() - KEPT - timedelta(minutes=1)))
    store.audit_results.record([ALONE])
    assert [result.audit for result in store.audit_results.load()] == ["no_gaps"]
