"""The first catalog of a large project takes minutes: an answer meanwhile says how far the reading is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mergeplan.planner.api import catalog_reader
from mergeplan.planner.api.catalog_reader import CatalogReader, CatalogSnapshot
from mergeplan.planner.api.first_reading import Progress, StillReading
from mergeplan.planner.catalog import build
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.state.store import StateStore
from tests.planner.session.conftest import refuse_engine
from tests.planner.shop import write_shop
from tests.planner.ui.conftest import Open, browse

__all__ = ["browse"]

UNUSED = {  # `price` of `shop.wide`
    "wide": "MODEL (name shop.wide, kind FULL);\nSELECT id, price FROM shop.daily",
    "narrow": "MODEL (name shop.narrow, kind FULL);\nSELECT id FROM shop.wide",
}


@pytest.fixture
def noted() -> threading.Event:
    """Is set once a reading has said how far it is, which takes a moment on a busy machine."""
    return threading.Event()


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch, noted: threading.Event) -> Iterator[threading.Event]:
    """Holds every reading of a catalog, with its files read and some queries followed, until it is set."""
    go_on, make = threading.Event(), CatalogReader._make

    def wait(reader: CatalogReader, environment: str) -> CatalogSnapshot:
        reader._note("Queries followed", 5000, 1200)
        noted.set()
        go_on.wait(60)
        return make(reader, environment)

    monkeypatch.setattr(CatalogReader, "_make", wait)
    yield go_on
    go_on.set()


def test_a_page_says_how_far_it_is_and_loads_itself_again(
    browse: Open, hold: threading.Event, noted: threading.Event
) -> None:
    browser = browse()
    browser.context.reader.first_page = 0.05
    browser.get("/", 503)
    assert noted.wait(60)
    for address in ("/", "/models/shop.daily", "/environments"):
        page = browser.get(address, 503)
        assert "Queries followed: 1,200 of 5,000." in page
        assert '<meta http-equiv="refresh" content="2">' in page
    hold.set()
    browser.context.reader.first_page = 60

    assert "shop.daily" in browser.get("/")


@pytest.mark.usefixtures("hold")
def test_a_program_is_asked_to_come_again(
    browse: Open, noted: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = browse()
    read, short = browser.context.reader.read, 0.05
    monkeypatch.setattr(CatalogReader, "read", lambda self, name="prod", patience=short: read(name, patience))
    browser.client.get("/api/v1/models")
    assert noted.wait(60)
    answer = browser.client.get("/api/v1/models")
    problem = answer.json()

    assert (answer.status_code, answer.headers["retry-after"], problem["retry"]) == (503, "2", True)
    assert "1,200 of 5,000" in problem["detail"]


def test_many_who_ask_at_once_start_one_reading(tmp_path: Path, hold: threading.Event) -> None:
    write_shop(tmp_path)
    reader = CatalogReader(SessionSettings(tmp_path, open_engine=refuse_engine))
    late: list[StillReading] = []

    def ask() -> None:
        with pytest.raises(StillReading) as error:
            reader.read(patience=0.1)
        late.append(error.value)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    readings = [thread for thread in threading.enumerate() if thread.name == "first catalog"]

    assert (len(late), len(readings)) == (20, 1)
    hold.set()
    assert len(reader.read(patience=60).models) == 5
    reader.close()


def test_a_reading_that_outlives_its_reader_closes_the_state(
    tmp_path: Path, hold: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shop(tmp_path)
    reader = CatalogReader(SessionSettings(tmp_path, open_engine=refuse_engine))
    stores, close = list[StateStore](), StateStore.close
    monkeypatch.setattr(StateStore, "close", lambda store: (stores.append(store), close(store))[1])
    monkeypatch.setattr(catalog_reader, "PATIENCE", 0.05)
    with pytest.raises(StillReading):
        reader.read(patience=0.05)
    reader.close()
    hold.set()
    with reader._lock:  # it has ended
        assert stores and reader._store is None


def test_the_progress_counts_files_and_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_shop(tmp_path)
    reader = CatalogReader(SessionSettings(tmp_path, open_engine=refuse_engine))
    noted: list[Progress] = []
    note: Callable[[str, int, int], None] = reader._note
    monkeypatch.setattr(reader, "_note", lambda *step: (note(*step), noted.append(reader._progress)))
    reader.read(patience=60)

    assert Progress("Files read", 3, 5) in noted
    assert noted[-1] == Progress("Queries followed", 5, 5)
    assert str(noted[-1]) == "Queries followed: 5 of 5."
    reader.close()


def test_the_list_of_models_waits_for_no_query(browse: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, follow = threading.Event(), build._follow_queries
    monkeypatch.setattr(build, "_follow_queries", lambda *sources: (go_on.wait(60), follow(*sources))[1])
    browser = browse(**UNUSED)
    page = browser.get("/")
    browser.context.reader.first_page = 0.05

    assert "shop.daily" in page
    assert '<li data-load="/unused/link"><a href="/unused">unused columns</a></li>' in page
    for address in ("/?q=price", "/models/shop.daily", "/lineage?focus=shop.daily", "/unused", "/unused/link"):
        browser.get(address, 503)
    assert "shop.daily" in browser.get("/lineage")
    go_on.set()
    browser.context.reader.first_page = 60

    assert browser.get("/unused/link").strip() == '<a href="/unused">1 unused column</a>'
    assert '<li><a href="/unused">1 unused column</a>' in browser.get("/")


def test_an_edit_is_listed_before_its_queries_are_followed(browse: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = browse()
    reader, rows = browser.context.reader, browser.client.get("/api/v1/models").json()["models"]
    followed: list[int] = []
    follow = build._follow_queries
    monkeypatch.setattr(build, "_follow_queries", lambda *sources: (followed.append(1), follow(*sources))[1])
    write_shop(reader.settings.root, more="MODEL (name shop.more, kind FULL);\nSELECT id FROM shop.daily")
    reader.expire()

    assert "shop.more" in browser.get("/")
    assert not followed
    assert len(browser.client.get("/api/v1/models").json()["models"]) == len(rows) + 1
    assert browser.client.get("/api/v1/models/shop.more").json()["columns"][0]["made_from"]
    assert followed == [1]
