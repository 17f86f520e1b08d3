"""What `adopt` finds: tables that could become, or became, the first versions of models."""

from pydantic import Field

from mergeplan.planner.contract.base import Data, Maybe, Names, Spans
from mergeplan.planner.contract.plan import RefusedRow
from mergeplan.planner.data_field import describe


class AdoptedTable(Data):
    """An existing table that is declared to hold a model's rows, or that has the model's name."""

    model: str = Field(description="the model")
    table: str = Field(description="the table as it was declared")
    fits: bool = Field(description="it can be taken over as the model stands")
    problems: Names = describe((), "why it cannot, a sentence each with what to do")
    notes: Names = describe((), "what to know before it is adopted")
    copies: bool = describe(False, "its rows are copied; else the new table points at its files")
    rows: int | None = describe(None, "the number of rows; null: not counted")
    holds: Spans = describe((), "the time that counts as computed")
    left: Spans = describe((), "the time that the next run computes")
    moved_to: str | None = describe(None, "its name from then on, where the model's view takes its own")
    version: str = describe("", "the physical table that is made of it")


class AdoptionView(Data):
    """A project looked over for tables that need not be computed, or the tables that were declared."""

    plan_id: str = describe("", "the plan that takes them over; empty for a survey, or when one does not fit")
    opened: Maybe[int] = describe(None, "of a survey: models that open")
    refused: Maybe[tuple[RefusedRow, ...]] = describe(None, "of a survey: files that do not")
    deployed: Maybe[Names] = describe(None, "of a survey: models that prod has already")
    without: Maybe[Names] = describe(None, "of a survey: models with rows for which there is no table")
    tables: tuple[AdoptedTable, ...] = describe((), "each table")
    replaced: Names = describe((), "views of others that views of models take the place of")
