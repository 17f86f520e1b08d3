"""The graph of an environment as a document for schedulers: its models, when each is due, and where its rows are."""

from typing import Any, Literal

from pydantic import Field

from mergeplan.planner.contract.base import DIALECT, VERSION, Data, Names, Version
from mergeplan.planner.model.metadata import Freshness


class FreshnessLimits(Data):
    """The ages from which a table is late, and how its newest moment is found."""

    warn_after_seconds: int | None = Field(default=None, description="older: a warning; null: none")
    error_after_seconds: int | None = Field(default=None, description="older: an error; null: none")
    loaded_at: str = Field(
        default="", description='the time of a row, as Spark SQL; `""`: the last write, or what runs have filled'
    )
    filter: str = Field(default="", description="the rows that count, as Spark SQL")


class FreshnessRow(FreshnessLimits):
    """The age of one table."""

    model: str = Field(description="the model")
    path: str = Field(default="", description="its file")
    line: int = Field(default=0, description="its line")
    owner: str = Field(default="", description="who owns it")
    status: Literal["pass", "warn", "error", "unknown"] = Field(description="`unknown`: the age cannot be measured")
    measured_by: Literal["rows", "intervals", "last write"] = Field(
        description="what the age counts from: the newest row, the end of what runs have filled, or the last write"
    )
    newest_at: str | None = Field(default=None, description="that moment; null: there is none")
    age_seconds: float | None = Field(default=None, description="since then")
    message: str = Field(default="", description="what prevented the measurement, or what is odd")


class ScheduledColumn(Data):
    """A column of a model's table."""

    name: str = Field(description="its name")
    type: str = Field(default="", description='its type as Spark writes it; `""`: not known')
    description: str = Field(default="", description="what the model says of it")


class ScheduledAudit(Data):
    """An audit of a model."""

    name: str = Field(description="the audit")
    blocking: bool | None = Field(
        default=None, description="rows that it finds stop the model's readers; null: as its own file says"
    )


class ScheduledModel(Data):
    """A model as an environment shows it."""

    name: str = Field(description="the model")
    kind: str = Field(description="its kind")
    materialization: str = Field(default="", description="of a model of kind CUSTOM: the class that fills it")
    computed: bool = Field(description="a run fills its table; false for views, seeds, embedded and external models")
    parents: Names = Field(default=(), description="the models of this document that it reads")
    external: Names = Field(default=(), description="the other tables that it reads")
    cron: str = Field(default="", description='when it is due; `""`: it is not scheduled')
    time_zone: str = Field(default="", description='of the cron; `""`: UTC')
    interval_unit: str = Field(default="", description="how long an interval is, such as `day`")
    start: str | None = Field(default=None, description="since when it holds rows, if it says so")
    time_column: str = Field(default="", description="of a model that is filled by time")
    path: str = Field(default="", description="its file")
    owner: str = Field(default="", description="who owns it")
    description: str = Field(default="", description="what its file says of it")
    tags: Names = Field(default=(), description="its tags")
    grain: Names = Field(default=(), description="the columns that identify a row, as declared")
    columns: tuple[ScheduledColumn, ...] | None = Field(default=None, description="in order; null: not known")
    audits: tuple[ScheduledAudit, ...] = Field(default=(), description="its audits")
    freshness: FreshnessLimits | None = Field(default=None, description="when its table is late; null: never")
    fingerprint: str = Field(description="of the model and all that it reads: another one is another model")
    table_version: str = Field(description="of the table: models of equal versions hold equal rows")
    table: str = Field(default="", description='its physical table; `""` of a model without one')
    view: str = Field(default="", description='the view that shows the table; `""` of a model without one')


class Schedule(Data):
    """The models that an environment shows, parents first. It says the same until the next promotion."""

    version: Version = VERSION
    project: str = Field(description="the project's name in the state")
    environment: str = Field(description="the environment")
    revision: int = Field(default=0, description="of the environment; 0: nothing was promoted yet")
    promoted_at: str | None = Field(default=None, description="when it was promoted last, or null")
    models: tuple[ScheduledModel, ...] = Field(default=(), description="each model, parents first")


def freshness_limits(freshness: Freshness) -> FreshnessLimits:
    return FreshnessLimits(
        warn_after_seconds=freshness.warn_after or None,
        error_after_seconds=freshness.error_after or None,
        loaded_at=freshness.loaded_at or freshness.query,
        filter=freshness.filter,
    )


def schedule_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document (docs/schema/schedule.json)."""
    schema = Schedule.model_json_schema(mode="serialization")
    return {"$schema": DIALECT, **schema, "title": "The schedule of a mergeplan environment"}
