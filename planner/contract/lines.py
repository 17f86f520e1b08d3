"""The lines on the way: what happened so far, each with the `event` that says which it is."""

from typing import Literal

from pydantic import Field

from mergeplan.planner.contract.base import VERSION, Data, Maybe, Names, Sample, Severity, Span, Spans, Stage, Version
from mergeplan.planner.contract.plan import PlanView, TouchedEnvironment
from mergeplan.planner.contract.tables import TableDifference
from mergeplan.planner.data_field import describe


class StageLine(Data):
    """A stage begins; one with nothing to do has no line.

    `create` and `backfill` come again after a `compare` that left something to compute.
    """

    event: Literal["stage"] = "stage"
    name: Stage = Field(description="the stage")
    total: int = describe(0, "how many tests, tables, batches or views it has")
    spark_ui: str = describe("", "of `backfill`: the address of Spark's own pages, if the gateway names one")


class LintLine(Data):
    """A model breaks a rule of the linter; `plan` prints errors as `error`."""

    event: Literal["lint"] = "lint"
    rule: str = Field(description="the rule")
    model: str = describe("", "the model")
    message: str = Field(description="what is wrong")
    path: str = describe("", "its file")
    line: int = describe(0, "its line")
    column: int = describe(0, "its column")
    severity: Severity = Field(description="an error stops a plan")


class TestLine(Data):
    """A unit test ended."""

    __test__ = False  # pytest must not collect it

    event: Literal["test"] = "test"
    name: str = Field(description="the test")
    ok: bool = Field(description="it passed")
    path: str = describe("", "its file")
    line: int = describe(0, "its line")
    message: str = describe("", "how the rows differ")
    unchanged: bool = describe(False, "it did not run: nothing changed since it passed")


class PlanLine(Data):
    """The plan is made; nothing is done yet. It comes twice if Spark has to compare queries: before that and after."""

    event: Literal["plan"] = "plan"
    version: Version = VERSION
    plan: PlanView = Field(description="the [plan](#plan)")


class TableLine(Data):
    """A physical table was created."""

    event: Literal["table"] = "table"
    model: str = Field(description="the model")
    table: str = Field(description="its table")


class BatchLine(Data):
    """A batch was written, audited and recorded."""

    event: Literal["batch"] = "batch"
    model: str = Field(description="the model")
    index: int = Field(description="which batch, from 1")
    of: int = Field(description="of how many")
    interval: Span = Field(description="the time that it holds")
    rows: int = Field(description="rows written")
    seconds: float = Field(description="how long it took")
    copied: bool = describe(False, "from the model's old table, which holds the same rows")
    unchanged: bool = describe(
        False, "not written: nothing that the query reads was written since the table was filled"
    )
    audits_unchanged: int = describe(0, "audits that did not run: they passed before and still hold")


class AuditRow(Data):
    """An audit looked at rows."""

    model: str = describe("", 'the model, `""` of a standalone audit')
    reads: Names = describe((), "the tables that a standalone audit names")
    name: str = Field(description="the audit")
    ok: bool = Field(description="true: it found no rows")
    blocking: bool = describe(True, "rows that it finds stop the plan")
    count: int = describe(0, "how many rows it found")
    query: str = describe("", "the query that it ran")
    sample: Sample = describe(Sample(), "at most five of the rows, [masked](guides/audits.md#when-an-audit-fails)")
    path: str = describe("", "the file that names the audit")
    line: int = describe(0, "its line")
    unchanged: bool = describe(False, "it did not run: it passed before, and nothing that it reads was written since")
    interval: Maybe[Span] = describe(None, "the time whose rows it looked at, where it looked at a batch")


class AuditLine(AuditRow):
    """An audit ran."""

    event: Literal["audit"] = "audit"


class ComparedLine(Data):
    """A model's new table was compared with the one it replaces, in the columns that a reader reads of it."""

    event: Literal["compared"] = "compared"
    reader: str = Field(description="the model that reads it")
    model: str = Field(description="the model whose tables were compared")
    columns: Names = Field(description="the columns that were compared")
    skipped: bool = Field(description="the same rows: the reader keeps its table")


class RestatingLine(Data):
    """A restatement of models is due by its cron: see [scheduling](guides/scheduling.md)."""

    event: Literal["restating"] = "restating"
    models: Names = Field(description="the models")


class TouchedLine(TouchedEnvironment):
    """A restatement began, and another environment feels it."""

    event: Literal["touched"] = "touched"


class LateLine(Data):
    """Of a run: time that the model's [signals](guides/python.md#signals) hold back is left for a later run."""

    event: Literal["late"] = "late"
    model: str = Field(description="the model")
    signals: Names = Field(description="its signals")
    intervals: Spans = Field(description="the time that is left")


class WaitingLine(Data):
    """Another process computes the same table or promotes the environment, or Spark still runs an earlier batch."""

    event: Literal["waiting"] = "waiting"
    model: Maybe[str] = describe(None, "the model whose table is awaited")
    table: Maybe[str] = describe(None, "its table")
    interval: Maybe[Span] = describe(None, "of the batch that Spark is still running")
    environment: Maybe[str] = describe(None, "the environment that is promoted elsewhere")
    holder: str = Field(
        validation_alias="for", serialization_alias="for", description="the process that holds the lease"
    )


class RepeatedLine(Data):
    """A batch that an earlier run began has failed, or Spark does not know it any more: it is begun again."""

    event: Literal["repeated"] = "repeated"
    model: str = Field(description="the model")
    interval: Span = Field(description="of the batch")


class FailedLine(Data):
    """A model could not be computed."""

    event: Literal["failed"] = "failed"
    model: str = Field(description="the model")
    message: str = Field(description="why")


class SkippedLine(Data):
    """A model was left out because another failed."""

    event: Literal["skipped"] = "skipped"
    model: str = Field(description="the model")
    because: str = Field(description="the model that failed")


class ViewLine(Data):
    """A view was swapped or dropped."""

    event: Literal["view"] = "view"
    name: str = Field(description="the view")
    table: str | None = describe(None, "the table it is on now; null: dropped")


class RecoveredLine(Data):
    """A promotion that a crash had left is being finished."""

    event: Literal["recovered"] = "recovered"
    environment: str = Field(description="the environment")
    revision: int = Field(description="its revision")


class PendingLine(Data):
    """The verb only looks, and found a promotion that has not come to its end."""

    event: Literal["pending"] = "pending"
    environment: str = Field(description="the environment")
    revision: int = Field(description="its revision")
    views: Names = describe((), "the views of which some may have moved")
    holder: str | None = Field(
        default=None,
        validation_alias="for",
        serialization_alias="for",
        description="the process that promotes; null: none",
    )


class UndoneLine(Data):
    """A promotion failed and every view was put back."""

    event: Literal["undone"] = "undone"
    environment: str = Field(description="the environment")
    message: str = Field(description="why")


class DroppedLine(Data):
    """A physical table was dropped."""

    event: Literal["dropped"] = "dropped"
    table: str = Field(description="the table")


class RefutedLine(Data):
    """Spark's analyzer denies that a model may be kept: it is recomputed, and a rule has a defect."""

    event: Literal["refuted"] = "refuted"
    model: str = Field(description="the model")
    reason: str = Field(description="what Spark sees differently")


class WarningLine(Data):
    """Something beside the plan went wrong and failed nothing, as OpenLineage events that did not arrive."""

    event: Literal["warning"] = "warning"
    message: str = Field(description="what went wrong")


class TableDiffLine(TableDifference):
    """`table_diff` compared two tables: the keys are [below](#tables)."""

    event: Literal["table_diff"] = "table_diff"


class ErrorLine(Data):
    """Something is wrong; several may come, the `result` follows."""

    event: Literal["error"] = "error"
    message: str = Field(description="what is wrong")
    hint: str = describe("", "what to do about it")
    path: str = describe("", 'the file, `""` where there is no place')
    line: int = describe(0, "the line, or 0")
    column: int = describe(0, "the column, or 0")
    exit_code: int = describe(1, "the process's own: [exit codes](reference/commands.md#exit-codes)")
    kind: str = describe(
        "",
        "`ProjectError`, `RuleBroken` (of the linter), `RequestError`, `QueryError`, `Refused`, "
        "`TooCostly`, `AuditFailed`, `PlanMoved`, "
        "`LeaseHeld`, `CatalogBusy`, `SparkUnavailable`, `SparkLost`, `Cancelled`, `MergeplanError`, "
        "`UsageError` or `Defect`",
    )
    retry: bool = describe(
        False,
        "the same request may succeed later, for example when another process holds the environment or "
        "Spark does not answer",
    )
    audit: Maybe[str] = describe(None, "of the kind `AuditFailed`: the audit")
    model: Maybe[str] = describe(None, 'of the kind `AuditFailed`: its model, `""` for a standalone audit')
