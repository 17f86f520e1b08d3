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


class TestCounts(Data):
    """How many unit tests passed."""

    __test__ = False  # pytest must not collect it

    passed: int = Field(default=0, description="tests that passed")
    failed: int = Field(default=0, description="tests that failed")
    unchanged: int = Field(default=0, description="tests that passed before and did not run; they count as passed")
    seconds: Maybe[float] = Field(default=None, description="how long all took, where a plan ran them")


class LintCounts(Data):
    """How many rules are broken."""

    errors: int = Field(default=0, description="rules that stop a plan")
    warnings: int = Field(default=0, description="rules that do not")


class AuditCounts(Data):
    """How many audits found nothing."""

    passed: int = Field(default=0, description="audits that found nothing")
    failed: int = Field(default=0, description="audits that found rows")
    unchanged: int = Field(default=0, description="audits that passed before and did not run; they count as passed")


class BackfillCounts(Data):
    """What was computed."""

    rows: int = Field(default=0, description="rows written")
    batches: int = Field(default=0, description="batches written")
    seconds: Maybe[float] = Field(default=None, description="of all batches, added up")


class ViewCounts(Data):
    """Views by what became of them."""

    added: int = Field(default=0, description="views that came")
    swapped: int = Field(default=0, description="views that got another table")
    dropped: int = Field(default=0, description="views that went")
    unchanged: int = Field(default=0, description="views that stayed")


class PromotionRow(Data):
    """What a promotion did and what it took."""

    views: ViewCounts = Field(default=ViewCounts(), description="views by what became of them")
    revision: int = Field(default=0, description="of the environment since")
    spark_jobs: Maybe[int] = Field(
        default=None,
        description="that the promotion itself started, counted by Spark; absent where an earlier run did it",
    )
    backfill: Maybe[BackfillCounts] = Field(default=None, description="what was computed before it, by the same run")


class KeptRow(Data):
    """A table whose old versions all stay."""

    table: str = Field(description="the table")
    reason: str = Field(description="why, as a sentence")


class EnvironmentRow(Data):
    """An environment."""

    name: str = Field(description="its name")
    revision: int = Field(default=0, description="its revision")
    plan_id: str = Field(default="", description="the plan that made it")
    promoted_at: str | None = Field(default=None, description="when, or null")
    models: int = Field(default=0, description="how many models it has")
    views: int = Field(default=0, description="how many views it has")
    expires_at: str | None = Field(default=None, description="when it is dropped, or null")


class DiffRow(Data):
    """A model that differs from an environment's, as in a plan."""

    name: str = Field(description="the model")
    change: Change = Field(description="how it differs")
    category: Category | None = Field(default=None, description="what that does to tables")
    rule: str = Field(default="", description="the rule that decided")
    reason: str = Field(default="", description="the rule's sentence")
    columns: ColumnChanges = Field(default=ColumnChanges(), description="the columns that differ")
    diff: str = Field(default="", description="unified diff of its text")
    path: str = Field(default="", description="its file")
    line: int = Field(default=0, description="its line")


class GraphNode(Data):
    """A model of the graph."""

    name: str = Field(description="the model")
    parents: Names = Field(default=(), description="the models that it reads")


class LeftFile(Data):
    """A file that `format` left as it is."""

    path: str = Field(description="the file")
    reason: str = Field(description="why")


class FormatResult(Data):
    """What `format` did."""

    changed: Names = Field(default=(), description="paths of the files that were, or would be, formatted")
    left: tuple[LeftFile, ...] = Field(default=(), description="`path` and `reason` of what was left as it is")
    files: int = Field(default=0, description="how many were looked at")


class Info(Data):
    """The project, and whether its Spark and its state answer."""

    version: str = Field(description="of mergeplan")
    project: str = Field(description="its folder")
    gateway: str = Field(description="the gateway in use")
    models: int = Field(description="how many")
    audits: int = Field(description="how many")
    tests: int = Field(description="how many")
    environments: Maybe[int] = Field(default=None, description="how many, when the state answers")
    state: Maybe[str] = Field(default=None, description="`reachable`, or why not")
    spark: Maybe[str] = Field(default=None, description="its version, or why it does not answer")


class ResultLine(Data):
    """The last line. Keys that do not apply are absent."""

    event: Literal["result"] = "result"
    version: Version = VERSION
    ok: bool = Field(description="false: the exit code is not 0")
    applied: bool = Field(default=False, description="a promotion took place")
    plan: Maybe[PlanView] = Field(
        default=None,
        description="`plan`, `apply`, `run`: as in the `plan` line; after an apply that compared tables, "
        "[as it was in the end](#after-comparing)",
    )
    tests: Maybe[TestCounts] = Field(default=None, description="`plan`, `test`: how many passed")
    lint: Maybe[LintCounts] = Field(default=None, description="`lint`: how many rules are broken")
    format: Maybe[FormatResult] = Field(default=None, description="`format`: what it did")
    audits: Maybe[tuple[AuditRow, ...]] = Field(
        default=None, description="`plan`, `apply`, `run`: the `audit` lines again"
    )
    audit_counts: Maybe[AuditCounts] = Field(default=None, description="`audit`: how many found nothing")
    backfill: Maybe[BackfillCounts] = Field(default=None, description="where a plan was applied: what was computed")
    promotion: Maybe[PromotionRow] = Field(default=None, description="where views moved: what was done")
    recovered: Maybe[dict[str, Names]] = Field(
        default=None,
        description="where a crash had left a promotion that this verb finished: environment -> names of the views "
        "that came, moved or went with it. The plan that follows is made after it, and may be empty",
    )
    pending: Maybe[dict[str, Names]] = Field(
        default=None,
        description="where a verb that only looks found one: environment -> names of the views of which some may "
        "have moved",
    )
    promoted_before: Maybe[PromotionRow] = Field(
        default=None,
        description="`plan` that has nothing to do: what an earlier run promoted under the same `--note`, also when "
        "that run ended before it wrote its result",
    )
    seconds: Maybe[float] = Field(default=None, description="`plan`, `apply`: how long applying took")
    expected: Maybe[bool] = Field(
        default=None, description="`plan`, `apply`: false when `--expect-digest` named another digest"
    )
    skipped: Maybe[str] = Field(
        default=None, description="`run`: why it did nothing: another run of the environment is under way"
    )
    file: Maybe[str] = Field(
        default=None, description="`create_external_models`, `state export`: the file that was written"
    )
    tables: Maybe[Names] = Field(
        default=None,
        description="`invalidate`, `janitor`: the tables that were dropped; `create_external_models`: those that were "
        "added",
    )
    missing: Maybe[Names] = Field(
        default=None, description="`create_external_models`: tables that the catalog does not know"
    )
    dropped: Maybe[bool] = Field(default=None, description="`janitor`: false under `--dry-run`")
    expired: Maybe[Names] = Field(default=None, description="`janitor`: names of the environments that have expired")
    cleaned: Maybe[Names] = Field(
        default=None, description="`janitor`: tables whose old versions were removed, or would be looked at"
    )
    kept: Maybe[tuple[KeptRow, ...]] = Field(
        default=None, description="`janitor`: tables whose old versions all stay, and why"
    )
    environment: Maybe[str] = Field(default=None, description="`diff`: what was compared")
    other: Maybe[str] = Field(default=None, description="`diff`: the other environment; absent: the project's files")
    different: Maybe[bool] = Field(default=None, description="`diff`: whether it differs")
    changes: Maybe[tuple[DiffRow, ...]] = Field(default=None, description="`diff`: each model that differs")
    environments: Maybe[tuple[EnvironmentRow, ...]] = Field(default=None, description="`environments`: each")
    environment_names: Maybe[Names] = Field(
        default=None, description="`state export`, `state import`: those in the document"
    )
    revisions: Maybe[tuple[RevisionRow, ...]] = Field(
        default=None, description="`environments ENV`: each, newest first"
    )
    audit_history: Maybe[tuple[AuditHistoryRow, ...]] = Field(
        default=None, description="`audit --history`: each result, newest first"
    )
    freshness: Maybe[tuple[FreshnessRow, ...]] = Field(default=None, description="`freshness`: how old each table is")
    rollback: Maybe[RollbackView] = Field(
        default=None,
        description="`rollback`: what it did, or with `--dry-run` would do; absent if it finished an interrupted one",
    )
    same: Maybe[bool] = Field(default=None, description="`table_diff`: whether everything is the same, as `ok`")
    data_diff: Maybe[tuple[DataDifference, ...]] = Field(
        default=None,
        description="`data_diff`, and `plan` with `--data-diff`: what the changes do to the rows, a model each",
    )
    physical_plan: Maybe[tuple[PhysicalPlanRow, ...]] = Field(
        default=None,
        description="`physical_plan`, and `plan`, `apply` of an environment: what the edits do to Spark's physical "
        "plans, a model each whose query runs otherwise",
    )
    table_diffs: Maybe[tuple[TableDifference, ...]] = Field(
        default=None, description="`table_diff`: the `table_diff` lines again"
    )
    columns: Maybe[Names] = Field(default=None, description="`fetchdf`: the answer's columns")
    rows: Maybe[tuple[tuple[Any, ...], ...]] = Field(default=None, description="`fetchdf`: the answer's rows")
    models: Maybe[tuple[GraphNode, ...]] = Field(default=None, description="`dag`: each, parents first")
    kinds: Maybe[dict[str, str]] = Field(default=None, description="`dag`: each model's kind, by name")
    model: Maybe[str] = Field(default=None, description="`lineage`: the requested model")
    column: Maybe[str] = Field(default=None, description="`lineage`: the requested column; absent: the whole model")
    direction: Maybe[Direction] = Field(default=None, description="`lineage`: where it was followed to")
    nodes: Maybe[tuple[LineageNode, ...]] = Field(
        default=None, description="`lineage`: all columns that are reached, the requested one first"
    )
    edges: Maybe[tuple[LineageEdge, ...]] = Field(default=None, description="`lineage`: what goes into what")
    unfollowed: Maybe[tuple[Unfollowed, ...]] = Field(
        default=None, description="`lineage`: each query that cannot be followed column by column"
    )
    unused_columns: Maybe[tuple[UnusedColumnRow, ...]] = Field(
        default=None, description="`lineage --unused-columns`: each column that nothing needs"
    )
    adoption: Maybe[AdoptionView] = Field(
        default=None, description="`adopt`: the project looked over, or the declared tables as they were checked"
    )
    info: Maybe[Info] = Field(default=None, description="`info`: as the text says")
