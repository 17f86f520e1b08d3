"""Plans of restatements: the environment as it is, with some of its tables recomputed."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from mergeplan.planner.errors import RequestError
from mergeplan.planner.intervals import Timeline, merge_intervals, subtract_intervals
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.selection import Changed, select
from mergeplan.planner.plan import restatement
from mergeplan.planner.plan.build import Plan, build_backfill_plan
from mergeplan.planner.plan.change import ChangeKind, build_unedited_change
from mergeplan.planner.plan.restatement import LeftOut, Past, Restatement
from mergeplan.planner.plan.schedule import Loaded, Window, extend_lookback, whole_start
from mergeplan.planner.snapshot.environment import PROD, Environment
from mergeplan.planner.snapshot.snapshot import Snapshot


def build_restatement(
    environment: Environment,
    table_state: Loaded,
    window: Window,
    selectors: Iterable[str],
    past: Past,
    changed_models: Changed | None = None,
) -> Plan:
    """Build the plan that recomputes, in the window, the selected models of an environment and all models downstream.

    The models are those that the environment shows, whatever the project's files say now. Tables that no model defines
    can be selected too, to restate their readers. Raise RequestError if nothing is left to restate.
    """
    shown = environment.snapshots
    graph = restatement.graph_with_outer_tables(shown)
    chosen = select(graph, selectors, changed_models)
    # another environment must not write tables that prod shows: it would change prod without a plan for it
    kept_tables = past.tables_of_prod if environment.name != PROD else frozenset[str]()
    names, left_out = restatement.cascade_models(graph, shown, chosen, kept_tables)
    inner = graph_of({name: snapshot.model for name, snapshot in shown.items()})
    restated = restatement.time_to_restate(inner, shown, table_state, window, names)
    if not restated:
        hint = "" if left_out else "`mergeplan dag` shows who reads whom."
        raise RequestError(_nothing_message(chosen, names, left_out, window), hint=hint)
    forgets, touched = restatement.find_outdated_tables(environment, past, restated, chosen, window)
    # planned as if the forgotten time were gone already, for by the time that anything is computed it will be
    changes = tuple(
        build_unedited_change(
            shown[name],
            ChangeKind.RESTATED,
            _restatement_reason(graph, name, chosen, restated),
            restated[name],
            _add_due_lookback(inner, shown[name], restated[name], table_state, window),
        )
        for name in inner.order
        if name in restated
    )
    timelines = {
        table: subtract_intervals(timeline, forgets.get(table, ())) for table, timeline in table_state.timelines.items()
    }
    plan = build_backfill_plan(environment, inner, changes, Loaded(timelines), window)
    return replace(plan, restatement=Restatement(forgets, left_out, touched))


def _add_due_lookback(
    graph: Graph, snapshot: Snapshot, time: Timeline, table_state: Loaded, window: Window
) -> Timeline:
    """Return restated time with the lookback of what is computed for the first time: no later run would compute it."""
    model, held_time = snapshot.model, table_state.timeline_of(snapshot)
    due_time, begin = subtract_intervals(time, held_time), whole_start(graph, model, window)
    return merge_intervals((*time, *extend_lookback(model, due_time, held_time, model.batches.lookback, begin)))


def _restatement_reason(graph: Graph, name: str, chosen_names: Collection[str], restated_names: Collection[str]) -> str:
    if name in chosen_names:
        return "Its rows are computed again."
    above = graph.upstream([name])
    if not above.isdisjoint(restated_names):
        return "It reads rows that are computed again."
    # no query computes a seed or an external table, so its readers are restated instead
    selected = ", ".join(f"`{ancestor}`" for ancestor in sorted(above & {*chosen_names}))
    return f"It reads {selected}, which {'is' if len(above & {*chosen_names}) == 1 else 'are'} selected."


def _nothing_message(
    chosen_names: Iterable[str], names: Iterable[str], left_out_models: Iterable[LeftOut], window: Window
) -> str:
    reasons = "; ".join(f"`{model.model}`: {model.reason}" for model in left_out_models)
    if not names:
        chosen_text = ", ".join(f"`{name}`" for name in sorted(chosen_names))
        return f"Nothing can be restated: {reasons}." if reasons else f"Nothing is computed from {chosen_text}."
    bounds = [f" {word} {at:%Y-%m-%d}" for word, at in (("from", window.start), ("up to", window.end)) if at]
    return f"Nothing is to be restated{' and'.join(bounds)}: no table of these models has rows of that time."
