"""An environment's models as data for schedulers. Only the state is read: no file of the project is needed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mergeplan.planner.contract.schedule import (
    Schedule,
    ScheduledAudit,
    ScheduledColumn,
    ScheduledModel,
    freshness_limits,
)
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.model import Column
from mergeplan.planner.session.settings import settings_of
from mergeplan.planner.session.state_access import open_state
from mergeplan.planner.snapshot.environment import PROD, Environment, parse_environment_name
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.store import StateStore

Columns = Mapping[str, tuple[Column, ...]]  # by physical table


def make_schedule(store: StateStore, environment: str = PROD) -> Schedule:
    """Return the models that an environment shows, parents first; raise RequestError if it does not exist."""
    shown = store.environments.get(environment)
    if not shown.exists:
        hint = "`mergeplan environments` lists them; a plan that is applied creates one."
        raise RequestError(f"There is no environment `{environment}`.", hint=hint)
    columns = {name: table.columns for name, table in store.tables.all().items()}
    graph = graph_of({name: snapshot.model for name, snapshot in shown.snapshots.items()})
    return Schedule(
        project=store.database.project,
        environment=shown.name,
        revision=shown.revision,
        promoted_at=shown.promoted_at.isoformat() if shown.promoted_at else None,
        models=tuple(_schedule_model(shown, shown.snapshots[name], graph, columns) for name in graph.order),
    )


def _schedule_model(environment: Environment, snapshot: Snapshot, graph: Graph, columns: Columns) -> ScheduledModel:
    model, kind = snapshot.model, snapshot.kind
    computed = kind.is_stored and not kind.is_seed
    shown = model.name in environment.views and kind.has_view
    parents = tuple(graph.parents[model.name])
    return ScheduledModel(
        name=model.name,
        kind=str(kind),
        materialization=model.materialization,
        computed=computed,
        parents=parents,
        external=tuple(name for name in model.depends_on if name not in parents),
        cron=model.cron.text if computed else "",
        time_zone=model.cron.tz if computed else "",
        interval_unit=model.cron.unit if computed else "",
        start=model.schedule.start.isoformat() if model.schedule.start else None,
        time_column=model.by_time.time_column,
        path=model.path,
        owner=model.metadata.owner,
        description=model.metadata.description,
        tags=model.metadata.tags,
        grain=model.metadata.grain,
        columns=_list_columns(snapshot, columns.get(snapshot.table, ())),
        audits=tuple(ScheduledAudit(name=call.name, blocking=call.blocking) for call in model.checks.audits),
        freshness=freshness_limits(model.metadata.freshness) if model.metadata.freshness else None,
        fingerprint=snapshot.fingerprint.text,
        table_version=snapshot.version,
        table=snapshot.table if kind.has_view else "",
        view=environment.naming.view(model.name, environment.name) if shown else "",
    )


def _list_columns(snapshot: Snapshot, table_columns: tuple[Column, ...]) -> tuple[ScheduledColumn, ...] | None:
    """Return the table's columns; without a table the declared ones, or the names that the query returns."""
    model = snapshot.model
    columns = table_columns or model.columns or tuple(Column(name, "") for name in snapshot.columns or ())
    if not columns:
        return None
    comments = {column.name: column.comment for column in model.columns} | dict(model.metadata.column_descriptions)
    return tuple(
        ScheduledColumn(name=column.name, type=column.type, description=comments.get(column.name, ""))
        for column in columns
    )


def read_schedule(
    folder: str | Path = ".",
    *,
    environment: str = PROD,
    gateway: str | None = None,
    state_url: str | None = None,
    project: str | None = None,
) -> Schedule:
    """Return the models that an environment shows with parents, cron, columns and tables, from the state alone.

    With `state_url` and `project`, its name in the state, no file is read and no variable of config.yaml resolved.
    Otherwise config.yaml says where the state is. Raise RequestError if the environment does not exist.
    """
    settings = settings_of(os.environ, Path(folder), gateway, state_url)
    with open_state(settings, project) as store:
        return make_schedule(store, parse_environment_name(environment))
