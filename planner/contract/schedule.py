"""The graph of an environment as a document for schedulers: its models, when each is due, and where its rows are."""

from typing import Any, Literal

from pydantic import Field

from mergeplan.planner.contract.base import DIALECT, VERSION, Data, Names, Version
from mergeplan.planner.data_field import describe
from mergeplan.planner.model.metadata import Freshness


class FreshnessLimits(Data):
    """The ages from which a table is late, and how its newest moment is found."""

    warn_after_seconds: int | None = describe(None, "older: a warning; null: none")
    error_after_seconds: int | None = describe(None, "older: an error; null: none")
    loaded_at: str = describe("", 'the time of a row, as Spark SQL; `""`: the last write, or what runs have filled')
    filter: str = describe("", "the rows that count, as Spark SQL")


class FreshnessRow(FreshnessLimits):
    """The age of one table."""

    model: str = Field(description="the model")
    path: str = describe("", "its file")
    line: int = describe(0, "its line")
    owner: str = describe("", "who owns it")
    status: Literal["pass", "warn", "error", "unknown"] = Field(description="`unknown`: the age cannot be measured")
    measured_by: Literal["rows", "intervals", "last write"] = Field(
        description="what the age counts from: the newest row, the end of what runs have filled, or the last write"
    )
    newest_at: str | None = describe(None, "that moment; null: there is none")
    age_seconds: float | None = describe(None, "since then")
    message: str = describe("", "what prevented the measurement, or what is odd")


class ScheduledColumn(Data):
    """A column of a model's table."""

    name: str = Field(description="its name")
    type: str = describe("", 'its type as Spark writes it; `""`: not known')
    description: str = describe("", "what the model says of it")


class ScheduledAudit(Data):
    """An audit of a model."""

    name: str = Field(description="the audit")
    blocking: bool | None = describe(None, "rows that it finds stop the model's readers; null: as its own file says")


class ScheduledModel(Data):
    """A model as an environment shows it."""

    name: str = Field(description="the model")
    kind: str = Field(description="its kind")
    materialization: str = describe("", "of a model of kind CUSTOM: the class that fills it")
    computed: bool = Field(description="a run fills its table; false for views, seeds, embedded and external models")
    parents: Names = describe((), "the models of this document that it reads")
    external: Names = describe((), "the other tables that it reads")
    cron: str = describe("", 'when it is due; `""`: it is not scheduled')
    time_zone: str = describe("", 'of the cron; `""`: UTC')
    interval_unit: str = describe("", "how long an interval is, such as `day`")
    start: str | None = describe(None, "since when it holds rows, if it says so")
    time_column: str = describe("", "of a model that is filled by time")
    path: str = describe("", "its file")
    owner: str = describe("", "who owns it")
    description: str = describe("", "what its file says of it")
    tags: Names = describe((), "its tags")
    grain: Names = describe((), "the columns that identify a row, as declared")
    columns: tuple[ScheduledColumn, ...] | None = describe(None, "in order; null: not known")
    audits: tuple[ScheduledAudit, ...] = describe((), "its audits")
    freshness: FreshnessLimits | None = describe(None, "when its table is late; null: never")
    fingerprint: str = Field(description="of the model and all that it reads: another one is another model")
    table_version: str = Field(description="of the table: models of equal versions hold equal rows")
    table: str = describe("", 'its physical table; `""` of a model without one')
    view: str = describe("", 'the view that shows the table; `""` of a model without one')


class Schedule(Data):
    """The models that an environment shows, parents first. It says the same until the next promotion."""

    version: Version = VERSION
    project: str = Field(description="the project's name in the state")
    environment: str = Field(description="the environment")
    revision: int = describe(0, "of the environment; 0: nothing was promoted yet")
    promoted_at: str | None = describe(None, "when it was promoted last, or null")
    models: tuple[ScheduledModel, ...] = describe((), "each model, parents first")


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
