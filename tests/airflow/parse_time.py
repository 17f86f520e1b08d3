"""How long a DAG of a schedule takes to parse, beside one of plain operators with the same edges; by Airflow's Python.

`python parse_time.py SCHEDULE FOLDER` prints JSON: seconds of both, and what was imported.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Asset, BaseOperator, CronTriggerTimetable
from airflow.triggers.base import StartTriggerArgs

from mergeplan.airflow.dags import MergeplanDag
from mergeplan.airflow.graph import read_graph


class Plain(BaseOperator):
    """An operator that does nothing of its own."""

    start_from_trigger = True


def plain_dag(names: list[str], parents: dict[str, tuple[str, ...]]) -> DAG:
    """The same tasks and edges without mergeplan."""
    args = StartTriggerArgs("x.Y", "execute_complete", {}, None, timedelta(days=1))
    with DAG("plain", schedule=CronTriggerTimetable("0 0 * * *", timezone="UTC")) as dag:
        tasks: dict[str, Any] = {}
        for name in names:
            asset = Asset(name=name, uri=f"mergeplan://prod/{name}")
            task = tasks[name] = Plain(task_id=name, outlets=[asset], doc_md="model")
            task.start_trigger_args = args
            if parents[name]:
                task.set_upstream([tasks[parent] for parent in parents[name]])
    return dag


def least(*makes: Callable[[], DAG]) -> list[float]:
    """The least of several times of each, in turns, in seconds of this process."""
    times: list[list[float]] = [[] for _ in makes]
    for _ in range(7):
        for took, make in zip(times, makes, strict=True):
            began = time.process_time()
            make()
            took.append(time.process_time() - began)
    return [min(took) for took in times]


def main() -> None:
    """Measure and print."""
    path, folder = sys.argv[1:]
    graph = read_graph(path)
    names, parents = [model.name for model in graph.computed], graph.task_parents
    ours, plain = least(
        lambda: MergeplanDag("shop", schedule_file=path, folder=folder), lambda: plain_dag(names, parents)
    )
    heavy = ("pyspark", "sqlglot", "mergeplan.planner", "mergeplan.airflow.state", "mergeplan.airflow.triggers")
    loaded = [name for name in heavy if name in sys.modules]
    sys.stdout.write(json.dumps({"ours": ours, "plain": plain, "loaded": loaded}))


if __name__ == "__main__":
    main()
