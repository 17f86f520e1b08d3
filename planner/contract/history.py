"""What an environment has shown, and what going back to it does."""

from typing import Literal

from pydantic import Field

from mergeplan.planner.contract.base import Data, Names, Spans
from mergeplan.planner.data_field import describe


class RevisionRow(Data):
    """One promotion of an environment."""

    revision: int = Field(description="its number")
    action: str = Field(description="`promoted`, `rolled_back`, `dropped` or `undone`")
    plan_id: str = describe("", "the plan")
    at: str = Field(description="when")
    models: int = describe(0, "how many models the environment had")
    who: str = describe("", "who wanted it")
    note: str = describe("", "why")


class AuditHistoryRow(Data):
    """An audit ran once."""

    at: str = Field(description="when")
    model: str = describe("", 'the model, `""` of a standalone audit')
    audit: str = Field(description="the audit")
    arguments: dict[str, str] = Field(default_factory=dict, description="its arguments, as SQL")
    outcome: Literal["passed", "warned", "failed"] = Field(
        description="`passed` found no rows; with rows `failed`, or `warned` where the audit does not block"
    )
    rows: int = describe(0, "how many rows it found")
    start: str | None = describe(None, "the beginning of the time that it looked at; null: all rows")
    end: str | None = describe(None, "its end, not included")
    table: str = describe("", 'the table that it looked at, `""` of a standalone audit')


class MovedViewRow(Data):
    """A view that a rollback makes, moves or drops."""

    model: str = Field(description="its model")
    view: str = Field(description="its name")
    before: str | None = Field(description="the table that it shows until then; null: the view comes back")
    after: str | None = Field(description="the table that it shows from then on; null: the view goes away")


class BehindRow(Data):
    """A table that is shown again and lacks time."""

    model: str = Field(description="its model")
    kind: str = Field(description="the model's kind then")
    table: str = Field(description="the table")
    held: Spans = describe((), "the intervals that it holds; of a FULL table the end is all that counts")
    lacks: Spans = describe((), "the intervals that today's table of the model holds and it does not")
    due: Spans = describe((), "the intervals that the next `run` computes in it, signals aside")


class RollbackView(Data):
    """What a rollback does, or would do."""

    environment: str = Field(description="the environment")
    revision: int = Field(description="its revision before")
    target: RevisionRow = Field(description="the revision whose tables are shown again")
    until: str = Field(description="when the environment left that revision")
    since: tuple[RevisionRow, ...] = describe((), "the revisions that are taken back, newest first")
    views: tuple[MovedViewRow, ...] = describe((), "the views that move, by name")
    behind: tuple[BehindRow, ...] = describe((), "the tables shown again that lack time, by model")
    gone: Names = describe((), "tables that are needed and gone: with one of them it cannot be done")
