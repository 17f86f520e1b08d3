"""The last line of each verb's JSON output: its outcome and its data."""

from typing import Any, Literal

from pydantic import Field

from mergeplan.planner.contract.adoption import AdoptionView
from mergeplan.planner.contract.base import VERSION, Category, Change, Data, Direction, Maybe, Names, Version
from mergeplan.planner.contract.catalog import UnusedColumnRow
from mergeplan.planner.contract.history import AuditHistoryRow, RevisionRow, RollbackView
from mergeplan.planner.contract.lines import AuditRow
from mergeplan.planner.contract.physical import PhysicalPlanRow
from mergeplan.planner.contract.plan import ColumnChanges, PlanView
from mergeplan.planner.contract.schedule import FreshnessRow
from mergeplan.planner.contract.tables import DataDifference, LineageEdge, LineageNode, TableDifference, Unfollowed
from mergeplan.planner.data_field import describe


class TestCounts(Data):
    """How many unit tests passed."""

    __test__ = False  # pytest must not collect it

    passed: int = describe(0, "tests that passed")
    failed: int = describe(0, "tests that failed")
    unchanged: int = describe(0, "tests that passed before and did not run; they count as passed")
    seconds: Maybe[float] = describe(None, "how long all took, where a plan ran them")


class LintCounts(Data):
    """How many rules are broken."""

    errors: int = describe(0, "rules that stop a plan")
    warnings: int = describe(0, "rules that do not")


class AuditCounts(Data):
    """How many audits found nothing."""

    passed: int = describe(0, "audits that found nothing")
    failed: int = describe(0, "audits that found rows")
    unchanged: int = describe(0, "audits that passed before and did not run; they count as passed")


class BackfillCounts(Data):
    """What was computed."""

    rows: int = describe(0, "rows written")
    batches: int = describe(0, "batches written")
    seconds: Maybe[float] = describe(None, "of all batches, added up")


class ViewCounts(Data):
    """Views by what became of them."""

    added: int = describe(0, "views that came")
    swapped: int = describe(0, "views that got another table")
    dropped: int = describe(0, "views that went")
    unchanged: int = describe(0, "views that stayed")


class PromotionRow(Data):
    """What a promotion did and what it took."""

    views: ViewCounts = describe(ViewCounts(), "views by what became of them")
    revision: int = describe(0, "of the environment since")
    spark_jobs: Maybe[int] = describe(
        None, "that the promotion itself started, counted by Spark; absent where an earlier run did it"
    )
    backfill: Maybe[BackfillCounts] = describe(None, "what was computed before it, by the same run")


class KeptRow(Data):
    """A table whose old versions all stay."""

    table: str = Field(description="the table")
    reason: str = Field(description="why, as a sentence")


class EnvironmentRow(Data):
    """An environment."""

    name: str = Field(description="its name")
    revision: int = describe(0, "its revision")
    plan_id: str = describe("", "the plan that made it")
    promoted_at: str | None = describe(None, "when, or null")
    models: int = describe(0, "how many models it has")
    views: int = describe(0, "how many views it has")
    expires_at: str | None = describe(None, "when it is dropped, or null")


class DiffRow(Data):
    """A model that differs from an environment's, as in a plan."""

    name: str = Field(description="the model")
    change: Change = Field(description="how it differs")
    category: Category | None = describe(None, "what that does to tables")
    rule: str = describe("", "the rule that decided")
    reason: str = describe("", "the rule's sentence")
    columns: ColumnChanges = describe(ColumnChanges(), "the columns that differ")
    diff: str = describe("", "unified diff of its text")
    path: str = describe("", "its file")
    line: int = describe(0, "its line")


class GraphNode(Data):
    """A model of the graph."""

    name: str = Field(description="the model")
    parents: Names = describe((), "the models that it reads")


class LeftFile(Data):
    """A file that `format` left as it is."""

    path: str = Field(description="the file")
    reason: str = Field(description="why")


class FormatResult(Data):
    """What `format` did."""

    changed: Names = describe((), "paths of the files that were, or would be, formatted")
    left: tuple[LeftFile, ...] = describe((), "`path` and `reason` of what was left as it is")
    files: int = describe(0, "how many were looked at")


class Info(Data):
    """The project, and whether its Spark and its state answer."""

    version: str = Field(description="of mergeplan")
    project: str = Field(description="its folder")
    gateway: str = Field(description="the gateway in use")
    models: int = Field(description="how many")
    audits: int = Field(description="how many")
    tests: int = Field(description="how many")
    environments: Maybe[int] = describe(None, "how many, when the state answers")
    state: Maybe[str] = describe(None, "`reachable`, or why not")
    spark: Maybe[str] = describe(None, "its version, or why it does not answer")


class ResultLine(Data):
    """The last line. Keys that do not apply are absent."""

    event: Literal["result"] = "result"
    version: Version = VERSION
    ok: bool = Field(description="false: the exit code is not 0")
    applied: bool = describe(False, "a promotion took place")
    plan: Maybe[PlanView] = describe(
        None,
        "`plan`, `apply`, `run`: as in the `plan` line; after an apply that compared tables, "
        "[as it was in the end](#after-comparing)",
    )
    tests: Maybe[TestCounts] = describe(None, "`plan`, `test`: how many passed")
    lint: Maybe[LintCounts] = describe(None, "`lint`: how many rules are broken")
    format: Maybe[FormatResult] = describe(None, "`format`: what it did")
    audits: Maybe[tuple[AuditRow, ...]] = describe(None, "`plan`, `apply`, `run`: the `audit` lines again")
    audit_counts: Maybe[AuditCounts] = describe(None, "`audit`: how many found nothing")
    backfill: Maybe[BackfillCounts] = describe(None, "where a plan was applied: what was computed")
    promotion: Maybe[PromotionRow] = describe(None, "where views moved: what was done")
    recovered: Maybe[dict[str, Names]] = describe(
        None,
        "where a crash had left a promotion that this verb finished: environment -> names of the views "
        "that came, moved or went with it. The plan that follows is made after it, and may be empty",
    )
    pending: Maybe[dict[str, Names]] = describe(
        None, "where a verb that only looks found one: environment -> names of the views of which some may have moved"
    )
    promoted_before: Maybe[PromotionRow] = describe(
        None,
        "`plan` that has nothing to do: what an earlier run promoted under the same `--note`, also when "
        "that run ended before it wrote its result",
    )
    seconds: Maybe[float] = describe(None, "`plan`, `apply`: how long applying took")
    expected: Maybe[bool] = describe(None, "`plan`, `apply`: false when `--expect-digest` named another digest")
    skipped: Maybe[str] = describe(None, "`run`: why it did nothing: another run of the environment is under way")
    file: Maybe[str] = describe(None, "`create_external_models`, `state export`: the file that was written")
    tables: Maybe[Names] = describe(
        None, "`invalidate`, `janitor`: the tables that were dropped; `create_external_models`: those that were added"
    )
    missing: Maybe[Names] = describe(None, "`create_external_models`: tables that the catalog does not know")
    dropped: Maybe[bool] = describe(None, "`janitor`: false under `--dry-run`")
    expired: Maybe[Names] = describe(None, "`janitor`: names of the environments that have expired")
    cleaned: Maybe[Names] = describe(None, "`janitor`: tables whose old versions were removed, or would be looked at")
    kept: Maybe[tuple[KeptRow, ...]] = describe(None, "`janitor`: tables whose old versions all stay, and why")
    environment: Maybe[str] = describe(None, "`diff`: what was compared")
    other: Maybe[str] = describe(None, "`diff`: the other environment; absent: the project's files")
    different: Maybe[bool] = describe(None, "`diff`: whether it differs")
    changes: Maybe[tuple[DiffRow, ...]] = describe(None, "`diff`: each model that differs")
    environments: Maybe[tuple[EnvironmentRow, ...]] = describe(None, "`environments`: each")
    environment_names: Maybe[Names] = describe(None, "`state export`, `state import`: those in the document")
    revisions: Maybe[tuple[RevisionRow, ...]] = describe(None, "`environments ENV`: each, newest first")
    audit_history: Maybe[tuple[AuditHistoryRow, ...]] = describe(None, "`audit --history`: each result, newest first")
    freshness: Maybe[tuple[FreshnessRow, ...]] = describe(None, "`freshness`: how old each table is")
    rollback: Maybe[RollbackView] = describe(
        None, "`rollback`: what it did, or with `--dry-run` would do; absent if it finished an interrupted one"
    )
    same: Maybe[bool] = describe(None, "`table_diff`: whether everything is the same, as `ok`")
    data_diff: Maybe[tuple[DataDifference, ...]] = describe(
        None, "`data_diff`, and `plan` with `--data-diff`: what the changes do to the rows, a model each"
    )
    physical_plan: Maybe[tuple[PhysicalPlanRow, ...]] = describe(
        None,
        "`physical_plan`, and `plan`, `apply` of an environment: what the edits do to Spark's physical "
        "plans, a model each whose query runs otherwise",
    )
    table_diffs: Maybe[tuple[TableDifference, ...]] = describe(None, "`table_diff`: the `table_diff` lines again")
    columns: Maybe[Names] = describe(None, "`fetchdf`: the answer's columns")
    rows: Maybe[tuple[tuple[Any, ...], ...]] = describe(None, "`fetchdf`: the answer's rows")
    models: Maybe[tuple[GraphNode, ...]] = describe(None, "`dag`: each, parents first")
    kinds: Maybe[dict[str, str]] = describe(None, "`dag`: each model's kind, by name")
    model: Maybe[str] = describe(None, "`lineage`: the requested model")
    column: Maybe[str] = describe(None, "`lineage`: the requested column; absent: the whole model")
    direction: Maybe[Direction] = describe(None, "`lineage`: where it was followed to")
    nodes: Maybe[tuple[LineageNode, ...]] = describe(
        None, "`lineage`: all columns that are reached, the requested one first"
    )
    edges: Maybe[tuple[LineageEdge, ...]] = describe(None, "`lineage`: what goes into what")
    unfollowed: Maybe[tuple[Unfollowed, ...]] = describe(
        None, "`lineage`: each query that cannot be followed column by column"
    )
    unused_columns: Maybe[tuple[UnusedColumnRow, ...]] = describe(
        None, "`lineage --unused-columns`: each column that nothing needs"
    )
    adoption: Maybe[AdoptionView] = describe(
        None, "`adopt`: the project looked over, or the declared tables as they were checked"
    )
    info: Maybe[Info] = describe(None, "`info`: as the text says")
