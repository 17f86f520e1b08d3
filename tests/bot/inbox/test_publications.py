"""Publications in the database: the readers of a table, the changed tables, and who may see names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.inbox.publications import ProjectReads
from mergeplan.bot.readers.publication import Publication, TableReader
from tests.planner.conftest import empty_url, new_postgresql, postgresql  # noqa: F401 - fixtures

ORDERS, FX = "spark_catalog.core.orders", "spark_catalog.core.fx"
REVENUE, STAR = TableReader("finance.revenue", ("amount",), "fin"), TableReader("finance.star", None)


@pytest.fixture(name="inboxes")
def _inboxes(empty_url: str) -> Iterator[tuple[Inbox, Inbox]]:  # noqa: F811 - a fixture
    """Two services on one database."""
    both = Inbox(empty_url), Inbox(empty_url)
    yield both
    for inbox in both:
        inbox.close()


def test_what_one_service_publishes_another_one_finds(inboxes: tuple[Inbox, Inbox]) -> None:
    one, other = (inbox.publications for inbox in inboxes)
    changed = one.put("acme/finance", "c1:1", Publication({"f.m": "s.f.m"}, {ORDERS: (REVENUE,), FX: (STAR,)}))
    assert changed == {ORDERS, FX}
    assert other.find_reads({ORDERS, "s.no.table"}, but="acme/core") == (
        ProjectReads("acme/finance", (), {ORDERS: (REVENUE,)}),
    )
    assert other.find_reads({ORDERS}, but="acme/finance") == ()
    assert (other.mark("acme/finance"), other.views("acme/finance")) == ("c1:1", {"f.m": "s.f.m"})


def test_a_later_publication_replaces_the_first_and_names_what_differs(inboxes: tuple[Inbox, Inbox]) -> None:
    one, other = (inbox.publications for inbox in inboxes)
    one.put("acme/finance", "c1:1", Publication(reads={ORDERS: (REVENUE,), FX: (STAR,)}))
    assert other.put("acme/finance", "c2:2", Publication(reads={ORDERS: (REVENUE,)})) == {FX}
    assert one.find_reads({FX}, but="") == ()


def test_who_may_see_names_outlives_a_publication_and_comes_before_one(inboxes: tuple[Inbox, Inbox]) -> None:
    one, other = (inbox.publications for inbox in inboxes)
    assert one.show_to("acme/finance", ("acme/core",)) == frozenset()
    one.put("acme/finance", "c1:1", Publication(reads={ORDERS: (REVENUE,)}))
    assert other.find_reads({ORDERS}, but="")[0].shown_to == ("acme/core",)
    assert other.show_to("acme/finance", ()) == {ORDERS}
    assert one.find_reads({ORDERS}, but="")[0].shown_to == ()
    assert one.mark("acme/finance") == "c1:1"
