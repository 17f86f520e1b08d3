"""Queries that Spark's own parser refuses, reported at the person's line and column before a plan is shown."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from mergeplan.planner.apply.backfill.layout import Layout, locate_query_errors
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import ProjectError, ProjectErrors, QueryError
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import ChangeKind

THREADS = 4  # queries at once


def check_syntax(plan: Plan, layout: Layout, engine: Engine) -> None:
    """Raise ProjectErrors for the queries of new and edited models that Spark cannot parse."""
    edited = (ChangeKind.ADDED, ChangeKind.DIRECT)
    models = [change.new.model for change in plan.changes if change.new and change.change in edited]
    with ThreadPoolExecutor(THREADS, thread_name_prefix="syntax") as pool:
        results = pool.map(
            lambda model: _find_syntax_error(model, layout, engine),
            [sql_model for sql_model in models if sql_model.sql],
        )
        errors = tuple(error for error in results if error is not None)
    if errors:
        raise errors[0] if len(errors) == 1 else ProjectErrors(errors)


def _find_syntax_error(model: Model, layout: Layout, engine: Engine) -> ProjectError | None:
    try:
        with locate_query_errors(model, layout):
            engine.engine_for(model.gateway).reads(layout.query(model, None))
    except QueryError as error:
        return ProjectError(f"{model.name}: {error.message}", place=error.located, hint=error.hint)
    return None
