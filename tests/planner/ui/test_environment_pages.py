"""Environments as pages: their history, a rollback that is shown before it is done, runs and drops by a form."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.api.access import Access, Mode
from mergeplan.planner.api.jobs.job import JobKind
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from mergeplan.planner.plan.schedule import EPOCH
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.environments import Cause
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot
from tests.planner.ui.conftest import Browser, Open, printing

DONE = '{"event":"result","version":1,"ok":true}'


@pytest.fixture(name="browser")
def _browser(browse: Open, tmp_path: Path) -> Browser:
    """The pages of a shop with prod at revision 2, and dev."""
    (tmp_path / ".mergeplan").mkdir()
    promote(tmp_path)
    return browse(None, printing(DONE))


def promote(root: Path) -> None:
    """Promote prod twice, and dev once, without Spark."""
    with closing(StateStore(f"sqlite:///{root / '.mergeplan' / 'state.db'}")) as store:
        for name, version, who in (("prod", "v1", "ann"), ("prod", "v2", "<b>bob</b>"), ("dev", "v2", "cid")):
            shown = [snapshot("shop.apart", version), snapshot("shop.items", "v1")]
            for one in shown:
                store.tables.register(one.table, ())
            with store.leases.hold(name, "test") as lease:
                old = store.environments.get(name) if name == "prod" and version == "v2" else Environment(name)
                cause = Cause(who=who, note=f"because of {version}")
                store.promotions.finish(lease, store.promotions.begin(lease, old, environment(name, *shown), cause))


def test_environments_are_listed_with_what_they_show(browser: Browser) -> None:
    page = browser.get("/environments")

    assert '<a href="/environments/prod"><code>prod</code></a></td><td data-label="Revision">2</td>' in page
    assert '<a href="/environments/dev">' in page


def test_the_history_says_who_and_why_and_offers_the_way_back(browser: Browser) -> None:
    page = browser.get("/environments/prod")

    assert "&lt;b&gt;bob&lt;/b&gt;" in page
    assert "because of v1" in page
    assert 'href="/environments/prod/rollback?revision=1"' in page
    assert "revision=2" not in page
    assert "Drop" not in page  # prod cannot be dropped
    assert "Drop dev" in browser.get("/environments/dev")


def test_a_model_has_its_versions_by_environment(browser: Browser) -> None:
    page = browser.get("/models/shop.apart")

    (row,) = [line for line in page.split("\n") if "<code>v2</code></td>" in line]
    assert 'href="/environments/dev"' in row
    assert 'href="/environments/prod"' in row


def test_a_model_has_the_types_rows_and_writes_of_its_table(browse: Open, tmp_path: Path) -> None:
    (tmp_path / ".mergeplan").mkdir()
    with closing(StateStore(f"sqlite:///{tmp_path / '.mergeplan' / 'state.db'}")) as store:
        total, day = snapshot("shop.total", "v1"), Interval(EPOCH, datetime(2026, 1, 6, tzinfo=UTC))
        store.tables.register(total.table, [Column("total", "bigint")])
        store.intervals.record(total.table, day)
        store.costs.record(total.table, day.start, units=1, rows=1_234, seconds=70)
        with store.leases.hold("prod", "test") as lease:
            store.promotions.finish(
                lease, store.promotions.begin(lease, Environment("prod"), environment("prod", total))
            )
    browser = browse()
    page = browser.get("/models/shop.total")

    assert '<span class="type">bigint</span>' in page  # the files alone do not say what SUM returns
    assert "<dt>Rows</dt><dd>1,234</dd>" in page
    assert '<td data-label="Time">all</td><td data-label="Rows">1,234</td><td data-label="Took">70 s</td>' in page
    assert '<span class="stat">1,234 rows</span>' in browser.get("/")


def test_a_rollback_is_shown_before_it_is_done(browser: Browser) -> None:
    page = browser.get("/environments/prod/rollback?revision=1")
    assert "Nothing is changed yet" in page
    assert "Move 1 view of <code>prod</code>" in page
    assert not browser.context.jobs.list()
    answer = browser.post("/environments/prod/rollback", revision="1", expected="2", note="the old one", sure="1")

    record = browser.context.jobs.get(answer.headers["location"].rpartition("/")[2])
    assert record
    assert record.kind is JobKind.ROLLBACK
    assert {"--to=1", "--note=the old one", "--who=local"} <= set(record.arguments)


@pytest.mark.parametrize(
    ("fields", "status", "sentence"),
    [
        ({"revision": "1", "expected": "1", "sure": "1"}, 409, "is at revision 2 by now"),
        ({"revision": "1", "expected": "2"}, 422, "is not checked"),
        ({"revision": "many", "expected": "2", "sure": "1"}, 422, "revision"),
    ],
)
def test_a_rollback_that_was_not_shown_so_is_refused(
    browser: Browser, fields: dict[str, str], status: int, sentence: str
) -> None:
    answer = browser.post("/environments/prod/rollback", **fields)

    assert answer.status_code == status
    assert sentence in answer.text
    assert not browser.context.jobs.list()


def test_a_revision_that_is_not_there_is_an_error_page(browser: Browser) -> None:
    assert "Back to the catalog" in browser.get("/environments/prod/rollback?revision=9", 422)
    assert "Back to the catalog" in browser.get("/environments/prod/rollback?revision=no", 422)


def test_a_run_and_a_drop_are_begun_by_a_form(browser: Browser) -> None:
    answers = [browser.post("/environments/dev/run", sure="1"), browser.post("/environments/dev/drop", sure="1")]
    prod = browser.post("/environments/prod/drop", sure="1")
    unsure = browser.post("/environments/dev/drop")

    assert [answer.status_code for answer in answers] == [303, 303]
    assert (prod.status_code, unsure.status_code) == (422, 422)
    assert {record.kind for record in browser.context.jobs.list()} == {JobKind.RUN, JobKind.INVALIDATE}


def test_a_mode_that_changes_no_environment_offers_no_form(browser: Browser) -> None:
    object.__setattr__(browser.context, "access", replace(browser.context.access, mode=Mode.PLAN))
    assert isinstance(browser.context.access, Access)
    page = browser.get("/environments/prod")

    assert "<form" not in page[page.index("<main") :]
    assert "rollback" not in page
    assert "<form" not in browser.get("/environments/prod/rollback?revision=1").partition("<main")[2]
    assert browser.post("/environments/prod/rollback", revision="1", expected="2", sure="1").status_code == 403
