"""The state of prod, read once and remembered: an edit is planned against it without a query to the database.

It is read again when a file is saved, and when it is older than `OLDEST`. Contents and costs of tables are read once.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.plan.build import Plan, Request
from mergeplan.planner.plan.change import Override
from mergeplan.planner.plan.costs import Cost, Estimate, estimate_cost
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.project.loader import Project
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.settings import SessionSettings, url_of
from mergeplan.planner.session.workspace import Workspace, load_state
from mergeplan.planner.snapshot.content_hash import Contents
from mergeplan.planner.snapshot.environment import PROD, Environment

OLDEST = timedelta(minutes=2)


@dataclass(frozen=True)
class ProdState:
    """The state of prod, and the inputs of a plan against it besides the models."""

    base: Environment
    loaded: Loaded
    request: Request
    overrides: tuple[Override, ...] = ()
    compares: bool = True  # tables, to spare recomputations
    costs: Mapping[str, Cost] = field(default_factory=dict)
    contents: Mapping[str, Contents] = field(default_factory=dict)
    read_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @cached_property
    def graph(self) -> Graph:
        return graph_of({name: snapshot.model for name, snapshot in self.base.snapshots.items()})

    @property
    def is_old(self) -> bool:
        return datetime.now(UTC) - self.read_at > OLDEST

    def estimates(self, plan: Plan) -> Mapping[str, Estimate]:
        return {change.name: estimate_cost(change, self.costs, {}) for change in plan.backfills}


def read_prod_state(settings: SessionSettings, project: Project) -> ProdState | None:
    """Return prod of a project as it is now; None without a state. Raise MergeplanError if it cannot be read."""
    # what speaks to the database is imported here: the first diagnostics do without
    from mergeplan.planner.session.use_cases.planning import build_request, check_request

    work = Workspace(settings, "metadata", datetime.now(UTC), ignore_event, only_looks=True)
    with closing(work):
        work.reuse(project)
        if not _has_state(work):
            return None
        base, loaded = work.store.environments.get(PROD), load_state(work)
        # the database is closed when an edit is planned
        work.store.snapshots.read_whole(base.snapshots.values())
        loaded = replace(loaded, timelines=dict(loaded.timelines))
        options = check_request(work, PlanOptions(environment=PROD))
        tables = work.store.tables.all().keys() | {snapshot.table for snapshot in base.snapshots.values()}
        compares = work.project.config.plan.early_cut_off
        return ProdState(
            base,
            loaded,
            build_request(work, options, work.project.models),
            work.store.overrides.list_for(PROD),
            compares,
            work.store.costs.load(tables),
            work.store.contents.load(tables) if compares else {},
        )


def _has_state(work: Workspace) -> bool:
    """Return True if the database exists: a read must not create one."""
    state = work.project.config.gateways[work.project.gateway].state_connection
    url = work.settings.state_url or (url_of(state, work.settings.root) if state else "")
    file = (url or f"sqlite:///{work.settings.folder / 'state.db'}").partition("?")[0]
    return not file.startswith("sqlite:") or Path(file.removeprefix("sqlite:///")).exists()
