"""The plan of an edit against prod, decided for the edited models and what their changes reach."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mergeplan.planner.errors import MergeplanError, Place
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.remembered_state import ProdState
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.plan.build import Plan, build_plan
from mergeplan.planner.plan.change import Change, ChangeKind
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.project.loader import Project
from mergeplan.planner.semantics.shape_memory import ShapeMemory
from mergeplan.planner.session.unopened import add_unopened, merge_deployed
from mergeplan.planner.session.wording import TITLES, cost_text
from mergeplan.planner.wording import count_noun


@dataclass(frozen=True)
class EditEffect:
    """The effect of a model's edit, as `plan` would report it; `change` is None if prod shows the same model."""

    model: str
    place: Place
    change: Change | None
    computed: tuple[Change, ...] = ()  # tables that are computed: its own, and of what reads it
    kept: int = 0  # models that read it and keep their tables
    estimates: Mapping[str, Estimate] | None = None
    blockers: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The category of the change, or what else it is."""
        if self.change is None:
            return "As in prod"
        if self.change.category is None:
            return {ChangeKind.ADDED: "New model", ChangeKind.REMOVED: "Removed"}.get(self.change.change, "Changed")
        return TITLES[self.change.category].partition(" (")[0]


def plan_edit(
    view: ProjectView, state: ProdState, edited: Collection[str], now: datetime, shapes: ShapeMemory | None = None
) -> Plan:
    """Return the plan of the edited models, as `mergeplan plan prod` would make it of the whole project.

    A decision follows from a model and its upstream models, so that no other model is needed. Raise MergeplanError as
    `plan` does.
    """
    project, deployed = view.project, state.graph.models
    models, unopened = merge_deployed(project.models, project.refused, deployed)
    graph = view.graph if models is project.models else graph_of(models)
    hit = {*edited, *graph.downstream(edited), *state.graph.downstream(edited)}
    names = frozenset(hit | graph.upstream(hit) | state.graph.upstream(hit))
    part = {name: model for name, model in models.items() if name in names}
    snapshots = {name: snapshot for name, snapshot in state.base.snapshots.items() if name in names}
    base = replace(state.base, snapshots=snapshots, views=state.base.views & names)
    loaded = replace(state.loaded, contents=dict(state.contents) if state.compares else None)
    request = replace(state.request, window=replace(state.request.window, now=now))
    if shapes is not None:
        request = replace(request, shapes=shapes)
    return add_unopened(build_plan(part, base, base, loaded, request, state.overrides), unopened)


def describe_edit(project: Project, plan: Plan, name: str, estimates: Mapping[str, Estimate]) -> EditEffect:
    model = project.models[name]
    change = next((change for change in plan.changes if change.name == name), None)
    below = graph_of({n: snapshot.model for n, snapshot in plan.new.snapshots.items()}).downstream([name])
    if change is None:
        return EditEffect(name, model.place, None)
    computed = tuple(c for c in plan.backfills if c.name == name or c.name in below)
    unwritten_models = below - {c.name for c in plan.changes if c.recomputed or c.missing}
    own_estimates = {c.name: estimates[c.name] for c in computed if c.name in estimates}
    blockers = tuple(blocker.message for blocker in plan.blockers)
    return EditEffect(name, model.place, change, computed, len(unwritten_models), own_estimates, blockers)


def effect_text(effect: EditEffect) -> str:
    if effect.change is None:
        return effect.title
    parts = [f"{effect.title}: {effect.change.reason}".strip().rstrip(":")]
    if effect.computed:
        cost = cost_text(list((effect.estimates or {}).values()))
        timelines = (change.missing for change in effect.computed if change.kind.is_incremental)
        time = sum((interval.end - interval.start for timeline in timelines for interval in timeline), timedelta())
        about = ", ".join(filter(None, (length_text(time), cost)))
        parts.append(f"computes {count_noun(len(effect.computed), 'table')}{f' ({about})' if about else ''}")
    else:
        parts.append("computes nothing")
    if effect.kept:
        verb = "keeps its table" if effect.kept == 1 else "keep their tables"
        parts.append(f"{count_noun(effect.kept, 'model')} downstream {verb}")
    if effect.blockers:
        parts.append(f"blocked: {effect.blockers[0]}")
    return " · ".join(parts)


def error_text(error: MergeplanError) -> str:
    return f"No plan: {error.message}"


def length_text(time: timedelta) -> str:
    """Return the length in days, or in hours if it is shorter than a day; '' for none."""
    hours = math.ceil(time / timedelta(hours=1))
    return count_noun(round(hours / 24), "day") if hours >= 24 else count_noun(hours, "hour") if hours else ""
