"""The catalog of a project as a document: its models with columns, lineage, queries, and what an environment shows."""

from typing import Any

from pydantic import Field

from mergeplan.planner.contract.base import DIALECT, VERSION, Data, Names, Spans, Version
from mergeplan.planner.contract.schedule import FreshnessLimits
from mergeplan.planner.contract.tables import LineageEnd
from mergeplan.planner.data_field import describe


class CatalogColumnRow(Data):
    """A column of a model, and its neighbours in the lineage."""

    name: str = Field(description="its name")
    type: str = describe("", 'its type as Spark writes it; `""`: not known without Spark')
    description: str = describe("", "what its file says of it")
    made_from: tuple[LineageEnd, ...] = describe((), "the columns that go into its value")
    read_by: tuple[LineageEnd, ...] = describe(
        (), "the columns that are made from it; null: it decides the rows of that model"
    )
    stored_type: str = describe("", 'its type in the table or the view of the environment; `""`: there is none')


class CatalogAuditRow(Data):
    """An audit that looks at a model."""

    name: str = Field(description="the audit")
    arguments: dict[str, str] = describe({}, "what it is called with, as Spark SQL")
    blocking: bool = describe(True, "rows that it finds stop a plan")
    standalone: bool = describe(False, "it runs by itself, over the models that it reads")


class CatalogTestRow(Data):
    """A unit test of a model."""

    name: str = Field(description="the test")
    path: str = describe("", "its file")
    line: int = describe(0, "its line")
    description: str = describe("", "what it says of itself")


class BatchRow(Data):
    """A batch of a table when it was last computed."""

    start: str = Field(description="the begin of its time; that of 1970 for a table computed as a whole")
    units: int = describe(1, "the units of time that it covers")
    rows: int = describe(0, "the rows that it wrote")
    seconds: float = describe(0.0, "how long it took")
    at: str = Field(description="when it was written")


class DeployedRow(Data):
    """What an environment shows of a model."""

    view: str = describe("", 'the view, `""` of a model without one')
    table: str = describe("", 'the physical table under the view, `""` of a model without one')
    version: str = Field(description="of the table")
    intervals: Spans = describe((), "the time that the table holds")
    missing: Spans = describe((), "the time that a run would compute now")
    current: bool = describe(True, "the file says what is deployed; false: it was edited since")
    rows: int | None = describe(None, "the rows of the table; null: not known without Spark")
    bytes: int | None = describe(None, "of its files; null: the janitor did not measure it yet")
    measured_at: str | None = describe(None, "when `bytes` was measured, or null")
    rows_written: int = describe(0, "the rows that all batches of the table wrote")
    seconds: float = describe(0.0, "how long all batches took, added up")
    batch_count: int = describe(0, "the batches of the table that are on record")
    written_at: str | None = describe(None, "when a batch was written last, or null")
    batches: tuple[BatchRow, ...] = describe((), "those of the newest time, the newest first")


class CatalogModelRow(Data):
    """A model of a project's files."""

    name: str = Field(description="the model")
    kind: str = Field(description="its kind")
    materialization: str = describe("", "of a model of kind CUSTOM: the class that fills it")
    path: str = describe("", "its file")
    line: int = describe(0, "its line")
    owner: str = describe("", "who owns it")
    description: str = describe("", "what its file says of it")
    tags: Names = describe((), "its tags")
    schedule: str = describe("", 'its cron, with the time zone; `""`: it is not scheduled')
    interval_unit: str = describe("", "how long an interval is, such as `day`")
    start: str | None = describe(None, "since when it holds rows, if it says so")
    grain: Names = describe((), "the columns that identify a row, as declared")
    unique_key: Names = describe((), "by which rows are merged")
    time_column: str = describe("", "of a model that is filled by time")
    partitioned_by: Names = describe((), "columns and expressions")
    format: str = describe("", "how files are written: `parquet`, `delta`, `iceberg`")
    freshness: FreshnessLimits | None = describe(None, "when its table is late; null: never")
    columns: tuple[CatalogColumnRow, ...] | None = describe(None, "in order; null: they are not known without Spark")
    row_deciders: tuple[LineageEnd, ...] = describe((), "what decides which rows it has")
    unfollowed: str = describe("", 'why its query is not followed column by column; `""`: it is')
    parents: Names = describe((), "the tables that it reads")
    readers: Names = describe((), "the models that read it")
    definition: str = describe("", "its file's text, as it is written")
    query: str = describe("", "its query as Spark runs it, dates, macros and embedded models filled in")
    audits: tuple[CatalogAuditRow, ...] = describe((), "its audits")
    tests: tuple[CatalogTestRow, ...] = describe((), "its unit tests")
    exposures: Names = describe((), "the exposures that use it")
    deployed: DeployedRow | None = describe(None, "null: the environment does not have it")


class CatalogExposureRow(Data):
    """A use of models outside of the project."""

    name: str = Field(description="what it is called")
    type: str = describe("", "what it is, such as `dashboard`")
    owner: str = describe("", "who owns it")
    url: str = describe("", "where it is")
    models: Names = describe((), "the models that it uses")


class UnusedColumnRow(Data):
    """A column that no other model's rows or values, no exposure and no setting depends on."""

    model: str = Field(description="the model")
    column: str = Field(description="its column")
    path: str = describe("", "its file")
    line: int = describe(0, "the line that names it first")
    named_by: Names = describe((), "models whose queries name it all the same: edit them first")


class UnopenedRow(Data):
    """A file, or a model of it, that is not in the catalog."""

    path: str = Field(description="the file")
    line: int = describe(0, "the line")
    reason: str = Field(description="why it cannot be opened")
    models: Names = describe((), "the models that are missing, as far as they are known")


class CatalogView(Data):
    """The models of a project's files, parents first, beside what an environment shows of them."""

    version: Version = VERSION
    project: str = Field(description="the project's name, or that of its folder")
    environment: str = Field(description="the environment of `deployed`")
    revision: int = describe(0, "of the environment; 0: nothing was promoted yet")
    promoted_at: str | None = describe(None, "when it was promoted last, or null")
    made_at: str = Field(description="when the catalog was made")
    default_catalog: str = describe("", 'the catalog of names of two parts, as Spark calls it; `""`: not known')
    models: tuple[CatalogModelRow, ...] = describe((), "each model, parents first")
    exposures: tuple[CatalogExposureRow, ...] = describe((), "uses outside of the project")
    unused_columns: tuple[UnusedColumnRow, ...] | None = describe(
        None, "columns that nothing needs; null: a model that cannot be opened may read any"
    )
    unopened: tuple[UnopenedRow, ...] = describe((), "what of the project is missing here")


def catalog_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document (docs/schema/catalog.json)."""
    schema = CatalogView.model_json_schema(mode="serialization")
    return {"$schema": DIALECT, **schema, "title": "The catalog of a mergeplan project"}
