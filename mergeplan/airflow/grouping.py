"""Which models share a task: those that selectors name, and what stands between them. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from mergeplan.airflow.graph import ScheduledModel, ScheduleGraph
from mergeplan.selectors import select_models


@dataclass(frozen=True)
class TaskModels:
    """A task: its name, its models, and the names of the tasks that it waits for."""

    name: str
    models: tuple[ScheduledModel, ...]
    parents: tuple[str, ...]


def group_models(graph: ScheduleGraph, groups: Mapping[str, str]) -> tuple[TaskModels, ...]:
    """Return the tasks of a schedule, parents first: one for each group `{name: selector}` and for each other model.

    A model of several groups is in the first one. A task cannot wait for itself: a model that reads a group and is read
    by it belongs to it too, and of two groups that read each other the first one has the models of both.
    """
    home = {model.name: model.name for model in graph.computed}
    for name, selector in groups.items():
        chosen = select_models(graph.models, selector)
        home |= {model: name for model in home if model in chosen and home[model] == model}
    parents = _task_parents(graph, home)
    while cycle := _find_cycle(parents):
        name = next((name for name in groups if name in cycle), cycle[0])
        home |= {model: name for model in home if home[model] in cycle}
        parents = _task_parents(graph, home)
    members: dict[str, list[ScheduledModel]] = {}
    for model in graph.computed:
        members.setdefault(home[model.name], []).append(model)
    order = TopologicalSorter(parents).static_order()
    return tuple(TaskModels(name, tuple(members[name]), parents[name]) for name in order)


def _task_parents(graph: ScheduleGraph, home: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return, for each task, the tasks that it waits for; `home` is the task of each model."""
    reads: dict[str, dict[str, None]] = {}
    for model, parents in graph.task_parents.items():
        task = home[model]
        reads.setdefault(task, {}).update({home[name]: None for name in parents if home[name] != task})
    return {task: tuple(names) for task, names in reads.items()}


def _find_cycle(parents: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return tasks that wait for one another; [] if there are none."""
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []
