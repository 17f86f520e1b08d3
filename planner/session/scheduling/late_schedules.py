"""Schedules that a plan brings with which tables cannot be as fresh as their models promise."""

from collections.abc import Iterator

from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Blocker, Change
from mergeplan.planner.wording import age_text


def find_late_schedules(plan: Plan) -> tuple[Blocker, ...]:
    """Return a warning for each model that a slower schedule, or a new or stricter `freshness`, makes late."""
    slower = [change for change in plan.changes if _runs_less_often(change)]
    promising = [change for change in plan.changes if _promises_more(change)]
    if not slower and not promising:
        return ()
    graph = graph_of({name: snapshot.model for name, snapshot in plan.new.snapshots.items()})
    pairs = {(change.name, reader) for change in slower for reader in (change.name, *graph.downstream([change.name]))}
    pairs |= {(read, change.name) for change in promising for read in (change.name, *graph.upstream([change.name]))}
    return tuple(warning for pair in sorted(pairs) for warning in _judge_pair(graph, *pair))


def _judge_pair(graph: Graph, name: str, reader_name: str) -> Iterator[Blocker]:
    model, reader = graph.models[name], graph.models[reader_name]
    freshness = reader.metadata.freshness
    if freshness is None or (age := _worst_age(model)) <= freshness.limit:
        return
    filled = f"`{name}` runs by cron `{model.cron.text}`: its rows get {age_text(age)} old"
    promise = f"`freshness` allows {age_text(freshness.limit)}"
    if name == reader_name:
        yield Blocker(f"{filled}, and its {promise}.", model.place)
    else:
        yield Blocker(f"{filled}. `{reader_name}` reads it, and its {promise}.", model.place)


def _worst_age(model: Model) -> float:
    # Its age in seconds just before its next run; 0 for a table that no run fills.
    is_filled = model.kind.is_stored and not model.kind.is_seed
    return model.cron.longest_age.total_seconds() if is_filled else 0.0


def _runs_less_often(change: Change) -> bool:
    if change.old is None or change.new is None or change.old.model.cron == change.new.model.cron:
        return False
    return _worst_age(change.new.model) > _worst_age(change.old.model)


def _promises_more(change: Change) -> bool:
    old, new = change.old.model if change.old else None, change.new.model if change.new else None
    if new is None or (promise := new.metadata.freshness) is None:
        return False
    if old is None or old.metadata.freshness is None or not set(new.depends_on) <= set(old.depends_on):
        return True
    return promise.limit < old.metadata.freshness.limit
