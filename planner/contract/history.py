"""What an environment has shown, and what going back to it does."""

from pydantic import Field

from mergeplan.planner.contract.base import Data, Names, Spans


class RevisionRow(Data):
    """One promotion of an environment."""

    revision: int = Field(description="its number")
    action: str = Field(description="`promoted`, `rolled_back`, `dropped` or `undone`")
    plan_id: str = Field(default="", description="the plan")
    at: str = Field(description="when")
    models: int = Field(default=0, description="how many models the environment had")
    who: str = Field(default="", description="who wanted it")
    note: str = Field(default="", description="why")


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
    held: Spans = Field(
        default=(), description="the intervals that it holds; of a FULL table the end is all that counts"
    )
    lacks: Spans = Field(default=(), description="the intervals that today's table of the model holds and it does not")
    due: Spans = Field(default=(), description="the intervals that the next `run` computes in it, signals aside")


class RollbackView(Data):
    """What a rollback does, or would do."""

    environment: str = Field(description="the environment")
    revision: int = Field(description="its revision before")
    target: RevisionRow = Field(description="the revision whose tables are shown again")
    until: str = Field(description="when the environment left that revision")
    since: tuple[RevisionRow, ...] = Field(default=(), description="the revisions that are taken back, newest first")
    views: tuple[MovedViewRow, ...] = Field(default=(), description="the views that move, by name")
    behind: tuple[BehindRow, ...] = Field(default=(), description="the tables shown again that lack time, by model")
    gone: Names = Field(default=(), description="tables that are needed and gone: with one of them it cannot be done")
