"""Edits of models of two forms, as dbt's with `is_incremental()`, and above: what is kept is what a build makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.conftest import empty
from tests.planner.daily import Daily

COLUMNS = "id int, x int, y int, at date"
DAYS = {
    "2026-01-02": ("1, 5, 7, date'2026-01-01'", "2, 6, 8, date'2026-01-01'"),
    "2026-01-03": ("1, 5, 7, date'2026-01-01'", "1, 9, 3, date'2026-01-02'", "3, 4, 4, date'2026-01-02'"),
}
SOURCE = "SELECT id, x, y, at FROM raw.items"
FIRST = "SELECT id, x, at FROM shop.src"
LATER = f"{FIRST} WHERE at > (SELECT MAX(at) FROM shop.m)"
CARRIED = (
    "SELECT s.id, s.x + COALESCE(m.x, 0) AS x, s.at FROM shop.src AS s LEFT JOIN shop.m AS m ON s.id = m.id"
    " WHERE s.at > (SELECT MAX(at) FROM shop.m)"
)


def project(source: str = SOURCE, first: str = FIRST, later: str = LATER) -> list[str]:
    there = "EXISTS (SELECT 1 FROM shop.m)"
    once, then = f"SELECT * FROM ({first}) AS first_run", f"SELECT * FROM ({later}) AS later_run"
    forms = f"{once} WHERE NOT {there}\nUNION ALL {then} WHERE {there}"
    return [
        f"MODEL (name shop.src, kind FULL);\n{source}",
        f"MODEL (name shop.m, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id));\n{forms}",
        "MODEL (name shop.mart, kind FULL);\nSELECT id, x FROM shop.m",
        "MODEL (name shop.few, kind FULL);\nSELECT COUNT(*) AS n FROM shop.m",
    ]


LATER_FORM = "the form of later runs"
EDITS = {
    "a column that is read by nobody": (project(f"{SOURCE[:6]} 1 AS more, {SOURCE[7:]}"), set()),
    "another column that is not read": (project(SOURCE.replace(" y,", " y + 1 AS y,")), set()),
    "a column that is read": (project(SOURCE.replace(" x,", " x * 2 AS x,")), {"m", "mart", "few"}),
    "a column by which later rows are chosen": (
        project(SOURCE.replace(" at ", " DATE_ADD(at, id) AS at ")),
        {"m", "mart", "few"},
    ),
    "the form of first runs": (project(first=f"{FIRST} WHERE id > 1"), {"m", "mart", "few"}),
    LATER_FORM: (project(later=LATER.replace("MAX", "MIN")), set()),
    "the same in other words": (project(first=f"SELECT * FROM ({FIRST}) AS t"), set()),
}


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[StateStore]]:
    opened = [StateStore(f"sqlite:///{tmp_path}/state{number}.db") for number in range(2)]
    yield opened
    for store in opened:
        store.close()


def run_days(daily: Daily, models: list[str]) -> None:
    for day, rows in DAYS.items():
        daily.has(*rows)
        assert not daily.run(day, *models).failures


KEPT = ("a column that is read by nobody", LATER_FORM)  # a wrong verdict would show in these
PROVED = [edit if edit in KEPT else pytest.param(edit, marks=pytest.mark.prove) for edit in EDITS]


@pytest.mark.parametrize("edit", PROVED)
@pytest.mark.parametrize("later", [LATER, pytest.param(CARRIED, marks=pytest.mark.prove)], ids=["chosen", "carried"])
def test_an_edit_leaves_what_all_runs_of_the_edited_project_make(
    tmp_path: Path, engine: SparkEngine, stores: list[StateStore], edit: str, later: str
) -> None:
    models, recomputed = EDITS[edit]
    if (edit, later) == (LATER_FORM, CARRIED):  # `x` may have been of another type
        recomputed = {"m", "mart", "few"}
    models = [text.replace(LATER, later) for text in models]
    daily = Daily(tmp_path / "shop", engine, stores[0], COLUMNS)
    run_days(daily, project(later=later))
    before = {name: daily.rows(f"shop.{name}") for name in ("m", "mart", "few")}

    outcome = daily.run("2026-01-03", *models)
    prod = {name: daily.rows(f"shop.{name}") for name in ("m", "mart", "few")}
    kept = set() if outcome.plan is None else {c.name[5:] for c in outcome.plan.changes if c.recomputed}
    empty(engine)

    assert kept - {"src"} == (recomputed if models != project(later=later) else set())
    if edit == LATER_FORM and not recomputed:  # no row that is there comes of it
        assert prod == before
    elif not kept - {"src"}:
        fresh = Daily(tmp_path / "fresh", engine, stores[1], COLUMNS)
        run_days(fresh, models)
        assert {name: fresh.rows(f"shop.{name}") for name in prod} == prod
