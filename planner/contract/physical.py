"""What an edit does to a query's physical plan."""

from typing import Annotated

from pydantic import Field, WithJsonSchema

from mergeplan.planner.contract.base import Data, Names
from mergeplan.planner.data_field import describe

Cost = Annotated[
    str,
    WithJsonSchema(
        {
            "enum": [
                "pruning",
                "filter",
                "cartesian_product",
                "nested_loop_join",
                "broadcast",
                "one_task",
                "python",
                "shuffle",
            ]
        }
    ),
]


class PhysicalChangeRow(Data):
    """A cost that a query has more often than before, or less often."""

    cost: Cost = Field(
        description="what is expensive: `pruning` (all partitions of a table are read), `filter` (a table is read "
        "without a filter), `cartesian_product`, `nested_loop_join` (without an equality), `broadcast` (a join's side "
        "is shuffled and not broadcast), `one_task` (a window without PARTITION BY), `python` (rows go through "
        "Python), `shuffle`"
    )
    before: int = Field(description="how often the old query has it")
    after: int = Field(description="how often the new one has it")
    tables: Names = describe((), "the models, or tables that no model has, that it is about")
    columns: Names = describe((), "the columns: of the partitions, or of the new shuffles")


class PhysicalPlanRow(Data):
    """How Spark's physical plans of a model's old and new query differ."""

    model: str = Field(description="the model")
    changes: tuple[PhysicalChangeRow, ...] = describe(
        (), "what is worse, or where nothing is, what is better; empty: nothing that matters"
    )
    note: str = describe("", "why they were not compared; empty: they were")
