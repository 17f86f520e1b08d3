"""Which tasks get which arguments: `{"tag:heavy": {"pool": "big"}}`. Standard library only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mergeplan.airflow.graph import ScheduleGraph
from mergeplan.selectors import select_models


def task_options(
    graph: ScheduleGraph, options: Mapping[str, Mapping[str, Any]], tasks: Mapping[str, Collection[str]]
) -> dict[str, dict[str, Any]]:
    """Return the arguments of each task by its name; `tasks` has the models of each.

    A selector selects the tasks of its models. If two selectors select one task, the later one decides.
    """
    homes = {model: task for task, models in tasks.items() for model in models}
    chosen: dict[str, dict[str, Any]] = {task: {} for task in tasks}
    for selector, arguments in options.items():
        for task in {homes[name]: None for name in sorted(select_models(graph.models, selector)) if name in homes}:
            chosen[task].update(arguments)
    return chosen
