"""Schedules as `mergeplan schedule` writes them, for tests that need no environment."""

from __future__ import annotations

from typing import Any

from mergeplan.airflow.graph import ScheduleGraph, graph_of_document
from mergeplan.planner.contract.schedule import Schedule, ScheduledAudit, ScheduledModel


def model(name: str, *parents: str, **fields: Any) -> ScheduledModel:
    """A daily table, unless the fields say otherwise."""
    own: dict[str, Any] = {
        "kind": "FULL", "computed": True, "cron": "@daily", "interval_unit": "day", "fingerprint": "f",
        "table_version": "v", "table": f"p.{name}", "view": name,
    }  # fmt: skip
    return ScheduledModel(name=name, parents=parents, **{**own, **fields})


def document(*models: ScheduledModel, **fields: Any) -> dict[str, Any]:
    """A schedule as JSON, by the contract's own types."""
    own: dict[str, Any] = {"project": "shop", "environment": "prod", "revision": 3, **fields}
    return Schedule(models=models, **own).model_dump(mode="json")


def graph(*models: ScheduledModel) -> ScheduleGraph:
    """A schedule as Airflow's side reads it."""
    return graph_of_document(document(*models))


SHOP = (
    model("s.raw", kind="SEED", computed=False, cron="", interval_unit=""),
    model("s.items", "s.raw", tags=("heavy", "core"), owner="ann", audits=(ScheduledAudit(name="not_null"),)),
    model("s.view", "s.items", kind="VIEW", computed=False, cron="", interval_unit=""),
    model("s.hourly", "s.view", cron="15 * * * *", time_zone="Europe/Berlin", interval_unit="hour"),
    model("s.total", "s.view", "s.hourly", kind="FULL"),
)
