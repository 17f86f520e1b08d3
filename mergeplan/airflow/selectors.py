"""Which tasks get which arguments: `{"tag:heavy": {"pool": "big"}}`. Standard library only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from mergeplan.airflow.graph import ScheduledModel, ScheduleError, ScheduleGraph

FIELDS = ("tag", "owner", "kind")


def select_models(graph: ScheduleGraph, selector: str) -> frozenset[str]:
    """The names that a selector means: a name or glob, `tag:x`, `owner:x`, `kind:x`; `+` before it adds what those
    read, `+` after it what reads them. ScheduleError for one that cannot be read, or a name that no model has."""
    text = selector.strip()
    upstream, downstream = text.startswith("+"), text.endswith("+")
    core = text.removeprefix("+").removesuffix("+")
    field, colon, value = core.partition(":")
    if not core or (colon and (field not in FIELDS or not value)):
        fields = ", ".join(f"{name}:x" for name in FIELDS)
        raise ScheduleError(f"`{selector}` is no selector: write a model's name, a glob, or one of {fields}.")
    names = {model.name for model in graph.models.values() if _matches(model, field if colon else "", value or core)}
    if not names and not colon and not any(sign in core for sign in "*?["):
        raise ScheduleError(f"`{selector}` selects nothing: no model is called `{core}`.")
    selected = set(names)
    if upstream:
        selected |= _reach(names, {model.name: model.parents for model in graph.models.values()})
    if downstream:
        selected |= _reach(names, _children(graph))
    return frozenset(selected)


def task_options(
    graph: ScheduleGraph, options: Mapping[str, Mapping[str, Any]], tasks: Mapping[str, Collection[str]]
) -> dict[str, dict[str, Any]]:
    """The arguments of each task, by its name; `tasks` has the models of each. A selector means the tasks of its
    models, and of two selectors that mean one task, the later one decides."""
    homes = {model: task for task, models in tasks.items() for model in models}
    chosen: dict[str, dict[str, Any]] = {task: {} for task in tasks}
    for selector, arguments in options.items():
        for task in {homes[name]: None for name in sorted(select_models(graph, selector)) if name in homes}:
            chosen[task].update(arguments)
    return chosen


def _matches(model: ScheduledModel, field: str, value: str) -> bool:
    if field == "tag":
        return any(fnmatchcase(tag, value) for tag in model.tags)
    if field == "owner":
        return fnmatchcase(model.owner, value)
    if field == "kind":
        return fnmatchcase(model.kind, value.upper())
    return fnmatchcase(model.name, value)


def _children(graph: ScheduleGraph) -> Mapping[str, Collection[str]]:
    children: dict[str, list[str]] = {name: [] for name in graph.models}
    for model in graph.models.values():
        for parent in model.parents:
            children.setdefault(parent, []).append(model.name)
    return children


def _reach(names: Iterable[str], edges: Mapping[str, Collection[str]]) -> set[str]:
    reached: set[str] = set()
    frontier = list(names)
    while frontier:
        for name in edges.get(frontier.pop(), ()):
            if name not in reached:
                reached.add(name)
                frontier.append(name)
    return reached
