"""/environments: what there is, what it has shown so far, and how the files differ from it."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from mergeplan.planner.api.access import Scope
from mergeplan.planner.api.context import ApiContext, Closed, Context, NoQuery, require_scope
from mergeplan.planner.api.names import EnvironmentName
from mergeplan.planner.api.problems import NotFound, problem_responses
from mergeplan.planner.contract.base import Data
from mergeplan.planner.contract.from_history import environment_row, revision_row, rollback_view
from mergeplan.planner.contract.from_plan import diff_row, plan_view
from mergeplan.planner.contract.history import RevisionRow, RollbackView
from mergeplan.planner.contract.result import DiffRow, EnvironmentRow
from mergeplan.planner.data_field import describe
from mergeplan.planner.session.use_cases.diff import plan_difference
from mergeplan.planner.session.use_cases.environments import plan_rollback
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import Environment

router = APIRouter(tags=["environments"], dependencies=[require_scope(Scope.READ)])
OneName = Annotated[EnvironmentName, Path(min_length=1, description="the environment")]
MOST = 500


class PageQuery(Closed):
    """Which part of a list."""

    limit: int = Field(default=50, ge=1, le=MOST, description="how many a page has at most")
    offset: int = Field(default=0, ge=0, le=1_000_000, description="how many come before the page")


class RollbackQuery(Closed):
    """Where a rollback would lead."""

    revision: int | None = Field(default=None, ge=1, le=2**31 - 1, description="the revision; else the one before")


class EnvironmentList(Data):
    """Every environment."""

    environments: tuple[EnvironmentRow, ...] = Field(description="by name")


class RevisionPage(Data):
    """What an environment has shown so far, the newest first."""

    total: int = Field(description="how many revisions there are")
    limit: int = Field(description="how many a page has at most")
    offset: int = Field(description="how many come before this page")
    revisions: tuple[RevisionRow, ...] = Field(description="the revisions")


class DiffPage(Data):
    """How the project's files differ from an environment."""

    total: int = Field(description="how many models differ")
    limit: int = Field(description="how many a page has at most")
    offset: int = Field(description="how many come before this page")
    changes: tuple[DiffRow, ...] = Field(description="each model that differs")


class RollbackAnswer(Data):
    """What a rollback would do; nothing was changed."""

    possible: bool = Field(description="false: `refusal` says why not")
    refusal: str = describe("", "why it cannot be done")
    rollback: RollbackView = Field(description="what it would do")


@router.get("/environments", summary="List environments")
def list_environments(context: Context, _: Annotated[NoQuery, Query()]) -> EnvironmentList:
    """Every environment as it is."""
    with context.reader.open_state() as work:
        return EnvironmentList(environments=tuple(map(environment_row, work.store.environments.all())))


@router.get("/environments/{name}", summary="Show an environment", responses=problem_responses(404))
def show_environment(context: Context, name: OneName, _: Annotated[NoQuery, Query()]) -> EnvironmentRow:
    """One environment as it is."""
    with context.reader.open_state() as work:
        return environment_row(find_environment(work, name))


@router.get("/environments/{name}/history", summary="Show the history", responses=problem_responses(404))
def show_history(context: Context, name: OneName, query: Annotated[PageQuery, Query()]) -> RevisionPage:
    """List the revisions of an environment: the plan, who, when and why."""
    with context.reader.open_state() as work:
        find_environment(work, name)
        revisions = work.store.environments.history(name)
    page = revisions[query.offset : query.offset + query.limit]
    return RevisionPage(
        total=len(revisions), limit=query.limit, offset=query.offset, revisions=tuple(map(revision_row, page))
    )


@router.get("/environments/{name}/diff", summary="Compare the files", responses=problem_responses(404))
def show_diff(context: Context, name: OneName, query: Annotated[PageQuery, Query()]) -> DiffPage:
    """How the project's files differ from an environment: category, rule, reason and diff of each model."""
    with context.reader.open() as work:
        find_environment(work, name)
        rows = [diff_row(change) for change in plan_view(plan_difference(work, name), {}).models]
    page = tuple(rows[query.offset : query.offset + query.limit])
    return DiffPage(total=len(rows), limit=query.limit, offset=query.offset, changes=page)


@router.get("/environments/{name}/rollback", summary="Try a rollback", responses=problem_responses(404))
def try_rollback(context: Context, name: OneName, query: Annotated[RollbackQuery, Query()]) -> RollbackAnswer:
    """Return what a rollback would move and what its tables would lack; change nothing."""
    with context.reader.open() as work:
        find_environment(work, name)
        plan = plan_rollback(work, name, query.revision)
    refusal = plan.refusal
    return RollbackAnswer(
        possible=refusal is None, refusal=str(refusal) if refusal else "", rollback=rollback_view(plan)
    )


def check_environment(context: ApiContext, name: str) -> None:
    """Raise NotFound unless the state has an environment of this name."""
    with context.reader.open_state() as work:
        find_environment(work, name)


def find_environment(work: Workspace, name: str) -> Environment:
    """Return the environment as it is; raise NotFound unless there is one of this name."""
    environment = work.store.environments.get(name)
    if not environment.exists:
        raise NotFound(f"There is no environment `{name}`.")
    return environment
