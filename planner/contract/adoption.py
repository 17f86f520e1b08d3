"""What `adopt` finds: tables that could become, or became, the first versions of models."""

from pydantic import Field

from mergeplan.planner.contract.base import Data, Maybe, Names, Spans
from mergeplan.planner.contract.plan import RefusedRow


class AdoptedTable(Data):
    """An existing table that is declared to hold a model's rows, or that has the model's name."""

    model: str = Field(description="the model")
    table: str = Field(description="the table as it was declared")
    fits: bool = Field(description="it can be taken over as the model stands")
    problems: Names = Field(default=(), description="why it cannot, a sentence each with what to do")
    notes: Names = Field(default=(), description="what to know before it is adopted")
    copies: bool = Field(default=False, description="its rows are copied; else the new table points at its files")
    rows: int | None = Field(default=None, description="the number of rows; null: not counted")
    holds: Spans = Field(default=(), description="the time that counts as computed")
    left: Spans = Field(default=(), description="the time that the next run computes")
    moved_to: str | None = Field(
        default=None, description="its name from then on, where the model's view takes its own"
    )
    version: str = Field(default="", description="the physical table that is made of it")


class AdoptionView(Data):
    """A project looked over for tables that need not be computed, or the tables that were declared."""

    plan_id: str = Field(
        default="", description="the plan that takes them over; empty for a survey, or when one does not fit"
    )
    opened: Maybe[int] = Field(default=None, description="of a survey: models that open")
    refused: Maybe[tuple[RefusedRow, ...]] = Field(default=None, description="of a survey: files that do not")
    deployed: Maybe[Names] = Field(default=None, description="of a survey: models that prod has already")
    without: Maybe[Names] = Field(default=None, description="of a survey: models with rows for which there is no table")
    tables: tuple[AdoptedTable, ...] = Field(default=(), description="each table")
    replaced: Names = Field(default=(), description="views of others that views of models take the place of")
