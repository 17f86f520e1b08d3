"""A session's catalog: the files beside what an environment shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.session.conftest import refuse_engine
from tests.planner.shop import ALONE

DAILY = """MODEL (name shop.d, kind INCREMENTAL_BY_TIME_RANGE (time_column day));
SELECT 1 AS id, CAST(@start_ds AS DATE) AS day"""


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def later_session(root: Path) -> Session:
    return Session(SessionSettings(root, open_engine=refuse_engine), "2026-01-08 05:00:00")


def test_what_prod_shows_is_told_with_the_time_that_is_held_and_missing(
    shop: Callable[..., Session], tmp_path: Path
) -> None:
    session = shop(**ALONE | {"daily": "", "total": "", "d": DAILY})
    session.plan().apply()
    deployed = session.catalog().models["shop.d"].deployed
    with later_session(tmp_path) as opened:
        later = opened.catalog().models["shop.d"].deployed

    assert deployed and later
    assert (deployed.view, deployed.held, deployed.missing) == ("shop.d", (Interval(day(1), day(6)),), ())
    assert (later.missing, later.current) == ((Interval(day(6), day(8)),), True)
    assert deployed.table.endswith(deployed.version)


def test_an_edit_that_is_not_deployed_is_seen(shop: Callable[..., Session], tmp_path: Path) -> None:
    session = shop(**ALONE | {"total": "", "apart": "MODEL (name shop.apart, kind FULL);\nSELECT 7 AS seven"})
    session.plan().apply()
    path = tmp_path / "models/apart.sql"
    path.write_text(path.read_text().replace("SELECT 7", "SELECT\n  7"))
    layout = session.catalog().models["shop.apart"].deployed
    path.write_text(path.read_text().replace("7", "8"))
    edit = session.catalog().models["shop.apart"].deployed

    assert layout and edit
    assert (layout.current, edit.current) == (True, False)


def test_an_environment_that_does_not_exist_has_no_catalog(offline: Session) -> None:
    with pytest.raises(RequestError, match="There is no environment `qa`"):
        offline.catalog("qa")
