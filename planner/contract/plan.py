"""A plan as it is shown: what changes, why, what is computed and what of the environment moves."""

from typing import Literal

from pydantic import Field

from mergeplan.planner.contract.base import Category, Change, Data, Maybe, Names, Spans
from mergeplan.planner.data_field import describe
from mergeplan.planner.plan.witness.check import COMPARING

CheckState = Literal["agrees", "explained", "unchecked", "disagrees"]


class ColumnChanges(Data):
    """The output columns that a change touches."""

    added: Names = describe((), "columns that come")
    altered: Names = describe((), "columns with other values")
    removed: Names = describe((), "columns that go")
    every: bool = describe(False, "rows change, and so every column")
    lost_readers: tuple[tuple[str, Names], ...] = describe(
        (), "the columns that go, each with the models of the base that read it, or may"
    )


class CostEstimate(Data):
    """What computing the intervals would cost; 0 where it is not known."""

    bytes: int = describe(0, "read from files")
    rows: int = describe(0, "written")
    seconds: float = describe(0.0, "of all batches, added up")
    basis: Names = describe(
        (),
        "`statistics`: `bytes` are known, by Spark's statistics of the files that its queries would read; "
        "`batches`: `rows` and `seconds` are known, by what such batches cost before",
    )


class OverrideRow(Data):
    """A category that a person gave in place of the rule's."""

    model: str = Field(description="the model")
    category: Category = Field(description="what the person chose")
    who: str = describe("", "the person, as `--who` named them")
    at: str | None = describe(None, "when, in ISO 8601; null before it is stored")
    restates: str = describe(
        "",
        "of a restatement in a copy, the days that are computed again: `START..END`, UTC, half-open, "
        "empty on a side without a bound; '' for a category",
    )
    ended_by: str = describe(
        "",
        "of an unused one, what changed since: `base`, which has another version of the model now, or "
        "`edit`, the model here or what it reads",
    )


class SparkCheck(Data):
    """What [Spark's own analyzer](explanation/two-witnesses.md) says of a model that keeps rows by the rules."""

    state: CheckState = Field(
        description="`agrees`; `explained`: its plans differ by what a proved rule says is the same; `unchecked`: it "
        "was not asked, or cannot be"
    )
    detail: str = describe("", "the rules that explain it, or why it was not checked")


class ModelChange(Data):
    """One model of a plan: what happened to it, its category and why, its table and what of it is computed."""

    name: str = Field(description="the model")
    kind: str = describe("", "its kind")
    path: str = describe("", "its file")
    line: int = describe(0, "its line in that file")
    owner: str = describe("", "who owns it, as its file says")
    tags: Names = describe((), "its tags, those that the change takes away too")
    change: Change = Field(description="how it came into the plan; `due` for `run`, `restated` for `--restate-model`")
    category: Category | None = describe(
        None, "what the change does to tables; null for `added`, `removed`, `due` and `restated`"
    )
    rule: str = describe("", "[the rule](reference/categories.md) that decided")
    reason: str = describe("", "the rule's sentence")
    columns: ColumnChanges = describe(ColumnChanges(), "the columns that the change touches")
    recomputed: bool = describe(False, "its table is another one than the base's")
    skipped: bool = describe(False, "its inputs hold the same rows: it would be computed otherwise")
    table: str = describe("", "the physical table")
    shares: str | None = describe(None, "the environment whose table it is, or null")
    intervals: Spans = describe((), "the time that is missing and would be computed now")
    copies: Spans = describe(
        (), "the part of `intervals` that is copied from its old table: all that it reads holds the same rows"
    )
    needed: Spans = describe((), "the time that its table must hold")
    recorded: Spans = describe((), "what counts as computed and is not, under `--empty-backfill`")
    first_load: bool = describe(False, "a table of dbt gets all rows of its query at once, whatever `intervals` says")
    lost: Spans = describe((), "the time before the first day of its new table that the old one holds")
    preview: bool = describe(False, "its table is of this environment alone, and is never promoted")
    keeps: Spans = describe((), "the time whose rows a [forward-only](guides/forward-only.md) change keeps")
    estimate: CostEstimate = describe(CostEstimate(), "what computing `intervals` would cost")
    parents: Names = describe((), "the models that it reads")
    diff: str = describe("", "unified diff of its text")
    override: OverrideRow | None = describe(None, "the category that a person gave, or null")
    checked: SparkCheck | None = describe(None, "the check of what it keeps; null where nothing is to be checked")


class ExposureRow(Data):
    """A use outside of the project, of whose models the plan changes rows, values or takes columns away."""

    name: str = Field(description="what it is called")
    type: str = describe("", "what it is, such as `dashboard`")
    owner: str = describe("", "who owns it")
    url: str = describe("", "where it is")
    models: Names = describe((), "the changed models that it uses")


class ViewNames(Data):
    """The views that a promotion of the plan moves, by name."""

    added: Names = describe((), "views that come")
    swapped: Names = describe((), "views that get another table")
    dropped: Names = describe((), "views that go")


class TableComparison(Data):
    """Two tables of a model that will be compared while the plan is applied."""

    reader: str = Field(description="the model that is skipped where they hold the same rows")
    model: str = Field(description="the model whose new table is compared with the one it replaces")
    columns: Names = describe((), "what of it the reader reads")


class Remark(Data):
    """A sentence about a place in the project."""

    message: str = Field(description="what is wrong, and what to do")
    path: str = describe("", 'the file, or `""`')
    line: int = describe(0, "the line, or 0")


class LeftOutRow(Data):
    """A model that a restatement reaches and does not compute, or that cannot be planned."""

    model: str = Field(description="the model")
    reason: str = Field(description="why it stays as it is")


class RefusedRow(Data):
    """A file of models that cannot be opened: what it would define is not planned."""

    models: Names = describe((), "the models that it would define, as far as its text says them")
    path: str = describe("", "the file in which the error is")
    line: int = describe(0, "its line, or 0")
    message: str = Field(description="why, and what to do")
    deployed: bool = describe(False, "prod shows a model of it, which stays as it is")


class TouchedEnvironment(Data):
    """Another environment that a restatement is felt in."""

    environment: str = Field(description="its name")
    shared: Names = describe((), "the models whose restated table it shows too")
    outdated: Names = describe((), "the models whose own tables it must compute again for that time")


class RestatementView(Data):
    """What a plan of `--restate-model` leaves out and touches."""

    left_out: tuple[LeftOutRow, ...] = describe((), "models in the selection's reach that keep their rows")
    environments: tuple[TouchedEnvironment, ...] = describe((), "other environments that feel it")


class PlanView(Data):
    """A plan: what is put in place of what, why, and what that takes."""

    id: str = Field(description="names the plan: what is put in place of what, the days, the categories, the options")
    digest: str = describe(
        "", "equal for two plans that put the same tables in place of the same tables, in any environment"
    )
    environment: str = Field(description="what is planned")
    base: str = Field("prod", description="what it is compared with")
    virtual: bool = describe(False, "nothing is computed")
    empty: bool = describe(False, "nothing is computed and no view moves")
    models: tuple[ModelChange, ...] = describe((), "each changed model, parents first")
    exposures: tuple[ExposureRow, ...] = describe(
        (), "[uses outside of the project](guides/exposures.md) that the changes reach"
    )
    views: ViewNames = describe(ViewNames(), "the views that move")
    comparisons: tuple[TableComparison, ...] = describe(
        (),
        "what may still skip a model: once `model` is built and holds the same rows as before in "
        "`columns`, `reader` is not computed. If a reader has several, all must hold the same rows",
    )
    blockers: tuple[Remark, ...] = describe((), "what forbids applying")
    warnings: tuple[Remark, ...] = describe((), "what a model only wants to be warned of")
    overrides: tuple[OverrideRow, ...] = describe((), "categories of people that are in force")
    unused_overrides: tuple[OverrideRow, ...] = describe((), "those that are no longer about this change")
    refused: tuple[RefusedRow, ...] = describe(
        (), "[files of models that cannot be opened](reference/projects.md#models-that-cannot-be-opened)"
    )
    left_out: tuple[LeftOutRow, ...] = describe((), "models that read what is refused")
    not_selected: Names = describe(
        (), "changed models that a plan of [`--select-model`](reference/commands.md#plan) leaves alone"
    )
    restatement: RestatementView | None = describe(
        None, "null, or what a plan of [`--restate-model`](guides/restatement.md) leaves out and touches"
    )
    planned_digest: Maybe[str] = describe(None, "only [after comparing](#after-comparing): the digest as it was shown")

    @property
    def awaits_spark(self) -> bool:
        """True while Spark compares its queries: the plan comes again after that."""
        return any(model.checked is not None and model.checked.detail == COMPARING for model in self.models)
