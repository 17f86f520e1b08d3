"""/lineage: what a model or a column is made from, what is made from it, and what decides its rows."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from mergeplan.planner.api.access import Scope
from mergeplan.planner.api.context import Closed, Context, require_scope
from mergeplan.planner.api.names import Name
from mergeplan.planner.api.problems import NotFound, problem_responses
from mergeplan.planner.api.routes.models import find_model
from mergeplan.planner.contract.base import Data, Direction, Names
from mergeplan.planner.contract.catalog import CatalogModelRow
from mergeplan.planner.contract.from_tables import lineage_result
from mergeplan.planner.contract.tables import LineageEdge, LineageNode, Unfollowed
from mergeplan.planner.data_field import describe
from mergeplan.planner.errors import RequestError
from mergeplan.planner.session.use_cases.lineage import find_lineage

router = APIRouter(tags=["lineage"], dependencies=[require_scope(Scope.READ)])
MOST = 2000


class ModelLineageQuery(Closed):
    """How far a model is followed."""

    direction: Direction = describe("upstream", "where to")
    depth: int = Field(default=50, ge=1, le=1000, description="how many steps")
    limit: int = Field(default=500, ge=1, le=MOST, description="how many models at most, the nearest first")


class ColumnLineageQuery(Closed):
    """Where a column is followed."""

    direction: Direction = describe("upstream", "where to")
    limit: int = Field(default=500, ge=1, le=MOST, description="how many edges of each sort at most")


class RelatedModel(Data):
    """A model or table that is reached."""

    name: str = Field(description="the model")
    kind: str | None = describe(None, "its kind; null: a table that no file declares")
    depth: int = Field(description="how many steps away: 0 is the model itself")
    parents: Names = describe((), "the tables that it reads")


class ModelLineage(Data):
    """The models around one."""

    model: str = Field(description="the model")
    direction: Direction = Field(description="where it was followed to")
    models: tuple[RelatedModel, ...] = Field(description="those that are reached, the nearest first")
    more: bool = describe(False, "there are more than `limit`, or beyond `depth`")


class ColumnLineage(Data):
    """What a column is made from, or what is made from it; apart, what decides rows."""

    model: str = Field(description="the model")
    column: str = Field(description="the column")
    direction: Direction = Field(description="where it was followed to")
    nodes: tuple[LineageNode, ...] = Field(description="columns that are reached, the requested one first")
    values: tuple[LineageEdge, ...] = Field(description="what goes into values")
    rows: tuple[LineageEdge, ...] = Field(description="what decides which rows there are")
    unfollowed: tuple[Unfollowed, ...] = Field(description="each query that cannot be followed column by column")
    more: bool = describe(False, "there are more than `limit`")


@router.get("/lineage/{model}", summary="Follow a model", responses=problem_responses(404))
def follow_model(
    context: Context, model: Annotated[Name, Path()], query: Annotated[ModelLineageQuery, Query()]
) -> ModelLineage:
    """Return the models upstream or downstream of a model."""
    snapshot = context.reader.read()
    start = find_model(snapshot, model)
    depths = walk_lineage(snapshot.models, start.name, query.direction, query.depth)
    related = [_lineage_row(snapshot.models, name, depth) for name, depth in depths.items()]
    beyond = any(
        near not in depths for name in depths for near in list_neighbours(snapshot.models, name, query.direction)
    )
    return ModelLineage(
        model=start.name,
        direction=query.direction,
        models=tuple(related[: query.limit]),
        more=beyond or len(related) > query.limit,
    )


@router.get("/lineage/{model}/{column}", summary="Follow a column", responses=problem_responses(404))
def follow_column(
    context: Context,
    model: Annotated[Name, Path()],
    column: Annotated[Name, Path()],
    query: Annotated[ColumnLineageQuery, Query()],
) -> ColumnLineage:
    """Return the columns upstream or downstream of a column; columns that only decide rows are listed separately."""
    row = find_model(context.reader.read(), model)
    called = column.lower()
    if row.columns is not None and called not in {one.name.lower() for one in row.columns}:
        raise NotFound(f"`{row.name}` has no column `{column}`.")
    with context.reader.open() as work:
        try:
            lineage = find_lineage(work, f"{row.name}.{called}", downstream=query.direction == "downstream")
        except RequestError as error:
            raise NotFound(error.message, hint=error.hint) from None
        result = lineage_result(lineage, work.project.models)
    edges = result.edges or ()
    values = tuple(edge for edge in edges if edge.how != "decides_rows")
    rows = tuple(edge for edge in edges if edge.how == "decides_rows")
    return ColumnLineage(
        model=row.name,
        column=called,
        direction=query.direction,
        nodes=(result.nodes or ())[: query.limit],
        values=values[: query.limit],
        rows=rows[: query.limit],
        unfollowed=result.unfollowed or (),
        more=max(len(values), len(rows)) > query.limit,
    )


def list_neighbours(models: Mapping[str, CatalogModelRow], name: str, direction: Direction) -> Names:
    """Return what a model reads, or what reads it; () for a table that no file declares."""
    if name in models:
        return models[name].parents if direction == "upstream" else models[name].readers
    return ()


def walk_lineage(models: Mapping[str, CatalogModelRow], start: str, direction: Direction, depth: int) -> dict[str, int]:
    """Return each model within so many steps with its number of steps, the nearest first."""
    depths, edge = {start: 0}, [start]
    for step in range(1, depth + 1):
        edge = sorted({near for name in edge for near in list_neighbours(models, name, direction)} - depths.keys())
        depths |= dict.fromkeys(edge, step)
    return depths


def _lineage_row(models: Mapping[str, CatalogModelRow], name: str, depth: int) -> RelatedModel:
    row = models.get(name)
    return RelatedModel(name=name, kind=row.kind if row else None, depth=depth, parents=row.parents if row else ())
