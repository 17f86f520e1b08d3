"""The catalog of a project as a document: its models with columns, lineage, queries, and what an environment shows."""

from typing import Any

from pydantic import Field

from mergeplan.planner.contract.base import DIALECT, VERSION, Data, Names, Spans, Version
from mergeplan.planner.contract.schedule import FreshnessLimits
from mergeplan.planner.contract.tables import LineageEnd


class CatalogColumnRow(Data):
    """A column of a model, and its neighbours in the lineage."""

    name: str = Field(description="its name")
    type: str = Field(default="", description='its type as Spark writes it; `""`: not known without Spark')
    description: str = Field(default="", description="what its file says of it")
    made_from: tuple[LineageEnd, ...] = Field(default=(), description="the columns that go into its value")
    read_by: tuple[LineageEnd, ...] = Field(
        default=(), description="the columns that are made from it; null: it decides the rows of that model"
    )
    stored_type: str = Field(
        default="", description='its type in the table or the view of the environment; `""`: there is none'
    )


class CatalogAuditRow(Data):
    """An audit that looks at a model."""

    name: str = Field(description="the audit")
    arguments: dict[str, str] = Field(default={}, description="what it is called with, as Spark SQL")
    blocking: bool = Field(default=True, description="rows that it finds stop a plan")
    standalone: bool = Field(default=False, description="it runs by itself, over the models that it reads")


class CatalogTestRow(Data):
    """A unit test of a model."""

    name: str = Field(description="the test")
    path: str = Field(default="", description="its file")
    line: int = Field(default=0, description="its line")
    description: str = Field(default="", description="what it says of itself")


class BatchRow(Data):
    """A batch of a table when it was last computed."""

    start: str = Field(description="the begin of its time; that of 1970 for a table computed as a whole")
    units: int = Field(default=1, description="the units of time that it covers")
    rows: int = Field(default=0, description="the rows that it wrote")
    seconds: float = Field(default=0.0, description="how long it took")
    at: str = Field(description="when it was written")


class DeployedRow(Data):
    """What an environment shows of a model."""

    view: str = Field(default="", description='the view, `""` of a model without one')
    table: str = Field(default="", description='the physical table under the view, `""` of a model without one')
    version: str = Field(description="of the table")
    intervals: Spans = Field(default=(), description="the time that the table holds")
    missing: Spans = Field(default=(), description="the time that a run would compute now")
    current: bool = Field(default=True, description="the file says what is deployed; false: it was edited since")
    rows: int | None = Field(default=None, description="the rows of the table; null: not known without Spark")
    bytes: int | None = Field(default=None, description="of its files; null: the janitor did not measure it yet")
    measured_at: str | None = Field(default=None, description="when `bytes` was measured, or null")
    rows_written: int = Field(default=0, description="the rows that all batches of the table wrote")
    seconds: float = Field(default=0.0, description="how long all batches took, added up")
    batch_count: int = Field(default=0, description="the batches of the table that are on record")
    written_at: str | None = Field(default=None, description="when a batch was written last, or null")
    batches: tuple[BatchRow, ...] = Field(default=(), description="those of the newest time, the newest first")


class CatalogModelRow(Data):
    """A model of a project's files."""

    name: str = Field(description="the model")
    kind: str = Field(description="its kind")
    materialization: str = Field(default="", description="of a model of kind CUSTOM: the class that fills it")
    path: str = Field(default="", description="its file")
    line: int = Field(default=0, description="its line")
    owner: str = Field(default="", description="who owns it")
    description: str = Field(default="", description="what its file says of it")
    tags: Names = Field(default=(), description="its tags")
    schedule: str = Field(default="", description='its cron, with the time zone; `""`: it is not scheduled')
    interval_unit: str = Field(default="", description="how long an interval is, such as `day`")
    start: str | None = Field(default=None, description="since when it holds rows, if it says so")
    grain: Names = Field(default=(), description="the columns that identify a row, as declared")
    unique_key: Names = Field(default=(), description="by which rows are merged")
    time_column: str = Field(default="", description="of a model that is filled by time")
    partitioned_by: Names = Field(default=(), description="columns and expressions")
    format: str = Field(default="", description="how files are written: `parquet`, `delta`, `iceberg`")
    freshness: FreshnessLimits | None = Field(default=None, description="when its table is late; null: never")
    columns: tuple[CatalogColumnRow, ...] | None = Field(
        default=None, description="in order; null: they are not known without Spark"
    )
    row_deciders: tuple[LineageEnd, ...] = Field(default=(), description="what decides which rows it has")
    unfollowed: str = Field(default="", description='why its query is not followed column by column; `""`: it is')
    parents: Names = Field(default=(), description="the tables that it reads")
    readers: Names = Field(default=(), description="the models that read it")
    definition: str = Field(default="", description="its file's text, as it is written")
    query: str = Field(
        default="", description="its query as Spark runs it, dates, macros and embedded models filled in"
    )
    audits: tuple[CatalogAuditRow, ...] = Field(default=(), description="its audits")
    tests: tuple[CatalogTestRow, ...] = Field(default=(), description="its unit tests")
    exposures: Names = Field(default=(), description="the exposures that use it")
    deployed: DeployedRow | None = Field(default=None, description="null: the environment does not have it")


class CatalogExposureRow(Data):
    """A use of models outside of the project."""

    name: str = Field(description="what it is called")
    type: str = Field(default="", description="what it is, such as `dashboard`")
    owner: str = Field(default="", description="who owns it")
    url: str = Field(default="", description="where it is")
    models: Names = Field(default=(), description="the models that it uses")


class UnusedColumnRow(Data):
    """A column that no other model's rows or values, no exposure and no setting depends on."""

    model: str = Field(description="the model")
    column: str = Field(description="its column")
    path: str = Field(default="", description="its file")
    line: int = Field(default=0, description="the line that names it first")
    named_by: Names = Field(default=(), description="models whose queries name it all the same: edit them first")


class UnopenedRow(Data):
    """A file, or a model of it, that is not in the catalog."""

    path: str = Field(description="the file")
    line: int = Field(default=0, description="the line")
    reason: str = Field(description="why it cannot be opened")
    models: Names = Field(default=(), description="the models that are missing, as far as they are known")


class CatalogView(Data):
    """The models of a project's files, parents first, beside what an environment shows of them."""

    version: Version = VERSION
    project: str = Field(description="the project's name, or that of its folder")
    environment: str = Field(description="the environment of `deployed`")
    revision: int = Field(default=0, description="of the environment; 0: nothing was promoted yet")
    promoted_at: str | None = Field(default=None, description="when it was promoted last, or null")
    made_at: str = Field(description="when the catalog was made")
    default_catalog: str = Field(
        default="", description='the catalog of names of two parts, as Spark calls it; `""`: not known'
    )
    models: tuple[CatalogModelRow, ...] = Field(default=(), description="each model, parents first")
    exposures: tuple[CatalogExposureRow, ...] = Field(default=(), description="uses outside of the project")
    unused_columns: tuple[UnusedColumnRow, ...] | None = Field(
        default=None, description="columns that nothing needs; null: a model that cannot be opened may read any"
    )
    unopened: tuple[UnopenedRow, ...] = Field(default=(), description="what of the project is missing here")


def catalog_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document (docs/schema/catalog.json)."""
    schema = CatalogView.model_json_schema(mode="serialization")
    return {"$schema": DIALECT, **schema, "title": "The catalog of a mergeplan project"}
