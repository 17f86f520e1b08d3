"""A catalog that was read from its document shows what the one that it was made from shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mergeplan.planner.catalog.catalog import Catalog, DeployedTable, UnopenedModel
from mergeplan.planner.contract.catalog import CatalogView
from mergeplan.planner.contract.from_catalog import catalog_view
from mergeplan.planner.errors import Place
from mergeplan.planner.intervals import Interval
from mergeplan.planner.plan.costs import BatchCost, Cost, TableHistory
from mergeplan.planner.ui.catalog_document import catalog_of
from tests.planner.catalog.conftest import catalog

__all__ = ["catalog"]

ZONED = """MODEL (name shop.zoned, kind INCREMENTAL_BY_TIME_RANGE (time_column day), cron '*/30 5 * * *',
  cron_tz 'Europe/Berlin', owner ann, tags (pii), audits (not_null(columns := (day))), grain day, start '2026-01-01',
  column_descriptions (day = 'The day.'));
SELECT day, price FROM shop.daily WHERE day BETWEEN @start_date AND @end_date"""


def test_a_catalog_comes_back_from_its_document(catalog: Callable[..., Catalog]) -> None:
    made = catalog(zoned=ZONED)
    day = datetime(2026, 1, 1, tzinfo=UTC)
    held, missing = Interval(day, day.replace(day=3)), Interval(day.replace(day=3), day.replace(day=3, hour=6))
    history = TableHistory(Cost(2, 5, 1.5), 1, day.replace(day=4), (BatchCost(day, 2, 5, 1.5, day.replace(day=4)),))
    deployed = DeployedTable("shop.zoned", "t", "v", (held,), (missing,), current=False, history=history, rows=5)
    lost = UnopenedModel(Place("models/lost.sql", 3), "it is no model", ("shop.lost",))
    zoned = replace(made.models["shop.zoned"], deployed=deployed)
    made = replace(made, models={**made.models, zoned.name: zoned}, unopened=(lost,))
    document = catalog_view(made)

    again = catalog_of(CatalogView.model_validate_json(document.model_dump_json()))

    assert catalog_view(again) == document
    assert again.models["shop.zoned"].deployed == deployed
    crons = [one.models["shop.zoned"].declared.cron for one in (again, made)]
    assert len({(cron.text, cron.tz, cron.unit) for cron in crons}) == 1
    assert {name: (model.kind, model.columns) for name, model in again.models.items()} == {
        name: (model.kind, model.columns) for name, model in made.models.items()
    }


def test_a_kind_of_another_version_is_refused(catalog: Callable[..., Catalog]) -> None:
    view = catalog_view(catalog())
    strange = view.models[0].model_copy(update={"kind": "GRAPH"})

    with pytest.raises(ValueError, match="GRAPH"):
        catalog_of(view.model_copy(update={"models": (strange,)}))
